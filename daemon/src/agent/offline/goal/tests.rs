//! The grammar of goals: what is read, what is refused, and that every noun and set of commands is read alike.

#![expect(clippy::unwrap_used, reason = "tests")]

use super::{GoalError, Verb, parse};

fn check(goal: &str, package: &str, entity: &str, plural: &str, verbs: &[&str]) {
    let tool = parse(goal).unwrap_or_else(|error| panic!("{goal}: {error}"));
    let words: Vec<&str> = tool.verbs.iter().map(|verb| verb.word).collect();
    assert_eq!(
        (tool.package.as_str(), tool.entity.as_str(), tool.plural.as_str(), words.as_slice()),
        (package, entity, plural, verbs),
        "{goal}"
    );
}

fn unknown(goal: &str, word: &str) {
    assert_eq!(parse(goal), Err(GoalError::UnknownWord { word: word.to_owned() }), "{goal}");
}

#[test]
fn goals_people_write_are_read() {
    check(
        "a notes command-line tool: add, list, search, with tests",
        "notes",
        "note",
        "notes",
        &["add", "list", "search"],
    );
    check("recipes command-line tool: add, list, remove", "recipes", "recipe", "recipes", &["add", "list", "remove"]);
    check(
        "Build a small TODO CLI app in Python that can add, complete and list todos.",
        "todo",
        "todo",
        "todos",
        &["add", "complete", "list"],
    );
    check(
        "A command line tool for movies: adding, listing and searching",
        "movies",
        "movie",
        "movies",
        &["add", "list", "search"],
    );
    check(
        "a terminal program that manages shopping items with add and delete",
        "shopping_items",
        "shopping item",
        "shopping items",
        &["add", "delete"],
    );
    check("shopping list cli: add, list", "shopping_list", "item", "items", &["add", "list"]);
}

#[test]
fn other_shapes_and_names_are_read() {
    check(
        "a note-taking command-line tool (add/list/search)",
        "note_taking",
        "note",
        "notes",
        &["add", "list", "search"],
    );
    check(
        "a bookmark manager console tool called marks: add, tag, find",
        "marks",
        "bookmark",
        "bookmarks",
        &["add", "tag", "find"],
    );
    check(
        "a diary entries CLI: create, export to json, import from json",
        "diary_entries",
        "diary entry",
        "diary entries",
        &["create", "export", "import"],
    );
    check("a json cli: list", "json_tool", "json", "jsons", &["list"]);
    check("a contacts command-line tool", "contacts", "contact", "contacts", &["add", "list"]);
    check("a notes command-line tool: add, add and list", "notes", "note", "notes", &["add", "list"]);
}

#[test]
fn what_it_cannot_do_is_named() {
    unknown("a notes command-line tool: add, frobnicate", "frobnicate");
    unknown("a notes command-line tool in Rust: add", "in");
    unknown("a notes command-line tool: search by date", "by");
    unknown("a notes command-line tool: export to csv", "csv");
    unknown("a notes command-line tool with sqlite: add", "sqlite");
    unknown("a notes command-line tool: add, list as json", "as");
    unknown("a notes command-line tool: add, list json", "json");
    assert_eq!(parse("a web app for notes"), Err(GoalError::NotCommandLine));
    assert_eq!(parse(""), Err(GoalError::NotCommandLine));
    assert_eq!(parse("a command-line tool: add"), Err(GoalError::NoNoun));
    assert_eq!(parse("the best ever small green notes cli: add"), Err(GoalError::NoNoun));
    assert_eq!(parse("ümläute cli: add"), Err(GoalError::BadName { name: "ümläute".to_owned() }));
    let escaping = GoalError::BadName { name: "../notes".to_owned() };
    assert_eq!(parse("../notes cli: add"), Err(escaping));
    assert_eq!(parse("a notes cli called ..: add").unwrap_err(), GoalError::BadName { name: "..".to_owned() });
    assert_eq!(parse("a notes cli: remove, delete"), Err(GoalError::SameCommand { first: "remove", second: "delete" }));
    assert_eq!(parse(&"notes cli ".repeat(60)), Err(GoalError::TooLong));
}

/// Nouns of different endings, singular and plural.
const NOUNS: [(&str, &str); 24] = [
    ("note", "notes"),
    ("recipe", "recipes"),
    ("task", "tasks"),
    ("entry", "entries"),
    ("box", "boxes"),
    ("address", "addresses"),
    ("movie", "movies"),
    ("person", "people"),
    ("dish", "dishes"),
    ("watch", "watches"),
    ("day", "days"),
    ("key", "keys"),
    ("book", "books"),
    ("potato", "potatoes"),
    ("child", "children"),
    ("idea", "ideas"),
    ("expense", "expenses"),
    ("habit", "habits"),
    ("quote", "quotes"),
    ("wine", "wines"),
    ("plant", "plants"),
    ("bus", "buses"),
    ("city", "cities"),
    ("house", "houses"),
];

/// Each noun in both numbers with sets of commands drawn by a fixed sequence: the tool is what was said, always.
#[test]
fn every_noun_goes_with_every_set_of_commands() {
    let words = Verb::words();
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    for (one, many) in NOUNS {
        for noun in [one, many] {
            for _ in 0..40 {
                let mut verbs: Vec<Verb> = Vec::new();
                for _ in 0..=next(6) {
                    let verb = Verb::parse(words[next(words.len())]).unwrap();
                    if verbs.iter().all(|known| known.action != verb.action) {
                        verbs.push(verb);
                    }
                }
                let list: Vec<&str> = verbs.iter().map(|verb| verb.word).collect();
                let frame = [
                    format!("a {noun} command-line tool: {}, with tests", list.join(", ")),
                    format!("Write a CLI for {noun} with {}", list.join(" and ")),
                ];
                check(&frame[next(2)], noun, one, many, &list);
            }
        }
    }
}
