//! The whole tool at work: the session its end-to-end test runs and the usage text that shows it.

use super::goal::{Action, Tool, Verb};

/// The order in which a session uses the commands: each finds what it needs and nothing that a later one expects is gone.
const ORDER: [Action; 11] = [
    Action::Add,
    Action::List,
    Action::Search,
    Action::Show,
    Action::Count,
    Action::Edit,
    Action::Tag,
    Action::Done,
    Action::Export,
    Action::Import,
    Action::Remove,
];

/// Returns the commands in session order.
fn ordered(tool: &Tool) -> Vec<Verb> {
    let of = |action: &Action| tool.verbs.iter().filter(|verb| verb.action == *action).copied().collect::<Vec<_>>();
    ORDER.iter().flat_map(of).collect()
}

/// Fills the session into the end-to-end test, whose other placeholders are filled already.
pub(super) fn end_to_end(tool: &Tool, template: &str) -> String {
    let names: Vec<String> = tool.verbs.iter().map(|verb| format!("\"{}\"", verb.word)).collect();
    let names = if names.len() == 1 { format!("{},", names[0]) } else { names.join(", ") };
    let probe = tool.verbs.first().map_or(String::new(), |verb| match verb.action {
        Action::List | Action::Count | Action::Export => format!("\"{}\"", verb.word),
        Action::Add | Action::Search => format!("\"{}\", \"x\"", verb.word),
        Action::Show | Action::Done | Action::Remove => format!("\"{}\", \"1\"", verb.word),
        Action::Edit | Action::Tag => format!("\"{}\", \"1\", \"x\"", verb.word),
        Action::Import => format!("\"{}\", str(self.path)", verb.word),
    });
    template.replace("@NAMES@", &names).replace("@SESSION@\n", &session(tool)).replace("@PROBE@", &probe)
}

fn session(tool: &Tool) -> String {
    let (entity, verbs) = (&tool.entity, ordered(tool));
    let mut body = String::new();
    let mut line = |text: String| {
        body.push_str(&format!("        {text}\n"));
    };
    if !verbs.iter().any(|verb| verb.action == Action::Add) {
        line(format!(
            "items = [{{\"id\": 1, \"text\": \"first {entity}\"}}, {{\"id\": 2, \"text\": \"second {entity} ☕\"}}]"
        ));
        line(
            "self.path.write_text(json.dumps({\"version\": 1, \"next_id\": 3, \"items\": items}), encoding=\"utf-8\")"
                .to_owned(),
        );
    }
    for verb in verbs {
        for text in steps(verb, entity) {
            line(text);
        }
    }
    line("self.assertEqual(json.loads(self.path.read_text(encoding=\"utf-8\"))[\"version\"], 1)".to_owned());
    body.push('\n');
    body
}

fn steps(verb: Verb, entity: &str) -> Vec<String> {
    let word = verb.word;
    match verb.action {
        Action::Add => vec![
            format!("self.assertIn(\"{entity} 1\", self.tool(\"{word}\", \"first {entity}\"))"),
            format!("self.assertIn(\"{entity} 2\", self.tool(\"{word}\", \"second {entity} ☕\"))"),
        ],
        Action::List => {
            vec![format!("self.assertEqual(self.tool(\"{word}\"), \"1. first {entity}\\n2. second {entity} ☕\\n\")")]
        }
        Action::Search => vec![
            format!("self.assertEqual(self.tool(\"{word}\", \"SECOND\"), \"2. second {entity} ☕\\n\")"),
            format!("self.assertEqual(self.tool(\"{word}\", \"absent\", code=1), \"\")"),
        ],
        Action::Show => vec![
            format!("self.assertEqual(self.tool(\"{word}\", \"1\"), \"1. first {entity}\\n\")"),
            format!("self.tool(\"{word}\", \"99\", code=1)"),
        ],
        Action::Count => vec![format!("self.assertEqual(self.tool(\"{word}\"), \"2\\n\")")],
        Action::Edit => vec![format!("self.assertIn(\"better\", self.tool(\"{word}\", \"1\", \"better {entity}\"))")],
        Action::Tag => vec![format!("self.assertIn(\"#home\", self.tool(\"{word}\", \"2\", \"home\"))")],
        Action::Done => vec![format!("self.assertIn(\"Done\", self.tool(\"{word}\", \"2\"))")],
        Action::Export => {
            vec![format!("self.assertEqual([row[\"id\"] for row in json.loads(self.tool(\"{word}\"))], [1, 2])")]
        }
        Action::Import => vec![
            "source = self.folder / \"in.json\"".to_owned(),
            format!("source.write_text(json.dumps([\"third {entity}\"]), encoding=\"utf-8\")"),
            format!("self.assertIn(\"1\", self.tool(\"{word}\", str(source)))"),
            format!("self.assertIn(\"third {entity}\", self.path.read_text(encoding=\"utf-8\"))"),
        ],
        Action::Remove => vec![
            format!("self.assertIn(\"Removed\", self.tool(\"{word}\", \"1\"))"),
            format!("self.tool(\"{word}\", \"1\", code=1)"),
        ],
    }
}

/// Returns the README with the tool's section put in or renewed; what else it holds stays as it is.
pub(super) fn readme(tool: &Tool, modules: &[String], before: &str) -> String {
    let (open, close) = (format!("<!-- {}: usage -->", tool.package), format!("<!-- {}: end -->", tool.package));
    let section = format!("{open}\n{}{close}\n", usage(tool, modules));
    if let (Some(start), Some(end)) = (before.find(&open), before.find(&close))
        && start < end
    {
        let rest = before[end + close.len()..].trim_start_matches('\n');
        let gap = if rest.is_empty() { "" } else { "\n" };
        return format!("{}{section}{gap}{rest}", &before[..start]);
    }
    if before.trim().is_empty() {
        return section;
    }
    format!("{}\n\n{section}", before.trim_end())
}

fn usage(tool: &Tool, modules: &[String]) -> String {
    let (package, entity) = (&tool.package, &tool.entity);
    let mut text = format!(
        "# {package}\n\nA command-line tool that keeps {} in one JSON file. It needs Python 3.9 or newer and nothing else.\n\n```sh\n",
        tool.plural
    );
    for verb in ordered(tool) {
        let word = verb.word;
        let (arguments, meaning) = match verb.action {
            Action::Add => (format!(" \"first {entity}\""), format!("add {}", tool.one())),
            Action::List => (String::new(), format!("list all {}", tool.plural)),
            Action::Search => (" first".to_owned(), "show what contains a text, whatever its case".to_owned()),
            Action::Show => (" 1".to_owned(), format!("show one {entity}")),
            Action::Count => (String::new(), format!("print how many {} there are", tool.plural)),
            Action::Edit => (" 1 \"better wording\"".to_owned(), "change a text".to_owned()),
            Action::Tag => (" 1 home".to_owned(), "put tags on one".to_owned()),
            Action::Done => (" 1".to_owned(), "mark one as done".to_owned()),
            Action::Export => (" backup.json".to_owned(), "write all as a JSON list".to_owned()),
            Action::Import => (" backup.json".to_owned(), "add from a JSON list".to_owned()),
            Action::Remove => (" 1".to_owned(), "remove one".to_owned()),
        };
        text.push_str(&format!("python3 -m {package} {word}{arguments}  # {meaning}\n"));
    }
    // Tests of something else beside ours may need what this tool does not: then ours are named one by one.
    let with_package = format!("tests.test_{package}_");
    let tests = if modules.iter().any(|module| module.starts_with(&with_package)) {
        format!("python3 -m unittest {}", modules.join(" "))
    } else {
        "python3 -m unittest discover -t . -s tests".to_owned()
    };
    text.push_str(&format!(
        "```\n\nThe file is `--file PATH`, else `${}`, else `~/.{package}.json`. It is replaced as a whole, so a crash leaves the old or the new \
         content; a file that is not understood is reported and left as it is.\nExit codes: 0 done, 1 it could not be done (the message says \
         why), 2 wrong usage.\n\nThe tests: `{tests}`\n",
        tool.variable()
    ));
    text
}
