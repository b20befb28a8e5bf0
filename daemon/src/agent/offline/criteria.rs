//! What each part must fulfil: the sentence for the plan and the probe that shows it, side by side, so that the
//! verifier can check every criterion the planner writes.

use super::goal::{Action, Tool, Verb};
use super::part::{Part, TestNames};
use super::step::{Probe, Seed, Step};

/// One acceptance criterion.
#[derive(Debug, Clone)]
pub(super) struct Promise {
    pub(super) text: String,
    pub(super) probe: Probe,
}

/// Returns the criteria of a part.
pub(super) fn promises(tool: &Tool, part: Part, names: TestNames) -> Vec<Promise> {
    let mut all = match part {
        Part::Storage => storage(tool),
        Part::Command(verb) => command(tool, verb),
        Part::Guide => guide(tool),
    };
    let text = match part {
        Part::Guide => "All tests of the tool pass together, the end-to-end session included".to_owned(),
        Part::Storage | Part::Command(_) => {
            format!("The tests in `{}` pass", part.test_file(tool, names))
        }
    };
    all.push(Promise { text, probe: Probe::Suite });
    all
}

fn session(text: String, seed: Seed, steps: Vec<Step>) -> Promise {
    Promise { text, probe: Probe::Session { seed, steps } }
}

fn storage(tool: &Tool) -> Vec<Promise> {
    let (package, plural) = (&tool.package, &tool.plural);
    let write = format!(
        "from {package}.store import Store\nwith Store().change() as d:\n    d['items'].append({{'id': 1, 'text': 'café ☕ 日本語'}}); d['next_id'] = 2"
    );
    let read = format!("from {package}.store import Store\nprint(Store().items()[0]['text'])");
    vec![
        session(
            format!("`python3 -m {package} --help` exits 0 and names the tool and its data file"),
            Seed::Absent,
            vec![Step::tool(tool, &["--help"]).prints(format!("usage: {package}")).prints(tool.variable())],
        ),
        session(
            "An unknown command is wrong usage: exit code 2 and a message".to_owned(),
            Seed::Absent,
            vec![Step::tool(tool, &["no-such-command"]).fails(2, "usage:")],
        ),
        session(
            "Text in any language is stored and read back unchanged by another process".to_owned(),
            Seed::Absent,
            vec![
                Step::python(&["-c", &write]).keeps("café ☕ 日本語"),
                Step::python(&["-c", &read]).prints("café ☕ 日本語"),
            ],
        ),
        session(
            "A corrupt data file is a clear error and is left as it was".to_owned(),
            Seed::Corrupt,
            vec![Step::python(&["-c", &read]).fails(1, &format!("is not a {plural} store")).keeps("not json")],
        ),
    ]
}

fn command(tool: &Tool, verb: Verb) -> Vec<Promise> {
    let mut all = match verb.action {
        Action::Add => add(tool, verb.word),
        Action::List | Action::Count | Action::Show => reading(tool, verb),
        Action::Search => search(tool, verb.word),
        Action::Edit | Action::Tag | Action::Done | Action::Remove => changing(tool, verb),
        Action::Export => export(tool, verb.word),
        Action::Import => import(tool, verb.word),
    };
    let help = Step::tool(tool, &[verb.word, "--help"]).prints(format!("usage: {} {}", tool.package, verb.word));
    let listed = Step::tool(tool, &["--help"]).prints(format!("\n    {}", verb.word));
    all.push(session(
        format!("`{} --help` lists `{2}` and `{} {2} --help` explains it", tool.package, tool.package, verb.word),
        Seed::Absent,
        vec![listed, help],
    ));
    all
}

fn add(tool: &Tool, word: &str) -> Vec<Promise> {
    let entity = &tool.entity;
    vec![
        session(
            format!("`{word} TEXT` stores the text, prints its number, and numbers go up"),
            Seed::Absent,
            vec![
                Step::tool(tool, &[word, "buy milk"]).prints(format!("{entity} 1")).keeps("buy milk"),
                Step::tool(tool, &[word, "café", "☕"])
                    .prints(format!("{entity} 2"))
                    .keeps("café ☕")
                    .keeps("buy milk"),
            ],
        ),
        session(
            format!("`{word}` refuses an empty text with exit code 1 and stores nothing"),
            Seed::TwoItems,
            vec![Step::tool(tool, &[word, "  "]).fails(1, "the text is empty").keeps("\"next_id\": 3")],
        ),
    ]
}

fn reading(tool: &Tool, verb: Verb) -> Vec<Promise> {
    let (word, entity) = (verb.word, &tool.entity);
    let (first, second) = (format!("1. first {entity}"), format!("2. second {entity} ☕"));
    match verb.action {
        Action::List => vec![
            session(
                format!("`{word}` shows every {entity} with its number, in order"),
                Seed::TwoItems,
                vec![Step::tool(tool, &[word]).prints(format!("{first}\n{second}\n"))],
            ),
            session(
                format!("`{word}` on an empty store says so and exits 0"),
                Seed::Absent,
                vec![Step::tool(tool, &[word]).prints(format!("There are no {} yet.", tool.plural))],
            ),
            session(
                format!("`{word}` on a corrupt data file exits 1 with a clear message and leaves the file as it was"),
                Seed::Corrupt,
                vec![Step::tool(tool, &[word]).fails(1, "it was left as it is").keeps("not json")],
            ),
        ],
        Action::Count => vec![
            session(
                format!("`{word}` prints the number of {}", tool.plural),
                Seed::TwoItems,
                vec![Step::tool(tool, &[word]).prints("2\n")],
            ),
            session(
                format!("`{word}` on an empty store prints 0"),
                Seed::Absent,
                vec![Step::tool(tool, &[word]).prints("0\n")],
            ),
        ],
        _ => vec![
            session(
                format!("`{word} NUMBER` shows that {entity} and no other"),
                Seed::TwoItems,
                vec![Step::tool(tool, &[word, "2"]).prints(second).hides(first)],
            ),
            absent_number(tool, verb, &[]),
        ],
    }
}

fn search(tool: &Tool, word: &str) -> Vec<Promise> {
    let entity = &tool.entity;
    vec![
        session(
            format!("`{word} TEXT` shows exactly the {} that contain the text, whatever its case", tool.plural),
            Seed::TwoItems,
            vec![Step::tool(tool, &[word, "SECOND"]).prints(format!("2. second {entity} ☕")).hides("1. first")],
        ),
        session(
            format!("`{word}` without a match says so and exits 1"),
            Seed::TwoItems,
            vec![Step::tool(tool, &[word, "absent"]).fails(1, "contains 'absent'").hides("1. first")],
        ),
    ]
}

fn changing(tool: &Tool, verb: Verb) -> Vec<Promise> {
    let (word, entity) = (verb.word, &tool.entity);
    let (first, second) = (format!("first {entity}"), format!("second {entity} ☕"));
    let (text, step, more): (String, Step, &[&str]) = match verb.action {
        Action::Edit => (
            format!("`{word} NUMBER TEXT` changes that text and no other"),
            Step::tool(tool, &[word, "1", "better wording"]).keeps("better wording").drops(first).keeps(second),
            &["x"],
        ),
        Action::Tag => (
            format!("`{word} NUMBER TAG` puts the tag on that {entity} and shows it"),
            Step::tool(tool, &[word, "1", "home"]).prints("#home").keeps("\"home\"").keeps(second),
            &["x"],
        ),
        Action::Done => (
            format!("`{word} NUMBER` marks that {entity} as done"),
            Step::tool(tool, &[word, "1"]).prints(format!("Done: {entity} 1")).keeps("\"done\": true").keeps(second),
            &[],
        ),
        _ => (
            format!("`{word} NUMBER` removes that {entity} and no other"),
            Step::tool(tool, &[word, "1"]).prints(format!("Removed {entity} 1")).drops(first).keeps(second),
            &[],
        ),
    };
    vec![session(text, Seed::TwoItems, vec![step]), absent_number(tool, verb, more)]
}

fn absent_number(tool: &Tool, verb: Verb, more: &[&str]) -> Promise {
    let mut args = vec![verb.word, "99"];
    args.extend(more);
    let step = Step::tool(tool, &args).fails(1, &format!("there is no {} 99", tool.entity));
    let text = format!("`{}` with a number that is not there exits 1, says so and changes nothing", verb.word);
    session(
        text,
        Seed::TwoItems,
        vec![step.keeps(format!("first {}", tool.entity)).keeps(format!("second {} ☕", tool.entity))],
    )
}

fn export(tool: &Tool, word: &str) -> Vec<Promise> {
    let check = "import json, sys\nprint(len(json.load(open(sys.argv[1], encoding='utf-8'))), 'rows')";
    vec![
        session(
            format!("`{word}` prints all {} as a JSON list", tool.plural),
            Seed::TwoItems,
            vec![Step::tool(tool, &[word]).prints("\"id\": 2").prints(format!("second {} ☕", tool.entity))],
        ),
        session(
            format!("`{word} FILE` writes a new file of valid JSON and never overwrites one"),
            Seed::TwoItems,
            vec![
                Step::tool(tool, &[word, "{dir}/out.json"]),
                Step::python(&["-c", check, "{dir}/out.json"]).prints("2 rows"),
                Step::tool(tool, &[word, "{dir}/out.json"]).fails(1, "cannot write"),
            ],
        ),
    ]
}

fn import(tool: &Tool, word: &str) -> Vec<Promise> {
    let write = "import sys\nopen(sys.argv[1], 'w', encoding='utf-8').write(sys.argv[2])";
    vec![
        session(
            format!("`{word} FILE` adds the entries of a JSON list under new numbers"),
            Seed::TwoItems,
            vec![
                Step::python(&["-c", write, "{dir}/in.json", "[{\"id\": 1, \"text\": \"from outside\"}]"]),
                Step::tool(tool, &[word, "{dir}/in.json"])
                    .keeps("\"id\": 3")
                    .keeps("from outside")
                    .keeps(format!("first {}", tool.entity)),
            ],
        ),
        session(
            format!("`{word}` refuses a file with a bad entry as a whole, with exit code 1"),
            Seed::TwoItems,
            vec![
                Step::python(&["-c", write, "{dir}/in.json", "[\"good\", 5]"]),
                Step::tool(tool, &[word, "{dir}/in.json"]).fails(1, "entry 2").keeps("\"next_id\": 3").drops("good"),
            ],
        ),
    ]
}

fn guide(tool: &Tool) -> Vec<Promise> {
    let words: Vec<&str> = tool.verbs.iter().map(|verb| verb.word).collect();
    let mut help = Step::tool(tool, &["--help"]);
    help.out = words.iter().map(|word| format!("\n    {word}")).collect();
    vec![
        Promise { text: format!("README.md shows a call of each command: {}", words.join(", ")), probe: Probe::Readme },
        session(format!("`{} --help` lists all of them", tool.package), Seed::Absent, vec![help]),
    ]
}
