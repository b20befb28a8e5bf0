//! `harness-state.json`: the snapshot of a run, and the recovery object (artifacts.md 1.3, 1.4; S4-034 to S4-036).

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

use super::lenient::{self, DocError};
use super::{ConfigDoc, DOC_MODE, DOC_VERSION};

/// The snapshot document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateDoc {
    /// As in the launch manifest.
    pub config: ConfigDoc,
    /// [`DOC_MODE`].
    pub mode: String,
    /// The run's id; a label in a predecessor's file.
    pub run_tag: String,
    /// The snapshot.
    pub state: StateBodyDoc,
    /// Last change.
    pub updated_at: String,
    /// [`DOC_VERSION`].
    pub version: i64,
}

/// The snapshot itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct StateBodyDoc {
    /// Last integrated commit.
    pub accepted_commit: String,
    /// Tasks accepted.
    pub accepts: i64,
    /// Open attempts by task.
    pub active_tasks: BTreeMap<String, ActiveTaskDoc>,
    /// Tasks that became blocked.
    pub blocked: i64,
    /// Whether the run is completed.
    pub completed: bool,
    /// Implementer reports.
    pub implementer_runs: i64,
    /// Reason of the last step.
    pub last_decision: String,
    /// `initialized plan submit_trial accept revert recovery`.
    pub last_status: String,
    /// `accept` or `revert`.
    pub last_verdict: String,
    /// Why a planner turn is due.
    pub planner_pending_reason: String,
    /// Revision of the plan.
    pub planner_revision: i64,
    /// Planner reports.
    pub planner_runs: i64,
    /// Open incident.
    pub recovery: RecoveryDoc,
    /// Incidents.
    pub recovery_requests: i64,
    /// Times the planner was asked again.
    pub replans: i64,
    /// Attempts reverted.
    pub reverts: i64,
    /// Last event.
    pub seq: i64,
    /// Verifier reports.
    pub verifier_runs: i64,
}

/// An open attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ActiveTaskDoc {
    /// From 1.
    pub attempt: i64,
    /// Commit of the attempt's tree.
    pub base_commit: String,
    /// Name of the attempt's ref; a branch in a predecessor's file.
    pub branch_name: String,
    /// Whose turn it is.
    pub role: String,
    /// Agent session; empty when none.
    pub thread_id: String,
    /// Trial commit; empty before.
    pub trial_commit: String,
    /// Feedback of the last verdict.
    pub verifier_feedback: String,
    /// Name of the tree; a path in a predecessor's file.
    pub worktree_path: String,
}

/// A problem with an owner (artifacts.md 1.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecoveryDoc {
    /// A planner's or user's problem.
    pub incident: IncidentDoc,
    /// Empty, `planner`, `runtime` or `user`.
    pub owner: String,
    /// Symbolic reason.
    pub reason: String,
    /// Attempt concerned.
    pub resume_attempt: i64,
    /// Role that continues.
    pub resume_role: String,
    /// Task concerned.
    pub resume_task_id: String,
    /// A runtime's repeats.
    pub retry: RetryDoc,
    /// `clear` or `pending`.
    pub status: String,
}

/// Incident part of a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct IncidentDoc {
    /// Commit concerned.
    pub commit: String,
    /// Details; an object.
    pub details: Map<String, Value>,
    /// As above.
    pub owner: String,
    /// As above.
    pub reason: String,
    /// As above.
    pub resume_attempt: i64,
    /// As above.
    pub resume_role: String,
    /// As above.
    pub resume_task_id: String,
}

/// Retry part of a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct RetryDoc {
    /// Repeats so far.
    pub count: i64,
    /// As above.
    pub reason: String,
    /// As above.
    pub resume_attempt: i64,
    /// As above.
    pub resume_role: String,
    /// As above.
    pub resume_task_id: String,
}

impl Default for RecoveryDoc {
    fn default() -> Self {
        Self {
            incident: IncidentDoc::default(),
            owner: String::new(),
            reason: String::new(),
            resume_attempt: 0,
            resume_role: String::new(),
            resume_task_id: String::new(),
            retry: RetryDoc::default(),
            status: "clear".to_owned(),
        }
    }
}

impl RecoveryDoc {
    /// A pending recovery of an incident; a `runtime`-owned one is described by its `retry` part instead.
    #[must_use]
    pub fn pending(incident: IncidentDoc, count: i64) -> Self {
        let retry = if incident.owner == "runtime" {
            RetryDoc {
                count,
                reason: incident.reason.clone(),
                resume_attempt: incident.resume_attempt,
                resume_role: incident.resume_role.clone(),
                resume_task_id: incident.resume_task_id.clone(),
            }
        } else {
            RetryDoc::default()
        };
        Self {
            owner: incident.owner.clone(),
            reason: incident.reason.clone(),
            resume_attempt: incident.resume_attempt,
            resume_role: incident.resume_role.clone(),
            resume_task_id: incident.resume_task_id.clone(),
            incident: if incident.owner == "runtime" { IncidentDoc::default() } else { incident },
            retry,
            status: "pending".to_owned(),
        }
    }

    /// Reads and normalises: the top level mirrors `incident` if that has any content, else `retry` with owner `runtime`; a
    /// flat object fills the part that its owner names.
    #[must_use]
    pub fn from_members(root: &Map<String, Value>) -> Self {
        let mut incident = IncidentDoc::from_members(&lenient::members(root, "incident"));
        let mut retry = RetryDoc::from_members(&lenient::members(root, "retry"));
        if incident == IncidentDoc::default() && retry == RetryDoc::default() {
            if lenient::text(root, "owner") == "runtime" {
                retry = RetryDoc::from_members(root);
            } else {
                incident = IncidentDoc::from_members(root);
            }
        }
        let status = match lenient::text(root, "status").as_str() {
            "pending" => "pending",
            _ => "clear",
        };
        let empty = incident == IncidentDoc::default() && retry == RetryDoc::default();
        if status == "clear" || empty {
            let mut clear = Self::default();
            if status == "pending" {
                clear.status = "pending".to_owned();
            }
            return clear;
        }
        if incident == IncidentDoc::default() {
            return Self {
                owner: "runtime".to_owned(),
                reason: retry.reason.clone(),
                resume_attempt: retry.resume_attempt,
                resume_role: retry.resume_role.clone(),
                resume_task_id: retry.resume_task_id.clone(),
                incident,
                retry,
                status: status.to_owned(),
            };
        }
        Self {
            owner: incident.owner.clone(),
            reason: incident.reason.clone(),
            resume_attempt: incident.resume_attempt,
            resume_role: incident.resume_role.clone(),
            resume_task_id: incident.resume_task_id.clone(),
            incident,
            retry,
            status: status.to_owned(),
        }
    }
}

impl IncidentDoc {
    fn from_members(root: &Map<String, Value>) -> Self {
        Self {
            commit: lenient::text(root, "commit"),
            details: lenient::members(root, "details"),
            owner: lenient::text(root, "owner"),
            reason: lenient::text(root, "reason"),
            resume_attempt: lenient::integer(root, "resume_attempt"),
            resume_role: lenient::text(root, "resume_role"),
            resume_task_id: lenient::text(root, "resume_task_id"),
        }
    }
}

impl RetryDoc {
    fn from_members(root: &Map<String, Value>) -> Self {
        let aliases = ["count", "retry_count", "attempts"];
        Self {
            count: aliases.iter().map(|key| lenient::integer(root, key)).find(|n| *n > 0).unwrap_or(0),
            reason: lenient::text(root, "reason"),
            resume_attempt: lenient::integer(root, "resume_attempt"),
            resume_role: lenient::text(root, "resume_role"),
            resume_task_id: lenient::text(root, "resume_task_id"),
        }
    }
}

impl StateDoc {
    /// Reads a snapshot; members of older forms (`current_role`, …) are dropped, missing ones get defaults.
    ///
    /// # Errors
    /// [`DocError`] when it is no JSON object or newer than us.
    pub fn read(text: &str) -> Result<Self, DocError> {
        let root = lenient::object(text)?;
        Ok(Self {
            config: ConfigDoc::from_members(&lenient::members(&root, "config")),
            mode: lenient::text_or(&root, "mode", DOC_MODE),
            run_tag: lenient::text(&root, "run_tag"),
            state: StateBodyDoc::from_members(&lenient::members(&root, "state")),
            updated_at: lenient::text(&root, "updated_at"),
            version: DOC_VERSION,
        })
    }
}

impl StateBodyDoc {
    fn from_members(root: &Map<String, Value>) -> Self {
        let active = lenient::members(root, "active_tasks");
        Self {
            accepted_commit: lenient::text(root, "accepted_commit"),
            accepts: lenient::integer(root, "accepts"),
            active_tasks: active
                .iter()
                .filter_map(|(id, record)| Some((id.clone(), ActiveTaskDoc::from_members(record.as_object()?))))
                .collect(),
            blocked: lenient::integer(root, "blocked"),
            completed: lenient::boolean(root, "completed"),
            implementer_runs: lenient::integer(root, "implementer_runs"),
            last_decision: lenient::text(root, "last_decision"),
            last_status: lenient::text_or(root, "last_status", "initialized"),
            last_verdict: lenient::text(root, "last_verdict"),
            planner_pending_reason: lenient::text(root, "planner_pending_reason"),
            planner_revision: lenient::integer(root, "planner_revision"),
            planner_runs: lenient::integer(root, "planner_runs"),
            recovery: RecoveryDoc::from_members(&lenient::members(root, "recovery")),
            recovery_requests: lenient::integer(root, "recovery_requests"),
            replans: lenient::integer(root, "replans"),
            reverts: lenient::integer(root, "reverts"),
            seq: lenient::integer(root, "seq"),
            verifier_runs: lenient::integer(root, "verifier_runs"),
        }
    }
}

impl ActiveTaskDoc {
    fn from_members(root: &Map<String, Value>) -> Self {
        Self {
            attempt: lenient::integer(root, "attempt"),
            base_commit: lenient::text(root, "base_commit"),
            branch_name: lenient::text(root, "branch_name"),
            role: lenient::text(root, "role"),
            thread_id: lenient::text(root, "thread_id"),
            trial_commit: lenient::text(root, "trial_commit"),
            verifier_feedback: lenient::text(root, "verifier_feedback"),
            worktree_path: lenient::text(root, "worktree_path"),
        }
    }
}
