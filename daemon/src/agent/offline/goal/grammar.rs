//! The grammar of goals: a goal is read completely or refused with what is not understood.
//!
//! Shape: `[a] NOUN command-line tool [called NAME] [: VERB, VERB and VERB] [with tests]`, or
//! `[a] command-line tool for NOUN …`. A word that could mean a wish this agent cannot meet (`by`, `sqlite`, `web`)
//! is an error and never skipped.

use super::noun;
use super::tool::Tool;
use super::verb::{Action, Verb};
use super::words::{FILLER, KEYWORDS, KIND_WORDS, LEAD, TAKEN};

/// The longest goal that is read, in characters; a longer one is prose, not this grammar.
const GOAL_CHARS_MAX: usize = 400;

/// Why a goal is not planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GoalError {
    /// Nothing in the goal says that a command-line tool is wanted.
    #[error("it does not ask for a command-line tool")]
    NotCommandLine,
    /// No noun, or no single noun phrase of at most three words, says what the tool keeps.
    #[error("it does not say in one to three words what the tool keeps")]
    NoNoun,
    /// A word has no meaning in the grammar.
    #[error("it has no meaning for `{word}`")]
    UnknownWord {
        /// The word as the goal has it.
        word: String,
    },
    /// The noun or the name cannot be the name of a Python package.
    #[error(
        "`{name}` cannot be the name of a Python package (ASCII letters, digits and `_`, first a letter, at most 40)"
    )]
    BadName {
        /// The name as far as it was made.
        name: String,
    },
    /// Two words ask for the same command.
    #[error("`{first}` and `{second}` are the same command")]
    SameCommand {
        /// The word that came first.
        first: &'static str,
        /// The word that repeats it.
        second: &'static str,
    },
    /// The goal is prose.
    #[error("it is longer than {GOAL_CHARS_MAX} characters")]
    TooLong,
}

/// Returns the sentence that tells the user what can be planned.
#[must_use]
pub fn understood() -> String {
    format!(
        "it understands goals such as `a notes command-line tool: add, list, search, with tests`: a Python command-line tool \
         that keeps one kind of thing in a JSON file, with commands out of {}",
        Verb::words().join(", ")
    )
}

/// Reads a goal.
///
/// # Errors
/// A [`GoalError`] that names what is not understood.
pub fn parse(goal: &str) -> Result<Tool, GoalError> {
    if goal.chars().count() > GOAL_CHARS_MAX {
        return Err(GoalError::TooLong);
    }
    let words = tokens(goal);
    let (start, end) = interface(&words).ok_or(GoalError::NotCommandLine)?;
    let lead = words[..start].iter().skip_while(|word| LEAD.contains(&word.as_str()));
    let mut nouns: Vec<String> = lead.filter(|word| *word != "python").cloned().collect();
    let mut rest = &words[end..];
    if nouns.is_empty() {
        (nouns, rest) = noun_after(rest)?;
    }
    let mut tool = named(&nouns)?;
    read_rest(rest, &nouns, &mut tool)?;
    if tool.verbs.is_empty() {
        tool.verbs = ["add", "list"].into_iter().filter_map(Verb::parse).collect();
    }
    Ok(tool)
}

/// Splits into lower-case words; punctuation marks are words of their own.
fn tokens(goal: &str) -> Vec<String> {
    let mut spaced = String::new();
    for letter in goal.trim().trim_end_matches(['.', '!']).chars() {
        match letter {
            ':' | ';' => spaced.extend([' ', letter, ' ']),
            ',' | '(' | ')' => spaced.push_str(" , "),
            '/' if spaced.ends_with(char::is_alphanumeric) => spaced.push_str(" , "),
            '`' | '"' | '“' | '”' => spaced.push(' '),
            _ => spaced.extend(letter.to_lowercase()),
        }
    }
    spaced.split_whitespace().map(str::to_owned).collect()
}

/// Returns where the phrase `command-line tool` begins and ends.
fn interface(words: &[String]) -> Option<(usize, usize)> {
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let start = (0..words.len()).find(|&index| {
        matches!(at(index), "command-line" | "commandline" | "cli" | "terminal" | "console")
            || (at(index) == "command" && at(index + 1) == "line")
    })?;
    let mut end = start + if at(start) == "command" { 2 } else { 1 };
    if matches!(at(end), "tool" | "app" | "application" | "program" | "utility" | "interface" | "manager" | "tracker") {
        end += 1;
    }
    Some((start, end))
}

/// Takes the noun of `… tool for NOUN …` or `… tool that manages NOUN …`.
fn noun_after(rest: &[String]) -> Result<(Vec<String>, &[String]), GoalError> {
    const OPEN: [&str; 14] = [
        "for", "to", "that", "which", "keep", "keeps", "keeping", "manage", "manages", "managing", "track", "tracks",
        "store", "stores",
    ];
    let skipped = rest.iter().take_while(|word| OPEN.contains(&word.as_str())).count();
    if skipped == 0 {
        return Err(GoalError::NoNoun);
    }
    let rest = &rest[skipped..];
    let rest = if matches!(rest.first().map(String::as_str), Some("a" | "an" | "the" | "my" | "our")) {
        &rest[1..]
    } else {
        rest
    };
    let stops = |word: &&String| FILLER.contains(&word.as_str()) || matches!(word.as_str(), "called" | "named" | "in");
    let length = rest.iter().take_while(|word| !stops(word)).count();
    Ok((rest[..length].to_vec(), &rest[length..]))
}

/// Makes the tool of a noun phrase, without commands yet.
fn named(nouns: &[String]) -> Result<Tool, GoalError> {
    if nouns.is_empty() || nouns.len() > 3 {
        return Err(GoalError::NoNoun);
    }
    let package = package_name(&nouns.join("_"))?;
    let mut things: Vec<String> = nouns.to_vec();
    if let Some(last) = things.last_mut() {
        for ending in ["-taking", "-keeping", "-tracking", "-list"] {
            if let Some(stem) = last.strip_suffix(ending) {
                *last = stem.to_owned();
            }
        }
    }
    let kind = things.last().is_some_and(|last| KIND_WORDS.contains(&last.as_str()));
    if kind && things.len() > 1 {
        things.pop();
    }
    if let Some(last) = things.last_mut() {
        // What is on a shopping list or a reading list has no better name.
        let nameless = kind && last.ends_with("ing");
        *last = if nameless { "item".to_owned() } else { noun::singular(last) };
    }
    let entity = things.join(" ").replace(['-', '_'], " ");
    let last = things.last().map_or("", String::as_str);
    let plural = format!("{}{}", &entity[..entity.len() - last.len().min(entity.len())], noun::plural(last))
        .replace(['-', '_'], " ");
    Ok(Tool { package, entity, plural, verbs: Vec::new() })
}

fn package_name(text: &str) -> Result<String, GoalError> {
    let name = text.replace('-', "_");
    let first = name.chars().next().is_some_and(|letter| letter.is_ascii_lowercase());
    let all = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !first || !all || name.len() > 40 {
        return Err(GoalError::BadName { name });
    }
    if TAKEN.contains(&name.as_str()) || KEYWORDS.contains(&name.as_str()) {
        return Ok(format!("{name}_tool"));
    }
    Ok(name)
}

/// Reads the commands and the name; anything else must be a filler.
fn read_rest(rest: &[String], nouns: &[String], tool: &mut Tool) -> Result<(), GoalError> {
    let mut words = rest.iter().map(String::as_str).peekable();
    let mut transfer = 0_u8;
    while let Some(word) = words.next() {
        transfer = transfer.saturating_sub(1);
        if matches!(word, "called" | "named") {
            let name = words.next().ok_or(GoalError::NoNoun)?;
            tool.package = package_name(name)?;
        } else if word == "in" && matches!(words.peek(), Some(&("python" | "python3"))) {
            words.next();
        } else if word == "json" && transfer > 0 || stores_in_json(word, &mut words) {
            transfer = 0;
        } else if matches!(word, "as" | "from") && transfer > 0 && words.peek() == Some(&"json") {
            transfer = 2;
        } else if word == "no" && words.peek() == Some(&"dependencies") {
            words.next();
        } else if let Some(verb) = Verb::parse(word) {
            if let Some(first) = tool.verbs.iter().find(|known| known.action == verb.action) {
                if first.word != verb.word {
                    return Err(GoalError::SameCommand { first: first.word, second: verb.word });
                }
                continue;
            }
            transfer = if matches!(verb.action, Action::Export | Action::Import) { 4 } else { transfer };
            tool.verbs.push(verb);
        } else if !(FILLER.contains(&word)
            || nouns.iter().any(|noun| noun == word)
            || word == tool.entity
            || word == tool.plural)
        {
            return Err(GoalError::UnknownWord { word: word.to_owned() });
        }
    }
    Ok(())
}

/// Takes the rest of `[stored] in [a] json [file]`, which is what every tool does.
fn stores_in_json<'a>(word: &str, words: &mut std::iter::Peekable<impl Iterator<Item = &'a str> + Clone>) -> bool {
    let mut ahead = words.clone();
    if matches!(word, "stored" | "saved" | "kept") && ahead.next() != Some("in")
        || !matches!(word, "stored" | "saved" | "kept" | "in")
    {
        return false;
    }
    let mut next = ahead.next();
    if matches!(next, Some("a" | "one")) {
        next = ahead.next();
    }
    if next != Some("json") {
        return false;
    }
    if matches!(ahead.peek(), Some(&("file" | "store"))) {
        ahead.next();
    }
    *words = ahead;
    true
}
