//! What the API needs from the runtime: one trait, implemented where runs are driven.

use std::future::Future;
use std::pin::Pin;

use harness_proto::api::answer::{
    ControlAnswer, CreateLaunchAnswer, DaemonStopAnswer, DaemonView, DbCheckAnswer, DoctorAnswer, EventPage, LogPage,
    PlanCheckAnswer, RebuildAnswer, RecoverAnswer, RunList, StartAnswer, StopAnswer, TaskAnswer,
};
use harness_proto::api::request::{CreateLaunch, ListQuery, LogsQuery, Recover, Start};
use harness_proto::api::view::RunView;
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use tokio::sync::broadcast;

/// A boxed future of an answer or a refusal.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Problem>> + Send + 'a>>;

/// How a request names a run (ux.md section 10).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// A complete id or a prefix; the prefix may leave `run_` out.
    Id(String),
    /// The newest run of all.
    Last,
    /// The active, else the newest run of the repository that holds this absolute path.
    Repo(String),
}

/// What is asked of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskVerb {
    /// More attempts, with a note for the implementer.
    Retry(String),
    /// Leave it out, for this reason.
    Skip(String),
    /// Give it up.
    Cancel,
}

/// Something happened to a run: streams read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The run.
    pub run: RunId,
    /// Its last event.
    pub seq: i64,
}

/// An answer as it was given, for repeats of the same request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// What was asked: method, path and digest of the body.
    pub fingerprint: String,
    /// HTTP status.
    pub status: u16,
    /// JSON body.
    pub body: String,
}

/// The runtime behind the API. Every mutation flushes the files of its run before it answers (DESIGN 10) and is safe to repeat.
///
/// Cancel safety: mutations are never dropped half-way by the API; reads may be.
pub trait Control: Send + Sync + 'static {
    /// The daemon as it sees itself.
    fn daemon_status(&self) -> Answer<'_, DaemonView>;
    /// Begins to go down; answers before the socket closes.
    fn daemon_stop(&self) -> Answer<'_, DaemonStopAnswer>;
    /// Checks machine, and repository when one is named.
    fn doctor(&self, repo: Option<String>) -> Answer<'_, DoctorAnswer>;
    /// Checks the database.
    fn db_check(&self) -> Answer<'_, DbCheckAnswer>;
    /// Checks the bytes of a `tasks.json`; errors of the plan are an answer, not a refusal.
    fn tasks_validate(&self, bytes: Vec<u8>) -> Answer<'_, PlanCheckAnswer>;

    /// Registers a run. `request` is the caller's id: a repeat after a crash must find the same run.
    fn create_launch(&self, body: CreateLaunch, request: Option<String>) -> Answer<'_, CreateLaunchAnswer>;
    /// Runs, newest first.
    fn list(&self, query: ListQuery) -> Answer<'_, RunList>;
    /// The run that a selector names; `RUN_UNKNOWN` or `RUN_AMBIGUOUS` otherwise.
    fn resolve(&self, selector: Selector) -> Answer<'_, RunId>;
    /// A run as it is now.
    fn status(&self, run: RunId) -> Answer<'_, RunView>;
    /// A task with its attempts.
    fn show_task(&self, run: RunId, task: String) -> Answer<'_, TaskAnswer>;
    /// Events with `seq > since`, oldest first, at most `limit`.
    fn events_since(&self, run: RunId, since: i64, limit: u32) -> Answer<'_, EventPage>;
    /// Log lines of a run: its runtime log and the transcripts of its turns, in order of time.
    fn logs(&self, run: RunId, query: LogsQuery) -> Answer<'_, LogPage>;
    /// A receiver of notices of every run. A lagging receiver loses notices, never events.
    fn subscribe(&self) -> broadcast::Receiver<Notice>;

    /// Begin or continue (DESIGN 4).
    fn start(&self, run: RunId, body: Start) -> Answer<'_, StartAnswer>;
    /// Stop; answers when no process of the run lives.
    fn stop(&self, run: RunId, now: bool) -> Answer<'_, StopAnswer>;
    /// No new turn; answers once the hold is stored.
    fn pause(&self, run: RunId) -> Answer<'_, ControlAnswer>;
    /// Give the run up; final.
    fn cancel(&self, run: RunId) -> Answer<'_, ControlAnswer>;
    /// Bring accepted commits to the target branch now.
    fn land(&self, run: RunId) -> Answer<'_, ControlAnswer>;
    /// Retry, skip or cancel a task.
    fn task(&self, run: RunId, task: String, verb: TaskVerb) -> Answer<'_, ControlAnswer>;
    /// List kept work or make a branch of it.
    fn recover(&self, run: RunId, body: Recover) -> Answer<'_, RecoverAnswer>;
    /// Write the files of a run anew from the store.
    fn rebuild(&self, run: RunId) -> Answer<'_, RebuildAnswer>;

    /// The stored answer of a request id, if there is one.
    fn recall(&self, request: String) -> Answer<'_, Option<Recorded>>;
    /// Stores the answer of a request id; a later `recall` finds it.
    fn remember(&self, request: String, recorded: Recorded) -> Answer<'_, ()>;
}
