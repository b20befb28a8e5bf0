//! Looks at an agent before a run pays for anything: is the program there, and which version is it?

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::kind::AgentKind;
use crate::process::{self, Limits, Marker, OutputMode, SpawnError, Spec, StdinMode, Wall};

/// How long a program may take to tell its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// What is known about an agent before its first turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFacts {
    /// Its name.
    pub name: &'static str,
    /// What it says about its version; empty when it has none to tell.
    pub version: String,
    /// The program.
    pub path: PathBuf,
}

/// Why an agent cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// Nowhere in `PATH`.
    #[error("agent program `{program}` is not in PATH")]
    NotInPath {
        /// As asked for.
        program: String,
    },
    /// There is no such file.
    #[error("agent program `{}` does not exist", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// It is a folder, a device, ….
    #[error("agent program `{}` is not a file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// It may not be executed.
    #[error("agent program `{}` is not executable", path.display())]
    NotExecutable {
        /// The file.
        path: PathBuf,
    },
    /// It did not start.
    #[error("agent program `{}` cannot be started", path.display())]
    Spawn {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: SpawnError,
    },
    /// `--version` did not end well.
    #[error("`{} --version` {what}: is it the program that was meant?", path.display())]
    NoVersion {
        /// The file.
        path: PathBuf,
        /// What it did.
        what: String,
    },
}

/// Checks an agent. `env` is the environment of its turns, `scratch` a private folder.
///
/// # Errors
/// See [`PreflightError`].
pub async fn preflight(
    kind: &AgentKind,
    own_binary: &Path,
    env: &[(OsString, OsString)],
    scratch: &Path,
) -> Result<AgentFacts, PreflightError> {
    let program = match kind {
        AgentKind::Codex { program } => program.as_str(),
        AgentKind::Command { argv } => argv.first().map_or("", String::as_str),
        AgentKind::Offline { .. } => {
            executable(own_binary)?;
            return Ok(AgentFacts {
                name: kind.name(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                path: own_binary.to_owned(),
            });
        }
    };
    let path = find(program, env)?;
    let version = match kind {
        AgentKind::Codex { .. } => version(&path, env, scratch).await?,
        AgentKind::Command { .. } | AgentKind::Offline { .. } => String::new(),
    };
    Ok(AgentFacts { name: kind.name(), version, path })
}

fn find(program: &str, env: &[(OsString, OsString)]) -> Result<PathBuf, PreflightError> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        executable(&path)?;
        return Ok(path);
    }
    let not_found = || PreflightError::NotInPath { program: program.to_owned() };
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map_or(OsStr::new(""), |(_, value)| value);
    let mut refused = None;
    for folder in std::env::split_paths(path) {
        let candidate = folder.join(program);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(PreflightError::Missing { .. }) => {}
            Err(error) => {
                refused.get_or_insert(error);
            }
        }
    }
    Err(refused.unwrap_or_else(not_found))
}

fn executable(path: &Path) -> Result<(), PreflightError> {
    let path = path.to_owned();
    match std::fs::metadata(&path) {
        Err(source) => Err(PreflightError::Missing { path, source }),
        Ok(metadata) if !metadata.is_file() => Err(PreflightError::NotAFile { path }),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Err(PreflightError::NotExecutable { path }),
        Ok(_) => Ok(()),
    }
}

async fn version(path: &Path, env: &[(OsString, OsString)], scratch: &Path) -> Result<String, PreflightError> {
    let marker = Marker::new("preflight", "", 0, "preflight");
    let mut child = process::spawn(Spec {
        argv: vec![path.into(), "--version".into()],
        cwd: PathBuf::from("/"),
        env: env.to_vec(),
        stdin: StdinMode::Null,
        stdout: OutputMode::Pipe,
        stderr: OutputMode::Discard,
        wall: Wall::Open,
        limits: Limits::default(),
        record: scratch.join(format!("{}.exit.json", marker.nonce)),
        scratch: scratch.to_owned(),
        marker,
    })
    .await
    .map_err(|source| PreflightError::Spawn { path: path.to_owned(), source })?;
    let stdout = child.take_stdout();
    let told = async {
        let mut text = Vec::new();
        if let Some(stdout) = stdout {
            // A broken pipe is its end; the exit status says the rest.
            drop(stdout.take(4_096).read_to_end(&mut text).await);
        }
        (child.wait().await, text)
    };
    let what = match tokio::time::timeout(VERSION_LIMIT, told).await {
        Ok((Ok(exit), text)) if exit.code == Some(0) => {
            return Ok(String::from_utf8_lossy(&text).trim().chars().take(200).collect());
        }
        Ok((Ok(exit), _)) => match exit.code {
            Some(code) => format!("exited with status {code}"),
            None => "was ended by a signal".to_owned(),
        },
        Ok((Err(error), _)) => error.to_string(),
        Err(_) => {
            // Nothing but the version was asked for: whatever it is doing, it is not that.
            if let Err(error) = child.kill().await {
                tracing::warn!(%error, "a program asked for its version did not end cleanly");
            }
            format!("did not end within {} s", VERSION_LIMIT.as_secs())
        }
    };
    Err(PreflightError::NoVersion { path: path.to_owned(), what })
}
