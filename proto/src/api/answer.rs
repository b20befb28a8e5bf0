//! Bodies of answers. Each carries `schema`; members are only ever added.

use serde::{Deserialize, Serialize};

use super::view::{AttemptView, EventView, RunView, TaskView};

/// Answer of `create-launch` (artifacts.md 2, 2b).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CreateLaunchAnswer {
    /// `harness.create-launch/1`.
    pub schema: String,
    /// The confirmed goal.
    pub goal: String,
    /// `harness`.
    pub mode: String,
    /// Where the manifest stands.
    pub launch_path: String,
    /// The run; empty for a dry run.
    pub run_id: String,
    /// `registered`.
    pub lifecycle: String,
    /// Branch that the run lands on.
    pub branch: String,
    /// Its tip now.
    pub base: String,
    /// Suite and setup commands that will run.
    pub checks: Vec<String>,
    /// What the user should know: another name for artifacts, no verification, no wall, ….
    pub notes: Vec<String>,
    /// Whether nothing was written.
    pub dry_run: bool,
}

/// Answer of `start` (S4-008, S4-009).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartAnswer {
    /// `harness.start/1`.
    pub schema: String,
    /// The predecessor's word, `running`; `terminal` when there was nothing to start.
    pub status: String,
    /// The daemon's.
    pub pid: i64,
    /// Where the runtime file stands.
    pub runtime_path: String,
    /// Where the log of the run stands.
    pub log_path: String,
    /// The run.
    pub run_id: String,
    /// Its lifecycle now.
    pub lifecycle: String,
    /// What was the case before: `already running since …`, `completed`; empty for a plain start.
    pub note: String,
}

/// Answer of `stop` (S4-011).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StopAnswer {
    /// `harness.stop/1`.
    pub schema: String,
    /// The predecessor's word, `terminal`.
    pub status: String,
    /// Where the runtime file stands.
    pub runtime_path: String,
    /// The daemon's.
    pub pid: i64,
    /// The daemon's process group.
    pub pgid: i64,
    /// The run.
    pub run_id: String,
    /// Its lifecycle now.
    pub lifecycle: String,
    /// `user_stopped`, or why it had ended before.
    pub terminal_reason: String,
    /// Turns that ended when asked.
    pub ended: u32,
    /// Turns that were killed.
    pub killed: u32,
    /// Kept work by name, `refs/harness/…`.
    pub kept: Vec<String>,
    /// Processes of the run that still live; empty is the promise.
    pub living: Vec<i64>,
}

/// Answer of `pause`, `retry`, `skip`, `cancel`, `land`: the run as it is now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ControlAnswer {
    /// `harness.<verb>/1`.
    pub schema: String,
    /// What happened, a sentence.
    pub note: String,
    /// The run.
    pub run: RunView,
}

/// Answer of `list`, and of `status` without a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunList {
    /// `harness.list/1`.
    pub schema: String,
    /// The daemon.
    pub daemon: DaemonView,
    /// Runs, newest first, without tasks.
    pub runs: Vec<RunView>,
}

/// The daemon as it sees itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonView {
    /// Process id.
    pub pid: i64,
    /// Its version.
    pub version: String,
    /// Its protocol.
    pub protocol: u32,
    /// Whether it answered; false in facts read from `status.json`.
    pub alive: bool,
    /// When it started, RFC 3339.
    pub started_at: String,
    /// Its state directory.
    pub state_dir: String,
    /// Its socket.
    pub socket: String,
    /// Free part of the disk that holds the state directory, in percent.
    pub disk_free_percent: u32,
    /// Runs that it drives now.
    pub driving: u32,
}

/// Answer of `daemon status`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonAnswer {
    /// `harness.daemon/1`.
    pub schema: String,
    /// The daemon.
    pub daemon: DaemonView,
}

/// Answer of `show TASK`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskAnswer {
    /// `harness.show/1`.
    pub schema: String,
    /// The run.
    pub run_id: String,
    /// The task.
    pub task: TaskView,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptView>,
}

/// Answer of `events`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventPage {
    /// `harness.events/1`.
    pub schema: String,
    /// The run.
    pub run_id: String,
    /// Events, oldest first.
    pub events: Vec<EventView>,
    /// `seq` of the last one, or what was asked for when there is none.
    pub last: i64,
    /// Whether the run has ended and nothing follows.
    pub ended: bool,
}

/// One line of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// When, RFC 3339; empty when the line has no time.
    pub at: String,
    /// Event that it belongs to, 0 when none.
    pub seq: i64,
    /// `runtime` or a role.
    pub role: String,
    /// Task, empty when none.
    pub task: String,
    /// Attempt, 0 when none.
    pub attempt: u32,
    /// The text, one line, redacted.
    pub text: String,
}

/// Answer of `logs`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogPage {
    /// `harness.logs/1`.
    pub schema: String,
    /// The run.
    pub run_id: String,
    /// Lines, oldest first.
    pub lines: Vec<LogLine>,
    /// Where to go on.
    pub cursor: String,
    /// Whether nothing can follow.
    pub ended: bool,
}

/// Work that was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptWork {
    /// Its name, `refs/harness/<run>/…`.
    pub name: String,
    /// Its commit.
    pub commit: String,
    /// The task, empty for the run's own heads.
    pub task: String,
    /// The attempt, 0 when none.
    pub attempt: u32,
    /// Subject of the commit.
    pub subject: String,
    /// When it was made, RFC 3339.
    pub at: String,
}

/// Answer of `recover`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecoverAnswer {
    /// `harness.recover/1`.
    pub schema: String,
    /// The run.
    pub run_id: String,
    /// What is kept, newest first.
    pub kept: Vec<KeptWork>,
    /// The branch that was made; empty for a list.
    pub branch: String,
    /// Its commit; empty for a list.
    pub commit: String,
}

/// Answer of `rebuild`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RebuildAnswer {
    /// `harness.rebuild/1`.
    pub schema: String,
    /// The run.
    pub run_id: String,
    /// Files written anew.
    pub files: Vec<String>,
}

/// One finding of `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Diagnosis {
    /// Symbolic id.
    pub id: String,
    /// `ok`, `note`, `warning`, `error`.
    pub severity: String,
    /// What was found.
    pub what: String,
    /// Why it matters.
    pub why: String,
    /// The command that helps.
    pub next: String,
}

/// Answer of `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DoctorAnswer {
    /// `harness.doctor/1`.
    pub schema: String,
    /// Findings.
    pub findings: Vec<Diagnosis>,
}

/// Answer of `db check`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DbCheckAnswer {
    /// `harness.db-check/1`.
    pub schema: String,
    /// Whether nothing is wrong.
    pub ok: bool,
    /// What is wrong.
    pub problems: Vec<String>,
}

/// Answer of `tasks validate`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanCheckAnswer {
    /// `harness.tasks-validate/1`.
    pub schema: String,
    /// Whether a run would take it.
    pub ok: bool,
    /// Tasks in it.
    pub tasks: u32,
    /// Exact messages.
    pub errors: Vec<String>,
}

/// Answer of `daemon stop`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DaemonStopAnswer {
    /// `harness.daemon-stop/1`.
    pub schema: String,
    /// Its process id.
    pub pid: i64,
    /// Runs that the next daemon continues.
    pub continues: Vec<String>,
}
