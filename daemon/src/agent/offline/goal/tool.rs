//! The tool a goal asks for, and the names that follow from it.

use std::path::Path;

use super::noun;
use super::verb::Verb;

/// A command-line tool that keeps one kind of thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// The Python package and the name of the program.
    pub package: String,
    /// One thing, for texts: `note`, `shopping item`.
    pub entity: String,
    /// Several of them.
    pub plural: String,
    /// The commands in the order of the goal, at least one.
    pub verbs: Vec<Verb>,
}

impl Tool {
    /// Returns the environment variable that names the data file.
    pub(in crate::agent::offline) fn variable(&self) -> String {
        format!("{}_FILE", self.package.to_uppercase())
    }

    /// Returns `a note` or `an entry`.
    pub(in crate::agent::offline) fn one(&self) -> String {
        format!("{} {}", noun::article(&self.entity), self.entity)
    }

    /// Says whether the tree holds a package of this layout; `Err` when the name is taken by something else.
    pub(in crate::agent::offline) fn installed(&self, tree: &Path) -> Result<bool, String> {
        let package = tree.join(&self.package);
        if std::fs::symlink_metadata(&package).is_err() && !tree.join(format!("{}.py", self.package)).exists() {
            return Ok(false);
        }
        let init = std::fs::read_to_string(package.join("__init__.py")).unwrap_or_default();
        if init.contains("LAYOUT = \"command-modules/1\"") {
            return Ok(true);
        }
        Err(format!(
            "`{0}` exists in this repository and was not laid out by the offline agent, which does not overwrite it; \
             choose another name with `called NAME` in the goal",
            self.package
        ))
    }

    /// Says whether the tree has the command.
    pub(in crate::agent::offline) fn has_command(&self, tree: &Path, verb: Verb) -> bool {
        tree.join(format!("{}/commands/{}.py", self.package, verb.module())).is_file()
    }
}
