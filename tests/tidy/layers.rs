//! Who may import whom inside the daemon (style 2.3), and what the core may never touch.

use crate::source::Source;

/// Layer of each module of the daemon. A module may import lower layers and itself; names beside it are allowed besides.
///
/// `api` stands below `runtime`: it says in a trait what it needs, and `runtime` fulfils it.
const LAYERS: &[(&str, u8, &[&str])] = &[
    ("main", 7, &[]),
    ("lib", 7, &[]),
    ("boot", 7, &[]),
    ("service", 7, &[]),
    ("runtime", 6, &[]),
    ("api", 5, &[]),
    ("store", 4, &[]),
    ("git", 4, &[]),
    ("agent", 4, &[]),
    ("evidence", 4, &[]),
    ("artifact", 4, &[]),
    ("process", 3, &[]),
    ("config", 1, &[]),
    ("clock", 1, &[]),
    ("tasks", 1, &[]),
    ("telemetry", 1, &[]),
    ("redact", 1, &[]),
    ("failpoint", 1, &[]),
];

/// What `api` may not import although it stands higher: it asks the runtime, never the world.
const NOT_FOR_API: &[&str] = &["git", "agent", "evidence", "artifact", "process"];

/// Names that the core must not use: clocks, files, processes, threads, randomness, unordered maps.
const IMPURE: &[&str] = &[
    "std::fs",
    "std::env",
    "std::net",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "HashMap",
    "HashSet",
    "tokio",
    "sqlx",
];

fn layer(module: &str) -> Option<(u8, &'static [&'static str])> {
    LAYERS.iter().find(|(name, ..)| *name == module).map(|(_, layer, besides)| (*layer, *besides))
}

/// Imports upward or sideways.
pub(crate) fn offences(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources {
        let Some(rest) = source.path.strip_prefix("daemon/src/") else { continue };
        let module = rest.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some((own, besides)) = layer(module) else {
            let hint = "hint: give it a line in tests/tidy/layers.rs";
            offences.push(format!("{}: `{module}` is in no layer · {hint}", source.path));
            continue;
        };
        for (n, target) in imports(source) {
            // `crate::Name` and `crate::function` are lib.rs itself.
            let Some((other, _)) = layer(&target) else { continue };
            let asks_the_world = module == "api" && NOT_FOR_API.contains(&target.as_str());
            let fine = target == module || besides.contains(&target.as_str()) || (other < own && !asks_the_world);
            let one_family = own == 1 && other == 1;
            if !fine && !one_family {
                offences.push(format!(
                    "{}:{n}: `{module}` may not import `{target}` · hint: move the code down, or pass the value as a parameter",
                    source.path
                ));
            }
        }
    }
    offences
}

/// The modules that a file names after `crate::`, each with its line.
fn imports(source: &Source) -> Vec<(usize, String)> {
    let text: String = source
        .text
        .lines()
        .map(|line| if line.trim_start().starts_with("//") { "" } else { line })
        .collect::<Vec<_>>()
        .join("\n");
    let mut found = Vec::new();
    for (place, _) in text.match_indices("crate::") {
        if text[..place].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = text[..place].matches('\n').count() + 1;
        let rest = &text[place + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads(group).into_iter().map(|head| (line, head))),
            None => found.push((line, word(rest))),
        }
    }
    found
}

/// First names of the members of `{a::b, c::{d, e}, f}`, without the opening brace.
fn heads(group: &str) -> Vec<String> {
    let mut depth = 0;
    let mut at_start = true;
    let mut found = Vec::new();
    for (place, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => at_start = true,
            c if at_start && (c.is_alphabetic() || c == '_') => {
                found.push(word(&group[place..]));
                at_start = false;
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Uses of the outside world in the core's own code; its tests may.
pub(crate) fn impurities(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with("daemon/core/src/") && !s.is_test()) {
        let tests_from = source.text.lines().position(|line| line.trim() == "#[cfg(test)]").unwrap_or(usize::MAX);
        for (n, line) in source.code().filter(|(n, _)| *n <= tests_from) {
            for name in IMPURE.iter().filter(|name| names(line, name)) {
                let hint = "hint: the core is pure, let the value come in";
                offences.push(format!("{}:{n}: `{name}` in the core · {hint}", source.path));
            }
        }
    }
    offences
}

fn names(line: &str, name: &str) -> bool {
    line.match_indices(name).any(|(place, _)| {
        let before = line[..place].chars().next_back();
        let after = line[place + name.len()..].chars().next();
        let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '"');
        !part(before) && !part(after)
    })
}
