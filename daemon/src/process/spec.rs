//! What to start: the caller's `Spec`, and the part of it that the launcher reads from disk.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::identity::Marker;
use super::wall::Wall;

/// A program to start, complete: nothing is inherited from the daemon.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program and its arguments; the program is looked up in the `PATH` of `env`.
    pub argv: Vec<OsString>,
    /// The working directory.
    pub cwd: PathBuf,
    /// The whole environment; only the marker's variables are added.
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: StdinMode,
    /// Standard output.
    pub stdout: OutputMode,
    /// Standard error; `Pipe` is not offered here and is treated as discarded.
    pub stderr: OutputMode,
    /// What the tree may touch.
    pub wall: Wall,
    /// Limits of the tree.
    pub limits: Limits,
    /// Where the launcher leaves the exit record; its folder must exist.
    pub record: PathBuf,
    /// A private folder for the launcher's own files; created when missing.
    pub scratch: PathBuf,
    /// What the tree works for.
    pub marker: Marker,
}

/// Where standard input comes from.
#[derive(Debug, Clone)]
pub enum StdinMode {
    /// `/dev/null`.
    Null,
    /// A pipe that the caller writes.
    Pipe,
    /// These bytes, then the end; a child that never reads them blocks nothing.
    Bytes(Vec<u8>),
}

/// Where an output goes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputMode {
    /// A pipe that the caller reads.
    Pipe,
    /// `/dev/null`.
    Discard,
    /// A file with at most `cap_bytes` of output: the first half and the last half, with the gap marked in between.
    File {
        /// The file; replaced when it exists.
        #[serde(with = "raw_path")]
        path: PathBuf,
        /// How much is kept, in bytes.
        cap_bytes: u64,
    },
}

/// Limits of one tree.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Backstop for the whole tree, in boot time; the daemon's own deadlines come first.
    pub max_wall: Option<Duration>,
    /// How many processes may live at once; looked at twice a second (`RLIMIT_NPROC` counts all of the user's
    /// processes and does not bind root).
    pub max_processes: Option<u64>,
    /// The largest file the tree may write, in bytes (`RLIMIT_FSIZE`).
    pub max_file_bytes: Option<u64>,
    /// How many files a process may hold open (`RLIMIT_NOFILE`); the system's limit if none.
    pub max_open_files: Option<u64>,
    /// How long a descendant may outlive the program before it is killed; one second if none.
    pub leak_grace: Option<Duration>,
}

/// What the launcher's two stages read from disk. It holds no environment and no input, where secrets may be.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LaunchSpec {
    pub(crate) argv: Vec<OsString>,
    #[serde(with = "raw_path")]
    pub(crate) cwd: PathBuf,
    pub(crate) stdout: OutputMode,
    pub(crate) stderr: OutputMode,
    pub(crate) wall: Wall,
    pub(crate) limits: Limits,
    #[serde(with = "raw_path")]
    pub(crate) record: PathBuf,
    /// The FIFO on which stage 2 says why it could not execute; its end without a word is success.
    #[serde(with = "raw_path")]
    pub(crate) outcome: PathBuf,
    pub(crate) marker: Marker,
}

/// Paths are bytes: serde's own form of a path refuses those that are no UTF-8.
pub(crate) mod raw_path {
    use super::{OsString, PathBuf};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
        path.as_os_str().serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        OsString::deserialize(from).map(PathBuf::from)
    }
}

/// The same for lists of paths.
pub(crate) mod raw_paths {
    use super::{OsString, PathBuf};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| path.as_os_str()))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<OsString>::deserialize(from)?.into_iter().map(PathBuf::from).collect())
    }
}
