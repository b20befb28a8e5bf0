//! A run and its parts as people and programs read them; computed from facts at read time, never stored (ux.md section 2).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::DaemonView;

/// A run: the predecessor's runtime members and ours (artifacts.md 1.2, 2b).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunView {
    /// `harness.status/1`.
    pub schema: String,
    /// Predecessor: `idle running recovery terminal`.
    pub status: String,
    /// Predecessor: `none all_tasks_done user_stopped` or the reason.
    pub terminal_reason: String,
    /// Predecessor: last word of the documented set (S4-066), or empty.
    pub last_decision: String,
    /// Predecessor: the fine reason.
    pub last_reason: String,
    /// Predecessor: last error text.
    pub last_error: String,
    /// Predecessor: role of the last turn.
    pub last_role: String,
    /// Predecessor: task of the last turn.
    pub last_task_id: String,
    /// Predecessor: the daemon's pid; null when none drives the run.
    pub pid: Option<i64>,
    /// Predecessor: the daemon's process group.
    pub pgid: Option<i64>,
    /// Predecessor: command line of the daemon.
    pub command: Vec<String>,
    /// Predecessor: whether a live process drives the run.
    pub runtime_running: bool,
    /// Predecessor: the recovery object (artifacts.md 1.4).
    pub recovery: Value,
    /// Predecessor: the repository.
    pub repo: String,
    /// Predecessor: path.
    pub events_path: String,
    /// Predecessor: path.
    pub launch_path: String,
    /// Predecessor: path.
    pub log_path: String,
    /// Predecessor: path.
    pub runtime_path: String,
    /// Predecessor: path.
    pub state_path: String,
    /// Predecessor: path.
    pub tasks_path: String,
    /// Predecessor: when the run was registered, RFC 3339.
    pub created_at: String,
    /// Last change, RFC 3339.
    pub updated_at: String,
    /// Predecessor: 1.
    pub version: i64,
    /// The run.
    pub run_id: String,
    /// What was asked for.
    pub goal: String,
    /// People's word (ux.md section 2).
    pub state: String,
    /// Lifecycle.
    pub lifecycle: String,
    /// Phase.
    pub phase: String,
    /// Why it does not move now.
    pub hold: Option<HoldView>,
    /// First start, RFC 3339; empty before.
    pub started_at: String,
    /// Branch that it lands on.
    pub branch: String,
    /// Tip of the branch at the first start.
    pub base: String,
    /// The run's own head.
    pub integration_head: String,
    /// State of landing.
    pub landing: LandingView,
    /// Tasks in order; empty in a list.
    pub tasks: Vec<TaskView>,
    /// Tasks by status.
    pub task_counts: BTreeMap<String, u32>,
    /// Counters (artifacts.md 1.3 names).
    pub counts: BTreeMap<String, i64>,
    /// Tokens and time.
    pub usage: UsageView,
    /// What walls the roles and evidence.
    pub walls: WallsView,
    /// Agents by role.
    pub agents: BTreeMap<String, String>,
    /// Whether tasks without a command may be accepted.
    pub no_verification: bool,
    /// Number of the last event.
    pub seq: i64,
    /// The command that continues, when somebody has to act.
    pub next: String,
    /// The daemon.
    pub daemon: DaemonView,
}

/// Why a run or task does not move.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HoldView {
    /// `paused parked needs_human recovery`.
    pub kind: String,
    /// `planner runtime user`.
    pub owner: String,
    /// Symbolic reason.
    pub reason: String,
    /// A sentence.
    pub detail: String,
    /// When it ends by itself, RFC 3339; empty when it does not.
    pub until: String,
    /// The command that continues.
    pub next: String,
    /// Since when, RFC 3339.
    pub since: String,
}

/// State of landing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LandingView {
    /// `none` (nothing accepted yet), `landed`, `pending`.
    pub status: String,
    /// Why it is pending.
    pub why: String,
    /// Paths in the way.
    pub paths: Vec<String>,
    /// What the user can run.
    pub command: String,
    /// Where the target was last brought.
    pub landed: String,
    /// Accepted commits that did not land.
    pub unlanded: u32,
}

/// Tokens and time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageView {
    /// Turns dispatched.
    pub turns: i64,
    /// Tokens in all.
    pub tokens: i64,
    /// Ceiling of tokens, 0 for none.
    pub max_tokens: i64,
    /// Agent time in milliseconds.
    pub agent_ms: i64,
}

/// What walls whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WallsView {
    /// Planner turns.
    pub planner: String,
    /// Implementer turns.
    pub implementer: String,
    /// Verifier turns.
    pub verifier: String,
    /// Setup and evidence commands.
    pub evidence: String,
}

/// A task in a list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskView {
    /// Id.
    pub id: String,
    /// Title.
    pub title: String,
    /// Stored status.
    pub status: String,
    /// People's word (ux.md section 2).
    pub state: String,
    /// Attempt in flight or last, 0 before the first.
    pub attempt: u32,
    /// Attempts allowed.
    pub attempts_max: u32,
    /// Smaller goes first.
    pub priority: i64,
    /// Tasks that must be done before.
    pub dependencies: Vec<String>,
    /// Why it does not move.
    pub hold: Option<HoldView>,
    /// A few words: what it waits for, what is quiet, why it failed.
    pub note: String,
    /// Agent of the turn in flight.
    pub agent: String,
    /// Since when it is in this state, RFC 3339; empty when not known.
    pub since: String,
    /// Commit on the integration head, when done.
    pub integrated_commit: String,
    /// Whether it was accepted without evidence.
    pub unproven: bool,
}

/// An attempt in full.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptView {
    /// From 1.
    pub attempt: u32,
    /// Where it is, or `decided`.
    pub stage: String,
    /// `accepted`, `reverted`, `failed:<why>`; empty while open.
    pub outcome: String,
    /// Commit of its tree.
    pub base: String,
    /// Trial commit.
    pub trial: String,
    /// Commit on the integration head.
    pub candidate: String,
    /// Implementer's summary.
    pub summary: String,
    /// Files that changed.
    pub changed: Vec<String>,
    /// `accept` or `revert`; empty before.
    pub verdict: String,
    /// Verifier's summary.
    pub verdict_summary: String,
    /// Codes of the gate, `CODE: sentence`.
    pub blockers: Vec<String>,
    /// Turns, oldest first.
    pub turns: Vec<TurnView>,
    /// Commands that the runtime ran.
    pub evidence: Vec<EvidenceView>,
    /// When it began, RFC 3339.
    pub started_at: String,
}

/// A turn.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnView {
    /// Number in the run.
    pub turn: i64,
    /// Who.
    pub role: String,
    /// What for.
    pub kind: String,
    /// `starting active quiet stalled`, or `report`, `failed:<kind>`, `lost`, `interrupted`.
    pub outcome: String,
    /// Why, when it failed.
    pub message: String,
    /// Agent name and version.
    pub agent: String,
    /// Tokens in all.
    pub tokens: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// When it began, RFC 3339.
    pub started_at: String,
    /// When the agent last showed life, RFC 3339; empty when not known.
    pub last_sign: String,
    /// Path of the transcript.
    pub transcript: String,
    /// Name of the report file.
    pub report: String,
}

/// A command that the runtime ran.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EvidenceView {
    /// What for: `baseline trial candidate restack`.
    pub purpose: String,
    /// Whether it is a setup command.
    pub setup: bool,
    /// As shown.
    pub command: String,
    /// Exit code.
    pub exit_code: i32,
    /// `PASS FAIL TIMED_OUT`.
    pub result: String,
    /// Kind of failure, empty for a pass.
    pub failure: String,
    /// Why exit 0 fails all the same; empty otherwise.
    pub note: String,
    /// Tests that ran, when known.
    pub tests: Option<u32>,
    /// Commit.
    pub commit: String,
    /// Tree.
    pub tree: String,
    /// Last 4,000 characters.
    pub stdout: String,
    /// Last 4,000 characters.
    pub stderr: String,
    /// Path of the whole output.
    pub output: String,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// When, RFC 3339.
    pub at: String,
}

/// An event: the nine columns, the run and details (artifacts.md 1.5, 2b).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventView {
    /// Place in the run's history.
    pub seq: i64,
    /// `2026-11-30T19:06:58+00:00`.
    pub timestamp: String,
    /// Who.
    pub role: String,
    /// Task, `-` when none.
    pub task_id: String,
    /// Attempt.
    pub attempt: u32,
    /// Commit, `-` when none.
    pub commit: String,
    /// Kind.
    pub status: String,
    /// Finer word.
    pub decision: String,
    /// A sentence.
    pub description: String,
    /// The run.
    pub run_id: String,
    /// Details; null when none.
    pub data: Value,
}

impl EventView {
    /// The view of a stored event.
    #[must_use]
    pub fn of(run: &crate::ids::RunId, event: &crate::event::Event) -> Self {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        Self {
            seq: event.seq.0,
            timestamp: crate::event::timestamp(event.at),
            role: dash(&event.role),
            task_id: dash(&event.task_id),
            attempt: event.attempt,
            commit: dash(&event.commit),
            status: dash(&event.status),
            decision: dash(&event.decision),
            description: event.description.clone(),
            run_id: run.to_string(),
            data: event.data.clone(),
        }
    }

    /// The event again, for its TSV line.
    #[must_use]
    pub fn event(&self) -> crate::event::Event {
        let text = |column: &str| if column == "-" { String::new() } else { column.to_owned() };
        let at = self.timestamp.parse::<jiff::Timestamp>().map_or(0, |t| t.as_millisecond());
        crate::event::Event {
            seq: crate::ids::Seq(self.seq),
            at: crate::ids::Millis(at),
            role: text(&self.role),
            task_id: text(&self.task_id),
            attempt: self.attempt,
            commit: text(&self.commit),
            status: text(&self.status),
            decision: text(&self.decision),
            description: self.description.clone(),
            data: self.data.clone(),
        }
    }
}
