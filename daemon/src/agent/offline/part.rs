//! The parts of a tool: one task each, with files no other task touches.

use std::path::Path;

use super::goal::{Tool, Verb};
use super::turn::Task;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// The package, the store and the command line that finds the commands.
    Storage,
    /// One command.
    Command(Verb),
    /// The usage text and the test of the whole.
    Guide,
}

/// How test modules are named: plain, or with the package where the plain name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TestNames {
    Plain,
    WithPackage,
}

impl TestNames {
    /// Chooses the plain name unless it belongs to something else in the tree, or an earlier run chose otherwise.
    pub(super) fn choose(tool: &Tool, part: Part, tree: &Path) -> Self {
        if tree.join(part.test_file(tool, Self::WithPackage)).exists() {
            return Self::WithPackage;
        }
        match std::fs::read_to_string(tree.join(part.test_file(tool, Self::Plain))) {
            Ok(text) if !text.trim().is_empty() && !belongs_to(tool, &text) => Self::WithPackage,
            _ => Self::Plain,
        }
    }
}

/// Returns the test modules of the whole tool, the end-to-end test last.
pub(super) fn all_modules(tool: &Tool, tree: &Path) -> Vec<String> {
    let commands = tool.verbs.iter().copied().map(Part::Command);
    let parts = std::iter::once(Part::Storage).chain(commands).chain([Part::Guide]);
    parts.map(|part| part.test_module(tool, TestNames::choose(tool, part, tree))).collect()
}

/// Says whether a test file's text is a test of this tool.
pub(super) fn belongs_to(tool: &Tool, text: &str) -> bool {
    let package = &tool.package;
    text.contains(&format!("from {package}.testing import"))
        || text.contains(&format!("from {package} import __version__"))
}

impl Part {
    fn stem(self) -> &'static str {
        match self {
            Self::Storage => "store",
            Self::Command(verb) => verb.word,
            Self::Guide => "end_to_end",
        }
    }

    pub(super) fn test_file(self, tool: &Tool, names: TestNames) -> String {
        match names {
            TestNames::Plain => format!("tests/test_{}.py", self.stem()),
            TestNames::WithPackage => format!("tests/test_{}_{}.py", tool.package, self.stem()),
        }
    }

    /// Returns the module path that unittest takes.
    pub(super) fn test_module(self, tool: &Tool, names: TestNames) -> String {
        self.test_file(tool, names).trim_end_matches(".py").replace('/', ".")
    }

    /// Returns every file the part writes.
    pub(super) fn files(self, tool: &Tool, names: TestNames) -> Vec<String> {
        let package = &tool.package;
        let mut files = match self {
            Self::Storage => {
                let inside = ["__init__.py", "__main__.py", "cli.py", "commands/__init__.py", "store.py", "testing.py"];
                let mut files = vec![".gitignore".to_owned()];
                files.extend(inside.iter().map(|file| format!("{package}/{file}")));
                files.push("tests/__init__.py".to_owned());
                files
            }
            Self::Command(verb) => vec![format!("{package}/commands/{}.py", verb.module())],
            Self::Guide => vec!["README.md".to_owned()],
        };
        files.push(self.test_file(tool, names));
        files
    }

    /// Finds out which part a task is, by the files it says it touches; for a task a person wrote without files, by
    /// a command it names in its title.
    pub(super) fn of_task(tool: &Tool, task: &Task) -> Option<(Self, TestNames)> {
        let mut candidates = vec![Self::Storage, Self::Guide];
        candidates.extend(Verb::words().into_iter().filter_map(Verb::parse).map(Self::Command));
        for part in &candidates {
            for names in [TestNames::Plain, TestNames::WithPackage] {
                if task.files_touched.contains(&part.test_file(tool, names)) {
                    return Some((*part, names));
                }
            }
        }
        if !task.files_touched.is_empty() {
            return None;
        }
        let quoted = candidates
            .into_iter()
            .find(|part| matches!(part, Self::Command(verb) if task.title.contains(&format!("`{}`", verb.word))))?;
        Some((quoted, TestNames::Plain))
    }
}
