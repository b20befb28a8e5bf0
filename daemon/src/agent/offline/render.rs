//! Generates the files of a part from the templates in `python/`, filled in for the tool at hand.

use std::path::Path;

use super::goal::{Action, Tool, Verb};
use super::part::{self, Part, TestNames};
use super::session;

/// One file to write: path relative to the tree, whole new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SourceFile {
    pub(super) path: String,
    pub(super) text: String,
}

/// What git must not see of a Python project.
const IGNORED: &str = "__pycache__/";

/// Returns the files of a part. The tree is read where a file is shared with the user (`README.md`, `.gitignore`).
pub(super) fn files(tool: &Tool, part: Part, names: TestNames, tree: &Path) -> Result<Vec<SourceFile>, String> {
    let test = part.test_file(tool, names);
    let package = &tool.package;
    let mut files = Vec::new();
    let mut push = |path: String, text: String| files.push(SourceFile { path, text });
    match part {
        Part::Storage => {
            push(".gitignore".to_owned(), gitignore(&read_shared(&tree.join(".gitignore"))?));
            for (name, template) in PACKAGE {
                push(format!("{package}/{name}"), fill(template, tool, ""));
            }
            if !tree.join("tests/__init__.py").exists() {
                push("tests/__init__.py".to_owned(), String::new());
            }
            push(test, fill(include_str!("python/tests/store.py"), tool, ""));
        }
        Part::Command(verb) => {
            let (code, tests) = command_templates(verb.action);
            push(format!("{package}/commands/{}.py", verb.module()), fill(code, tool, verb.word));
            push(test, fill(tests, tool, verb.word));
        }
        Part::Guide => {
            let whole = with_commands_of(tool, tree);
            push(
                "README.md".to_owned(),
                session::readme(&whole, &part::all_modules(&whole, tree), &read_shared(&tree.join("README.md"))?),
            );
            push(test, session::end_to_end(&whole, &fill(include_str!("python/tests/end_to_end.py"), tool, "")));
        }
    }
    Ok(files)
}

/// Returns the tool with the commands the tree has besides those of the goal.
pub(super) fn with_commands_of(tool: &Tool, tree: &Path) -> Tool {
    let mut whole = tool.clone();
    for verb in Verb::words().into_iter().filter_map(Verb::parse) {
        if tool.has_command(tree, verb) && !whole.verbs.contains(&verb) {
            whole.verbs.push(verb);
        }
    }
    whole
}

fn read_shared(path: &Path) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("cannot read `{}`: {error}", path.display())),
    }
}

fn gitignore(before: &str) -> String {
    if before.lines().any(|line| matches!(line.trim(), "__pycache__/" | "__pycache__" | "**/__pycache__/")) {
        return before.to_owned();
    }
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
    format!("{before}{gap}{IGNORED}\n")
}

/// Puts the tool's names into a template.
fn fill(template: &str, tool: &Tool, command: &str) -> String {
    let mut capital = tool.entity.clone();
    if let Some(first) = capital.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let one = tool.one();
    let article = one.split(' ').next().unwrap_or("a");
    template
        .replace("@PKG@", &tool.package)
        .replace("@ENTITY_CAP@", &capital)
        .replace("@ENTITY@", &tool.entity)
        .replace("@PLURAL@", &tool.plural)
        .replace("@ENV@", &tool.variable())
        .replace("@AN@", article)
        .replace("@NAME@", command)
}

const PACKAGE: [(&str, &str); 6] = [
    ("__init__.py", include_str!("python/__init__.py")),
    ("__main__.py", include_str!("python/__main__.py")),
    ("cli.py", include_str!("python/cli.py")),
    ("commands/__init__.py", include_str!("python/commands/__init__.py")),
    ("store.py", include_str!("python/store.py")),
    ("testing.py", include_str!("python/testing.py")),
];

/// Returns the templates of a command and of its tests.
fn command_templates(action: Action) -> (&'static str, &'static str) {
    macro_rules! pair {
        ($name:literal) => {
            (
                include_str!(concat!("python/commands/", $name, ".py")),
                include_str!(concat!("python/tests/", $name, ".py")),
            )
        };
    }
    match action {
        Action::Add => pair!("add"),
        Action::List => pair!("list"),
        Action::Search => pair!("search"),
        Action::Show => pair!("show"),
        Action::Count => pair!("count"),
        Action::Edit => pair!("edit"),
        Action::Tag => pair!("tag"),
        Action::Done => pair!("done"),
        Action::Export => pair!("export"),
        Action::Import => pair!("import"),
        Action::Remove => pair!("remove"),
    }
}
