//! How a check becomes a process and how its end is told.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use harness_core::evidence::CommandExit;
use harness_proto::plan::{Check, CommandLine};
use regex::Regex;

use super::environment::find_program;
use crate::process::{Cause, Exit, Network, SpawnError, Wall};

/// Exit code of a command whose folder cannot be used, as shells tell "found, cannot run".
const CANNOT_RUN: i32 = 126;
/// Exit code of a shell for a program that it does not find.
const NOT_FOUND: i32 = 127;

/// The words to execute: an argv as it is, a text through the `sh` of the allow-listed `PATH`; none when there is no `sh`.
pub(super) fn argv(check: &Check, env: &[(OsString, OsString)]) -> Option<Vec<OsString>> {
    match &check.command {
        CommandLine::Argv(words) => Some(words.iter().map(OsString::from).collect()),
        CommandLine::Cmd(text) => Some(vec![find_program(env, "sh")?, "-c".into(), text.into()]),
    }
}

/// The environment of one command: the allow-list, then `CI` and `TMPDIR`, then the check's own variables. Names beginning with
/// `HARNESS_` are the runtime's; a check cannot set them.
pub(super) fn environment(check: &Check, env: &[(OsString, OsString)], tmp: &Path) -> Vec<(OsString, OsString)> {
    let mut all: std::collections::BTreeMap<OsString, OsString> = env.iter().cloned().collect();
    all.insert("CI".into(), "1".into());
    all.insert("TMPDIR".into(), tmp.into());
    let own = check
        .env
        .iter()
        .filter(|(name, _)| !name.is_empty() && !name.starts_with("HARNESS_") && !name.contains(['=', '\0']));
    all.extend(own.map(|(name, value)| (OsString::from(name), OsString::from(value.replace('\0', "")))));
    all.into_iter().collect()
}

/// The folder to run in, by its real path.
///
/// # Errors
/// Why not, in words: it is not there, it is no folder, it leads out of the tree.
pub(super) fn folder(check: &Check, tree: &Path) -> Result<PathBuf, String> {
    let Some(wanted) = &check.cwd else { return Ok(tree.to_owned()) };
    let found = tree
        .join(wanted)
        .canonicalize()
        .map_err(|error| format!("working directory `{wanted}` cannot be used: {error}"))?;
    if !found.starts_with(tree) {
        return Err(format!("working directory `{wanted}` leads out of the tree"));
    }
    if !found.is_dir() {
        return Err(format!("working directory `{wanted}` is no folder"));
    }
    Ok(found)
}

/// The wall with this command's word on the network.
pub(super) fn wall(wall: &Wall, network: bool) -> Wall {
    let mut wall = wall.clone();
    if let Wall::Confined(confined) = &mut wall {
        confined.network = if network { Network::Allowed } else { Network::Denied };
    }
    wall
}

/// How a command that did not start counts, and what to show as its error output.
pub(super) fn not_started(error: &SpawnError) -> (CommandExit, String) {
    match error {
        SpawnError::MissingProgram { program, .. } | SpawnError::NotExecutable { program, .. } => {
            (CommandExit::MissingProgram(program.clone()), error.to_string())
        }
        // The folder was there a moment ago: the tree's doing, not the machine's.
        SpawnError::BadCwd { .. } => (CommandExit::Code(CANNOT_RUN), error.to_string()),
        SpawnError::EmptyCommand
        | SpawnError::WallUnavailable { .. }
        | SpawnError::BadOutput { .. }
        | SpawnError::BadLimit { .. }
        | SpawnError::Launcher { .. }
        | SpawnError::LauncherFailed { .. } => (CommandExit::NotStarted(error.to_string()), error.to_string()),
    }
}

/// How a command whose folder cannot be used counts: the tree lacks what the check names, so it is a plain failure.
pub(super) fn no_folder() -> CommandExit {
    CommandExit::Code(CANNOT_RUN)
}

/// How a command ended, and a remark for its error output when the runtime ended it.
pub(super) fn ended(exit: &Exit, stderr: &str, shell: bool, timeout_s: u32) -> (CommandExit, Option<String>) {
    match exit.cause {
        Cause::MaxWall => (CommandExit::TimedOut, Some(format!("killed by the runtime after {timeout_s} s"))),
        Cause::TooManyProcesses => {
            (CommandExit::Signal(9), Some("killed by the runtime: too many processes".to_owned()))
        }
        // Only the backstop kills: the launcher did not keep its own limit.
        Cause::KilledByUs => (CommandExit::TimedOut, Some(format!("killed by the runtime after {timeout_s} s"))),
        Cause::LifelineLost => (CommandExit::NotStarted("the launcher lost the daemon".to_owned()), None),
        Cause::NotStarted => (CommandExit::NotStarted("the launcher could not start it".to_owned()), None),
        Cause::Exited | Cause::Signalled | Cause::OutputHolderKilled => match (exit.code, exit.signal) {
            (Some(code @ (CANNOT_RUN | NOT_FOUND)), _) if shell => match missing_program(stderr, code) {
                Some(program) => (CommandExit::MissingProgram(program), None),
                None => (CommandExit::Code(code), None),
            },
            (Some(code), _) => (CommandExit::Code(code), None),
            (None, Some(signal)) => (CommandExit::Signal(signal), None),
            (None, None) => (CommandExit::NotStarted("its end was not recorded".to_owned()), None),
        },
    }
}

/// The program that a shell says it cannot find (127) or execute (126): `sh: 1: foo: not found`,
/// `sh: line 1: foo: command not found`, `zsh:1: command not found: foo`, `env: 'foo': No such file or directory`.
fn missing_program(stderr: &str, code: i32) -> Option<String> {
    static NOT_THERE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?m)^[^\n]*?: (?:(?:line )?\d+: )?(?P<a>[^\n:]+): (?:command )?not found[ \r]*$",
            r"|^[^\n]*: command not found: (?P<b>[^\n:]+?)[ \r]*$",
            r"|^[^\n]*env: [‘'`]?(?P<c>[^\n:’']+)[’']?: No such file or directory[ \r]*$",
        ))
        .expect("the pattern is constant")
    });
    static NOT_ALLOWED: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^[^\n]*?: (?:(?:line )?\d+: )?(?P<a>[^\n:]+): (?:Permission denied|cannot execute[^\n]*|Exec format error)[ \r]*$")
            .expect("the pattern is constant")
    });
    let pattern = if code == NOT_FOUND { &NOT_THERE } else { &NOT_ALLOWED };
    let found = pattern.captures_iter(stderr).last()?;
    let name = found.name("a").or_else(|| found.name("b")).or_else(|| found.name("c"))?;
    Some(name.as_str().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: i32, stderr: &str, wanted: Option<&str>) {
        assert_eq!(missing_program(stderr, code).as_deref(), wanted, "{stderr}");
    }

    #[test]
    fn shells_tell_which_program_is_missing() {
        check(127, "sh: 1: foo: not found\n", Some("foo"));
        check(127, "noise\n/bin/sh: line 12: ./run.sh: command not found\nmore\n", Some("./run.sh"));
        check(127, "zsh:1: command not found: foo", Some("foo"));
        check(127, "/usr/bin/env: ‘python9’: No such file or directory\n", Some("python9"));
        check(127, "error: module x was not found by us\n", None);
        check(126, "sh: 1: ./x: Permission denied\n", Some("./x"));
        check(126, "sh: 1: foo: not found\n", None);
    }

    #[test]
    fn the_runtimes_variables_cannot_be_set_by_a_check() {
        let mut one = Check::shell("x");
        one.env = [("HARNESS_ROLE", "planner"), ("CI", "0"), ("A", "1"), ("B=C", "2")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let env = environment(&one, &[("PATH".into(), "/bin".into())], Path::new("/t"));
        let text: Vec<_> = env.iter().map(|(n, v)| format!("{}={}", n.display(), v.display())).collect();
        assert_eq!(text, ["A=1", "CI=0", "PATH=/bin", "TMPDIR=/t"]);
    }
}
