//! Evidence as facts and as records (DESIGN 8).

use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::{EvidenceResult, FailureType};
use serde::{Deserialize, Serialize};

use crate::effect::Purpose;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Killed by the runtime at its limit.
    TimedOut,
    /// Its program does not exist or cannot be executed.
    MissingProgram(String),
    /// The runtime could not start it; in words.
    NotStarted(String),
}

/// A command that the runtime ran itself: the raw fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// As shown.
    pub command: String,
    /// Fewest tests that must have run, when the check names a number.
    pub expect_tests_min: Option<u32>,
    /// How it ended.
    pub exit: CommandExit,
    /// Last part of standard output (at most 16,000 characters), lossy, redacted.
    pub stdout: String,
    /// Last part of standard error (at most 16,000 characters), lossy, redacted.
    pub stderr: String,
    /// Digest of the whole output file (stdout, then stderr).
    pub output: String,
    /// Bytes of output in all.
    pub output_bytes: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// sha256 of tree, command and environment.
    pub fingerprint: String,
}

/// A command's result as it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRecord {
    /// What it was collected for.
    pub purpose: Purpose,
    /// Whether it is a setup command.
    pub setup: bool,
    /// Task, none for baseline and restack.
    pub task: Option<TaskId>,
    /// Attempt, 0 when none.
    pub attempt: u32,
    /// Commit.
    pub commit: String,
    /// Tree of the commit.
    pub tree: String,
    /// As shown.
    pub command: String,
    /// Exit code; 128 + n for signal n, 124 for a timeout, 127 for a missing program.
    pub exit_code: i32,
    /// The result; fail closed.
    pub result: EvidenceResult,
    /// What kind of failure, none for a pass.
    pub failure: Option<FailureType>,
    /// Why a command with exit 0 fails all the same (zero tests); empty otherwise.
    pub note: String,
    /// Tests that ran, when the runner is recognised.
    pub tests: Option<u32>,
    /// Last 4,000 characters.
    pub stdout: String,
    /// Last 4,000 characters.
    pub stderr: String,
    /// Digest of the whole output.
    pub output: String,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// Same fingerprint: same evidence.
    pub fingerprint: String,
    /// Loop signature of a failure (DESIGN 8), empty for a pass.
    pub signature: String,
    /// When it was recorded.
    pub at: Millis,
}
