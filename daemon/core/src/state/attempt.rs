//! An open attempt at a task and the stage it is in.

use harness_proto::ids::{EffectId, Millis, TaskId};
use serde::{Deserialize, Serialize};

use crate::effect::TreeName;
use crate::evidence::EvidenceRecord;

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its tree is being made.
    Preparing,
    /// Setup commands run.
    Setup,
    /// The implementer works.
    Implementing,
    /// Evidence of the trial commit is collected.
    Proving,
    /// The verifier judges.
    Verifying,
    /// The candidate is built.
    Building,
    /// Evidence of the candidate is collected.
    Reproving,
    /// The head is moved.
    Advancing,
}

/// An open attempt: one row. Decided attempts keep their row, but are not in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its task.
    pub task: TaskId,
    /// From 1.
    pub number: u32,
    /// Where it is.
    pub stage: Stage,
    /// The effect in flight; none while it waits.
    pub effect: Option<EffectId>,
    /// When it may go on after a fault.
    pub retry_at: Option<Millis>,
    /// Its tree.
    pub tree: TreeName,
    /// Commit of the tree.
    pub base: String,
    /// Trial commit; empty before.
    pub trial: String,
    /// Tree of the trial commit.
    pub trial_tree: String,
    /// Net changed paths.
    pub changed: Vec<String>,
    /// Implementer's summary.
    pub summary: String,
    /// Files and checks as the implementer reported them: `(files_changed, checks_run)`.
    pub claims: (Vec<String>, Vec<String>),
    /// Evidence on the trial, later on the candidate.
    pub evidence: Vec<EvidenceRecord>,
    /// Verifier's summary.
    pub verdict_summary: String,
    /// Candidate commit; empty before.
    pub candidate: String,
    /// Tree of the candidate.
    pub candidate_tree: String,
    /// Whether the candidate is the head itself (`already_applied`).
    pub already_applied: bool,
    /// Faults in a row in this stage.
    pub faults: u32,
    /// Lost turns in this attempt.
    pub lost: u32,
    /// Errors of the last report; a repair was asked for.
    pub report_errors: Vec<String>,
    /// Session of the turn in flight or the last one of this stage.
    pub session: Option<String>,
    /// Turn in flight or last.
    pub turn: i64,
    /// How it was decided: empty while open, else `accepted`, `reverted`, `failed:<why>`.
    pub outcome: String,
    /// When it began.
    pub started_at: Millis,
}
