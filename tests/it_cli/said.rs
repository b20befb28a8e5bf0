//! What a finished client must have said.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use harness_tests::{RepoKind, TestEnv};
use serde_json::Value;

/// Goal that the built-in agent can reach.
pub(crate) const GOAL: &str = "a notes command-line tool: add, list, search, with tests";

/// A finished client.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }
}

impl Said {
    /// Refused with this exit code and symbolic code: three lines on stderr, none of them empty, nothing on stdout.
    #[track_caller]
    pub(crate) fn refused(&self, exit: i32, code: &str) -> &Self {
        assert_eq!(self.code, exit, "{self:?}");
        let lines: Vec<&str> = self.err.lines().filter(|line| !line.starts_with("note:")).collect();
        let begins = [format!("error[{code}]: "), "why:  ".to_owned(), "next: ".to_owned()];
        let tail = &lines[lines.len().saturating_sub(3)..];
        assert_eq!(tail.len(), 3, "{self:?}");
        for (line, begin) in tail.iter().zip(&begins) {
            assert!(line.starts_with(begin) && line.len() > begin.len(), "{begin}: {self:?}");
        }
        assert!(!tail[2].contains('…'), "the next command can be typed: {self:?}");
        if !self.out.is_empty() {
            let error = &self.json()["error"];
            assert_eq!(error["code"], code, "{self:?}");
            for member in ["detail", "why", "next"] {
                assert!(error[member].as_str().is_some_and(|text| !text.is_empty()), "{member}: {self:?}");
            }
        }
        self
    }

    /// What it printed as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// Ended with this code.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// The client, not started yet.
pub(crate) fn client<S: AsRef<OsStr>>(env: &TestEnv, args: &[S]) -> Command {
    let mut command = env.command(env.bin().join("harnessctl"));
    command.args(args);
    command
}

/// Runs the client to its end.
pub(crate) fn ctl<S: AsRef<OsStr>>(env: &TestEnv, args: &[S]) -> Said {
    client(env, args).output().expect("harnessctl starts").into()
}

/// Arguments of `create-launch` for a repository.
pub(crate) fn launch_args<'a>(repo: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let repo = repo.to_str().expect("a test's path is text");
    let mut args = vec!["create-launch", "--repo", repo, "--original-goal", GOAL, "--goal", GOAL, "--scope", "."];
    args.extend(["--agent", "offline"]);
    args.extend(more);
    args
}

/// A plain repository with a registered run, and its id.
pub(crate) fn registered(env: &TestEnv) -> (PathBuf, String) {
    let repo = env.repo("repo", RepoKind::Plain);
    let answer = ctl(env, &launch_args(&repo, &["--json"])).ended(0).json();
    (repo, answer["run_id"].as_str().expect("an id").to_owned())
}
