//! What evidence is asked for and what comes back.

use std::ffi::OsString;
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

use harness_core::evidence::CommandRun;
use harness_proto::plan::Check;

use crate::process::{Identity, ProcessError, Wall};
use crate::redact::Redactor;

/// Puts the tracked files of the tree back as they were; an error says why that failed. Called before each check but the
/// first, so that a check cannot prepare the tree for the next one.
pub type Restore = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Result<(), String>> + Send>> + Send + Sync>;

/// Commands to run in one tree.
#[derive(Clone)]
pub struct EvidenceSpec {
    /// The run, for the marker.
    pub run: String,
    /// The task; empty for baseline and restack.
    pub task: String,
    /// The attempt, 0 when none.
    pub attempt: u32,
    /// The tree's folder; made by the caller from the exact commit.
    pub tree_path: PathBuf,
    /// The tree's git id, for fingerprints.
    pub tree_id: String,
    /// Private TMPDIR of the commands, inside the wall; made when missing.
    pub tmp: PathBuf,
    /// Folder for exit records and running output, outside the wall; made when missing.
    pub scratch: PathBuf,
    /// Folder where whole outputs are kept under their sha256.
    pub output_dir: PathBuf,
    /// What the commands may touch; the network is decided for each command.
    pub wall: Wall,
    /// From [`allowed_environment`](super::allowed_environment).
    pub env: Vec<(OsString, OsString)>,
    /// Commands that prepare the tree; the first failure ends everything.
    pub setup: Vec<Check>,
    /// Commands that are the evidence; all run, also after a failure.
    pub checks: Vec<Check>,
    /// Limit of a command that names none, in seconds.
    pub timeout_s: u32,
    /// Whether a command that does not say may use the network.
    pub network_default: bool,
    /// Knows the secrets that must not be kept; those of `env` and of the checks are added.
    pub redactor: Redactor,
    /// Restores the tree between checks.
    pub restore: Option<Restore>,
}

impl fmt::Debug for EvidenceSpec {
    /// Without the environment, where secrets may be.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EvidenceSpec")
            .field("run", &self.run)
            .field("task", &self.task)
            .field("attempt", &self.attempt)
            .field("tree_path", &self.tree_path)
            .field("tree_id", &self.tree_id)
            .finish_non_exhaustive()
    }
}

/// What ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Collected {
    /// Setup commands that ran; the last one may have failed.
    pub setup: Vec<CommandRun>,
    /// Checks in the order asked; empty when setup failed.
    pub runs: Vec<CommandRun>,
}

/// A process began or ended; store it, so that an orphan is found after a crash.
#[derive(Debug, Clone)]
pub enum ProcessNote {
    /// It began.
    Started(Identity),
    /// Nothing of it lives.
    Ended(Identity),
}

/// Why there is no evidence; never the code's fault, so it costs no attempt.
#[derive(Debug, thiserror::Error)]
pub enum EvidenceError {
    /// The caller asked to stop; nothing of it lives.
    #[error("evidence was interrupted")]
    Interrupted,
    /// A folder or file of the runtime could not be used.
    #[error("cannot {operation} `{}`", path.display())]
    File {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Output was lost on the way to the disk; what is left proves nothing.
    #[error("the output of `{command}` could not be kept: the disk may be full")]
    OutputLost {
        /// The command.
        command: String,
    },
    /// The end of a process could not be told.
    #[error("the end of `{command}` could not be told")]
    Process {
        /// The command.
        command: String,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// The tree could not be put back between two checks.
    #[error("the tree could not be restored before `{command}`: {why}")]
    Restore {
        /// The check that was next.
        command: String,
        /// Why.
        why: String,
    },
}

/// Names operation and path of an I/O error.
pub(super) fn on(operation: &'static str, path: &std::path::Path) -> impl FnOnce(std::io::Error) -> EvidenceError {
    let path = path.to_owned();
    move |source| EvidenceError::File { operation, path, source }
}
