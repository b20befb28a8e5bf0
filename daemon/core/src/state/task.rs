//! A task of the plan and what its next attempt must know.

use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::report::Finding;
use harness_proto::vocab::{TaskStatus, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A task: one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// As planned.
    pub plan: PlannedTask,
    /// Where it is.
    pub status: TaskStatus,
    /// Attempts begun that count.
    pub attempts: u32,
    /// Attempts allowed.
    pub attempts_max: u32,
    /// Commit of the last attempt.
    pub last_attempt_commit: String,
    /// Last verdict.
    pub last_verdict: Option<Verdict>,
    /// Commit on the integration head.
    pub integrated_commit: String,
    /// Why it is blocked, failed or timed out.
    pub blocked_reason: String,
    /// Conflict details in the predecessor's members; null when none.
    #[serde(default)]
    pub integration_conflict: Value,
    /// The repair task that closed it.
    pub resolved_by: Option<TaskId>,
    /// What the next attempt must know.
    pub feedback: Feedback,
    /// Failure signatures of attempts, oldest first.
    pub signatures: Vec<String>,
    /// Agent session of the last implementer turn.
    pub session: Option<String>,
    /// Times that a plan put it back without anything done in between.
    pub requeues: u32,
    /// Whether its acceptance was made without any evidence (`--no-verification`).
    pub unproven: bool,
}

/// What the next attempt must know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// Summary of verdict or gate.
    pub summary: String,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Criteria that did not pass: `C1: text: what was seen`.
    pub criteria: Vec<String>,
    /// Blockers of the gate, as sentences with command and output.
    pub blockers: Vec<String>,
}
