//! The one way git is started: explicit repository, scrubbed environment, deadline, bounded output.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

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
pub const MINIMUM: GitVersion = GitVersion {
    major: 2,
    minor: 41,
};

/// How long a command may take unless said otherwise: a checkout of a very big tree on a slow disk.
const DEADLINE: Duration = Duration::from_secs(600);
/// How much a command may print: lists of a few hundred thousand paths.
const MAX_OUTPUT: usize = 256 << 20;
/// How much of standard error is kept.
const STDERR_TAIL: usize = 4000;

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
    "advice.detachedHead=false",
];

/// Returns the version of git on PATH.
///
/// Errors: [`GitError::TooOld`] below [`MINIMUM`], [`GitError::Spawn`] when there is none.
pub fn version() -> Result<GitVersion, GitError> {
    let out = Git::without_repository(&UserEnv::from_process())
        .args(["version"])
        .run()?;
    let found = parse::version(&out.stdout).ok_or_else(|| GitError::Unreadable {
        command: "version".to_owned(),
        detail: String::from_utf8_lossy(&out.stdout).into_owned(),
    })?;
    if found < MINIMUM {
        Err(GitError::TooOld { found })
    } else {
        Ok(found)
    }
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
        String::from_utf8_lossy(&self.stdout)
            .trim_end_matches(['\n', '\0'])
            .to_owned()
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
        git.command
            .envs(env.as_user().iter().cloned())
            .current_dir(start);
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
        self.command
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        // A graph file in a folder that agents write could lie about parents; ids cannot.
        self.globals.extend(
            [
                "-c",
                "core.commitGraph=false",
                "-c",
                "core.multiPackIndex=false",
            ]
            .map(OsString::from),
        );
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
        let words: Vec<_> = self
            .args
            .iter()
            .take(8)
            .map(|a| a.to_string_lossy())
            .collect();
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
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = self.command.spawn().map_err(|source| GitError::Spawn {
            command: label.clone(),
            source,
        })?;
        let answer = drive(child, self.stdin, self.deadline, self.max_output, &label)?;
        match answer.code {
            Some(code) if self.allowed.contains(&code) => Ok(Output {
                code,
                stdout: answer.stdout,
            }),
            exit => Err(GitError::Infrastructure {
                command: label,
                exit,
                stderr: tail(&answer.stderr),
            }),
        }
    }
}

fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(STDERR_TAIL);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}

struct Answer {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

enum Stream {
    Out(std::io::Result<Vec<u8>>),
    Err(Vec<u8>),
}

/// Feeds and drains the child until both outputs end, or kills its whole group.
fn drive(
    mut child: Child,
    input: Vec<u8>,
    deadline: Duration,
    max_output: usize,
    label: &str,
) -> Result<Answer, GitError> {
    let until = Instant::now() + deadline;
    let (to_main, streams) = mpsc::channel();
    let (mut stdin, stdout, stderr) =
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(i), Some(o), Some(e)) => (i, o, e),
            _ => unreachable!("all three streams are piped"),
        };
    // A command may end without reading all of its input; its exit code says what that means.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    let to_main_err = to_main.clone();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(max_output as u64 + 1).read_to_end(&mut bytes);
        drop(to_main.send(Stream::Out(read.map(|_| bytes))));
    });
    std::thread::spawn(move || {
        drop(to_main_err.send(Stream::Err(drain_tail(stderr))));
    });
    let (mut out, mut err) = (None, None);
    while out.is_none() || err.is_none() {
        match streams.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Stream::Out(Ok(bytes))) if bytes.len() > max_output => {
                kill(&mut child);
                return Err(GitError::OutputTooLarge {
                    command: label.to_owned(),
                    limit: max_output,
                });
            }
            Ok(Stream::Out(Ok(bytes))) => out = Some(bytes),
            Ok(Stream::Out(Err(source))) => {
                kill(&mut child);
                return Err(GitError::Spawn {
                    command: label.to_owned(),
                    source,
                });
            }
            Ok(Stream::Err(bytes)) => err = Some(bytes),
            Err(_) => {
                kill(&mut child);
                return Err(GitError::Timeout {
                    command: label.to_owned(),
                    seconds: deadline.as_secs(),
                });
            }
        }
    }
    let status = child.wait().map_err(|source| GitError::Spawn {
        command: label.to_owned(),
        source,
    })?;
    Ok(Answer {
        code: status.code(),
        stdout: out.unwrap_or_default(),
        stderr: err.unwrap_or_default(),
    })
}

/// Reads to the end and keeps only the last part, so that a flood of messages costs no memory.
fn drain_tail(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..n]);
        if kept.len() > 4 * STDERR_TAIL {
            kept.drain(..kept.len() - STDERR_TAIL);
        }
    }
    kept
}

/// Kills git and what it started (filters), then collects its exit.
fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
    {
        // A group that is gone already is what is wanted.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    drop(child.wait());
}
