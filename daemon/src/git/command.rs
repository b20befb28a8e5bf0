//! The one way git is started: explicit repository, scrubbed environment, deadline, bounded output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::child::{drive, tail};
use super::env::UserEnv;
use super::error::GitError;
use super::parse;

/// A git version, by its first two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct GitVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
}

impl fmt::Display for GitVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The oldest git that works: 2.41 brought `--attr-source`, without which a merge in a bare repository
/// ignores `.gitattributes`; `merge-tree --write-tree --merge-base` came with 2.40.
pub const MINIMUM: GitVersion = GitVersion { major: 2, minor: 41 };

/// How long a command may take unless said otherwise: a checkout of a very big tree on a slow disk.
const DEADLINE: Duration = Duration::from_secs(600);
/// How much a command may print: lists of a few hundred thousand paths.
const MAX_OUTPUT: usize = 256 << 20;
/// Settings that hold for every command, whatever any configuration file says.
const ALWAYS: &[&str] = &[
    "core.fsync=all",
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.splitIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
    "diff.ignoreSubmodules=none",
    "protocol.file.allow=always",
    // Older versions refuse to fetch a commit by its id.
    "protocol.version=2",
    "advice.detachedHead=false",
];

/// Returns the version of git on PATH.
///
/// Errors: [`GitError::TooOld`] below [`MINIMUM`], [`GitError::Spawn`] when there is none.
pub fn version() -> Result<GitVersion, GitError> {
    let out = Git::without_repository(&UserEnv::from_process()).args(["version"]).run()?;
    let found = parse::version(&out.stdout).ok_or_else(|| GitError::Unreadable {
        command: "version".to_owned(),
        detail: String::from_utf8_lossy(&out.stdout).into_owned(),
    })?;
    if found < MINIMUM { Err(GitError::TooOld { found }) } else { Ok(found) }
}

/// What a command answered.
#[derive(Debug)]
pub(super) struct Output {
    /// Exit code, one of those the caller allowed.
    pub(super) code: i32,
    /// Standard output.
    pub(super) stdout: Vec<u8>,
}

impl Output {
    /// Standard output as one trimmed line.
    pub(super) fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches(['\n', '\0']).to_owned()
    }
}

/// One git command being built.
pub(super) struct Git {
    command: Command,
    globals: Vec<OsString>,
    args: Vec<OsString>,
    stdin: Vec<u8>,
    allowed: &'static [i32],
    deadline: Duration,
    max_output: usize,
}

impl Git {
    #[expect(clippy::disallowed_methods, reason = "the one spawn site of git")]
    fn new(env: &UserEnv) -> Self {
        let mut command = Command::new("git");
        command.env_clear().envs(env.all().iter().cloned());
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "true")
            .env("SSH_ASKPASS", "true")
            .env("GIT_EDITOR", "true")
            .env("GIT_PAGER", "cat")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_DEFAULT_REF_FORMAT", "files")
            .env("GIT_LITERAL_PATHSPECS", "1");
        Self {
            command,
            globals: Vec::new(),
            args: Vec::new(),
            stdin: Vec::new(),
            allowed: &[0],
            deadline: DEADLINE,
            max_output: MAX_OUTPUT,
        }
    }

    /// A command about no repository at all.
    pub(super) fn without_repository(env: &UserEnv) -> Self {
        let mut git = Self::new(env);
        git.no_outside_config();
        git.command.current_dir("/");
        git
    }

    /// The one command that looks for a repository, from `start` upwards, with the user's configuration
    /// (so that `safe.directory` holds).
    pub(super) fn discovering(start: &Path, env: &UserEnv) -> Self {
        let mut git = Self::new(env);
        git.command.envs(env.as_user().iter().cloned()).current_dir(start);
        git
    }

    /// A command on `git_dir` that reads no configuration but the repository's own.
    pub(super) fn isolated(git_dir: &Path, env: &UserEnv) -> Self {
        let mut git = Self::new(env);
        git.no_outside_config();
        git.repository(git_dir);
        git
    }

    /// A command on `git_dir` under the user's own configuration: for landing and for reading that configuration.
    pub(super) fn as_user(git_dir: &Path, env: &UserEnv) -> Self {
        let mut git = Self::new(env);
        git.command.envs(env.as_user().iter().cloned());
        git.repository(git_dir);
        git
    }

    /// Names the repository, and an index that never exists: a command that was given none must not find one.
    fn repository(&mut self, git_dir: &Path) {
        self.command
            .env("GIT_DIR", git_dir)
            .env("GIT_INDEX_FILE", git_dir.join("harness-no-index"))
            .current_dir(git_dir);
    }

    fn no_outside_config(&mut self) {
        self.command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        // A graph file in a folder that agents write could lie about parents; ids cannot.
        self.globals.extend(["-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"].map(OsString::from));
    }

    /// Names the work tree and runs inside it.
    pub(super) fn work_tree(mut self, path: &Path) -> Self {
        self.command.env("GIT_WORK_TREE", path).current_dir(path);
        self
    }

    /// Names the index file.
    pub(super) fn index(mut self, path: &Path) -> Self {
        self.command.env("GIT_INDEX_FILE", path);
        self
    }

    /// Adds one variable.
    pub(super) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds one option that stands before the subcommand.
    pub(super) fn global(mut self, option: impl Into<OsString>) -> Self {
        self.globals.push(option.into());
        self
    }

    /// Adds one setting for this command only.
    pub(super) fn config(self, setting: &str) -> Self {
        self.global("-c").global(setting)
    }

    /// Adds the subcommand or arguments.
    pub(super) fn args<S: Into<OsString>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// What the command reads.
    pub(super) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    /// Exit codes that are answers, not failures.
    pub(super) fn allow(mut self, codes: &'static [i32]) -> Self {
        self.allowed = codes;
        self
    }

    /// Shortens or lengthens the deadline.
    #[cfg(test)]
    pub(super) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Limits what the command may print, in bytes.
    #[cfg(test)]
    pub(super) fn max_output(mut self, limit: usize) -> Self {
        self.max_output = limit;
        self
    }

    /// The subcommand and arguments, shortened, for messages.
    fn label(&self) -> String {
        let words: Vec<_> = self.args.iter().take(8).map(|a| a.to_string_lossy()).collect();
        let mut text = words.join(" ");
        if text.len() > 200 {
            text = text.chars().take(200).collect();
        }
        text
    }

    /// Runs the command to its end.
    ///
    /// Errors: [`GitError::Infrastructure`] for an exit code that was not allowed or a signal, [`GitError::Timeout`],
    /// [`GitError::OutputTooLarge`], [`GitError::Spawn`].
    pub(super) fn run(mut self) -> Result<Output, GitError> {
        let label = self.label();
        for setting in ALWAYS {
            self.command.arg("-c").arg(setting);
        }
        self.command.args(&self.globals).args(&self.args);
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        let child = self.command.spawn().map_err(|source| GitError::Spawn { command: label.clone(), source })?;
        let answer = drive(child, self.stdin, self.deadline, self.max_output, &label)?;
        match answer.code {
            Some(code) if self.allowed.contains(&code) => Ok(Output { code, stdout: answer.stdout }),
            exit => Err(GitError::Infrastructure { command: label, exit, stderr: tail(&answer.stderr) }),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::time::{Duration, Instant};

    use super::Git;
    use crate::git::UserEnv;

    fn git() -> Git {
        Git::without_repository(&UserEnv::from_process())
    }

    #[test]
    fn a_command_that_hangs_is_killed_with_what_it_started() {
        let started = Instant::now();
        let hanging = git().config("alias.hang=!sleep 300 & sleep 300").args(["hang"]);
        let error = hanging.deadline(Duration::from_millis(300)).run().unwrap_err();
        assert_eq!(error.code(), "git_timeout");
        assert!(started.elapsed() < Duration::from_secs(100), "it waited for the end");
    }

    #[test]
    fn output_over_the_limit_is_an_error_and_floods_of_messages_are_not() {
        let error = git().args(["version"]).max_output(3).run().unwrap_err();
        assert_eq!(error.code(), "git_output_too_large");
        let flood = git().config("alias.flood=!yes | head -c 3000000 >&2; exit 7").args(["flood"]);
        let super::GitError::Infrastructure { exit, stderr, .. } = flood.run().unwrap_err() else {
            panic!("another error")
        };
        assert_eq!(exit, Some(7));
        assert!(stderr.len() <= 4000);
    }

    #[test]
    fn input_that_is_not_read_does_not_hang() {
        git().args(["version"]).stdin(vec![b'x'; 1 << 20]).run().unwrap();
    }
}
