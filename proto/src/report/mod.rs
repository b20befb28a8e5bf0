//! What a turn ends with: the reports of the three roles (artifacts.md 10; S4-043 to S4-049).
//!
//! Schemas and parsing are in `report::schema` and `report::parse`.

pub mod parse;
mod read;
pub mod schema;

use serde::{Deserialize, Serialize};

use crate::vocab::{CriterionOutcome, RecoverySignal, Role, Severity, Verdict};

/// A parsed, schema-valid report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Report {
    /// Of a planner turn.
    Planner(PlannerReport),
    /// Of an implementer turn.
    Implementer(ImplementerReport),
    /// Of a verifier turn.
    Verifier(VerifierReport),
}

impl Report {
    /// The role that the report claims; the dispatched turn decides (weaknesses 15).
    #[must_use]
    pub const fn role(&self) -> Role {
        match self {
            Self::Planner(_) => Role::Planner,
            Self::Implementer(_) => Role::Implementer,
            Self::Verifier(_) => Role::Verifier,
        }
    }

    /// The summary.
    #[must_use]
    pub fn summary(&self) -> &str {
        match self {
            Self::Planner(r) => &r.summary,
            Self::Implementer(r) => &r.summary,
            Self::Verifier(r) => &r.summary,
        }
    }
}

/// Of a planner turn (S4-043).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannerReport {
    /// Revision of the plan that it wrote.
    pub revision: i64,
    /// What it did.
    pub summary: String,
    /// Ids by kind of change.
    pub task_changes: TaskChanges,
    /// Why it was asked, in its words.
    pub planner_requested_reason: String,
}

/// Ids by kind of change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TaskChanges {
    /// New tasks.
    pub added: Vec<String>,
    /// Changed tasks.
    pub updated: Vec<String>,
    /// Closed tasks: skipped or superseded.
    pub closed: Vec<String>,
}

/// Of an implementer turn (S4-044).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImplementerReport {
    /// The task; may only agree with the turn.
    pub task_id: String,
    /// The attempt; may only agree with the turn.
    pub attempt: i64,
    /// The trial commit, full, short or empty.
    pub commit: String,
    /// What it did.
    pub summary: String,
    /// Files it says it changed.
    pub files_changed: Vec<String>,
    /// Checks it says it ran.
    pub checks_run: Vec<String>,
    /// Work it found.
    pub proposed_tasks: Vec<ProposedTask>,
}

/// Work that a role found and may not plan itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProposedTask {
    /// One line.
    pub title: String,
    /// Why.
    pub reason: String,
    /// Ids it would depend on.
    pub depends_on: Vec<String>,
    /// Who found it.
    pub introduced_by: String,
}

/// Of a verifier turn (S4-045).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifierReport {
    /// The task; may only agree with the turn.
    pub task_id: String,
    /// The attempt; may only agree with the turn.
    pub attempt: i64,
    /// The judged commit; may only agree with the turn.
    pub commit: String,
    /// Accept or revert.
    pub verdict: Verdict,
    /// Why it cannot judge, `none` when it can.
    pub recovery_signal: RecoverySignal,
    /// Why.
    pub summary: String,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// One result for each criterion.
    pub criteria_results: Vec<CriterionResult>,
    /// Work it found.
    pub proposed_tasks: Vec<ProposedTask>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What.
    pub description: String,
    /// How grave.
    pub severity: Severity,
    /// Where; may be empty.
    pub file: String,
    /// What to do.
    pub recommendation: String,
}

/// The result for one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CriterionResult {
    /// Its id (`C1`) or its text.
    pub criterion: String,
    /// The result.
    pub result: CriterionOutcome,
    /// What was seen.
    pub evidence: String,
}
