//! `harness-runtime.json`: process, paths and last decision (artifacts.md 1.2; S4-037).

use serde::Serialize;
use serde_json::{Map, Value};

use super::lenient::{self, DocError};
use super::{DOC_VERSION, RecoveryDoc};

/// The predecessor's word for where a run is; rendered, never stored (DESIGN 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RuntimeStatus {
    /// Registered, never started.
    Idle,
    /// Queued or driven.
    Running,
    /// Held; somebody has to act or a time has to pass.
    Recovery,
    /// Over, or stopped by the user.
    Terminal,
}

/// The runtime document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuntimeDoc {
    /// Command line of the daemon.
    pub command: Vec<String>,
    /// When the run was registered.
    pub created_at: String,
    /// Path of the history.
    pub events_path: String,
    /// Why the run does not move: `{kind, owner, reason, detail, until, next, since}`, or null.
    pub hold: Value,
    /// Empty, `relaunch`, `stop`, `recovery`, `runtime_retry` or `run_planner`.
    pub last_decision: String,
    /// Last error text.
    pub last_error: String,
    /// Reason of the last step.
    pub last_reason: String,
    /// Role of the last turn.
    pub last_role: String,
    /// Task of the last turn.
    pub last_task_id: String,
    /// Path of the launch manifest.
    pub launch_path: String,
    /// Lifecycle of the run (DESIGN 4).
    pub lifecycle: String,
    /// Path of the run's log.
    pub log_path: String,
    /// Process group of the daemon.
    pub pgid: Option<i64>,
    /// Phase of the run.
    pub phase: String,
    /// The daemon (corrections 40); null when none drives the run.
    pub pid: Option<i64>,
    /// Open incident.
    pub recovery: RecoveryDoc,
    /// The repository.
    pub repo: String,
    /// The run; empty in a predecessor's file.
    pub run_id: String,
    /// Path of this file.
    pub runtime_path: String,
    /// Path of the snapshot.
    pub state_path: String,
    /// Rendered status.
    pub status: RuntimeStatus,
    /// Path of the plan.
    pub tasks_path: String,
    /// `none`, `all_tasks_done`, `user_stopped`, or a reason.
    pub terminal_reason: String,
    /// Last change.
    pub updated_at: String,
    /// [`DOC_VERSION`].
    pub version: i64,
}

impl RuntimeDoc {
    /// Reads a document; an old status `stopped` is terminal with reason `user_stopped`, an unknown one is idle.
    ///
    /// # Errors
    /// [`DocError`] when it is no JSON object or newer than us.
    pub fn read(text: &str) -> Result<Self, DocError> {
        let root = lenient::object(text)?;
        let (status, stopped) = match lenient::text(&root, "status").as_str() {
            "running" => (RuntimeStatus::Running, false),
            "recovery" => (RuntimeStatus::Recovery, false),
            "terminal" => (RuntimeStatus::Terminal, false),
            "stopped" => (RuntimeStatus::Terminal, true),
            _ => (RuntimeStatus::Idle, false),
        };
        let reason =
            if stopped { "user_stopped".to_owned() } else { lenient::text_or(&root, "terminal_reason", "none") };
        Ok(Self {
            command: lenient::texts(&root, "command"),
            created_at: lenient::text(&root, "created_at"),
            events_path: lenient::text(&root, "events_path"),
            hold: root.get("hold").cloned().unwrap_or(Value::Null),
            last_decision: lenient::text(&root, "last_decision"),
            last_error: lenient::text(&root, "last_error"),
            last_reason: lenient::text(&root, "last_reason"),
            last_role: lenient::text(&root, "last_role"),
            last_task_id: lenient::text(&root, "last_task_id"),
            launch_path: lenient::text(&root, "launch_path"),
            lifecycle: lenient::text(&root, "lifecycle"),
            log_path: lenient::text(&root, "log_path"),
            pgid: process_id(&root, "pgid"),
            phase: lenient::text(&root, "phase"),
            pid: process_id(&root, "pid"),
            recovery: RecoveryDoc::from_members(&lenient::members(&root, "recovery")),
            repo: lenient::text(&root, "repo"),
            run_id: lenient::text(&root, "run_id"),
            runtime_path: lenient::text(&root, "runtime_path"),
            state_path: lenient::text(&root, "state_path"),
            status,
            tasks_path: lenient::text(&root, "tasks_path"),
            terminal_reason: reason,
            updated_at: lenient::text(&root, "updated_at"),
            version: DOC_VERSION,
        })
    }
}

/// A process id; 0, 1 and negative ones are none: signalling them would reach far more than one process.
fn process_id(root: &Map<String, Value>, key: &str) -> Option<i64> {
    Some(lenient::integer(root, key)).filter(|pid| *pid > 1)
}
