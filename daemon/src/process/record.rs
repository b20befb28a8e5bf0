//! The exit record: what the launcher leaves on disk when a tree has ended.

use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::identity::Marker;
use crate::failpoint;

/// The version of the record's shape.
const SCHEMA_VERSION: u32 = 1;

/// Why a tree ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The program ended by itself.
    Exited,
    /// The program ended by a signal that was not ours.
    Signalled,
    /// The caller asked for the end.
    KilledByUs,
    /// `Limits::max_wall` passed.
    MaxWall,
    /// The tree grew beyond `Limits::max_processes`.
    TooManyProcesses,
    /// The daemon died, or dropped the child.
    LifelineLost,
    /// The program had ended, but a descendant held its output open and was killed.
    OutputHolderKilled,
    /// The program never started; `ExitRecord::failure` says why.
    NotStarted,
}

/// What was kept of one output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// Bytes the tree wrote; 0 for an output that the caller reads itself.
    pub bytes_total: u64,
    /// Bytes of output in the file, the gap mark not counted.
    pub bytes_kept: u64,
    /// Whether the middle was dropped, or the file could not be written (disk full).
    pub truncated: bool,
}

/// The step of the start that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecStep {
    /// The launcher itself: its spec, its session, its files.
    Launcher,
    /// Opening an output file.
    Output,
    /// Entering the working directory.
    Cwd,
    /// Setting a resource limit.
    Limits,
    /// Raising the wall.
    Wall,
    /// Finding the program.
    Lookup,
    /// Executing the program that was found.
    Exec,
}

/// Why a program did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecFailure {
    /// The step that failed.
    pub step: ExecStep,
    /// What the system said.
    pub detail: String,
    /// The system's error number, where there is one.
    pub errno: Option<i32>,
}

impl ExecFailure {
    pub(crate) fn new(step: ExecStep, error: &std::io::Error) -> Self {
        Self { step, detail: error.to_string(), errno: error.raw_os_error() }
    }
}

/// The end of one tree, as stored in `Spec::record`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitRecord {
    /// The version of this shape.
    pub schema_version: u32,
    /// What the tree worked for.
    pub marker: Marker,
    /// The exit code of the program, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// From the start of the launcher to the end of the tree, in milliseconds of boot time.
    pub duration_ms: u64,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Why it ended.
    pub cause: Cause,
    /// Descendants that outlived the program and were killed.
    pub survivors_killed: u32,
    /// Descendants that could not be killed within the limit (uninterruptible sleep).
    pub survivors_left: u32,
    /// Why it did not start, if it did not.
    pub failure: Option<ExecFailure>,
}

impl ExitRecord {
    pub(crate) fn new(marker: Marker, cause: Cause) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            marker,
            code: None,
            signal: None,
            duration_ms: 0,
            stdout: Captured::default(),
            stderr: Captured::default(),
            cause,
            survivors_killed: 0,
            survivors_left: 0,
            failure: None,
        }
    }

    /// Stores the record so that it is either there whole or not at all, also after a power loss.
    pub(crate) fn store(&self, path: &Path) -> std::io::Result<()> {
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut file = std::fs::File::create(&temporary)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        drop(file);
        failpoint::hit("process.record.before_rename");
        std::fs::rename(&temporary, path)?;
        failpoint::hit("process.record.after_rename");
        let folder = path.parent().unwrap_or(Path::new("/"));
        std::fs::File::open(folder)?.sync_all()
    }

    /// Reads a record; `None` when there is none (the launcher was killed before it wrote one).
    ///
    /// # Errors
    /// The file exists and cannot be read, or is not a record.
    pub fn load(path: &Path) -> std::io::Result<Option<Self>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
