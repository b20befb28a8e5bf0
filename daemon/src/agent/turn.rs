//! What goes into a turn and what comes out.

use std::ffi::OsString;
use std::path::PathBuf;

use futures_util::future::BoxFuture;
use harness_core::effect::TurnRequest;
use harness_core::input::{TurnFailure, TurnUsage};
use harness_proto::ids::RunId;
use harness_proto::report::Report;
use harness_proto::vocab::FailureKind;
use tokio_util::sync::CancellationToken;

use crate::process::{Identity, Wall};

/// One turn, complete. Nothing is inherited from the daemon but what stands here.
#[derive(Debug, Clone)]
pub struct TurnSpec {
    /// The run.
    pub run: RunId,
    /// What the engine asked for. `{{PLAN_DIR}}` in `prompt` and `handover` is replaced by `plan_dir`.
    pub request: TurnRequest,
    /// The tree to work in.
    pub cwd: PathBuf,
    /// Where a planner reads and writes `tasks.json` and `plan.md`; set as `HARNESS_PLAN_DIR`.
    pub plan_dir: Option<PathBuf>,
    /// The private TMPDIR.
    pub tmp: PathBuf,
    /// What the agent's own sandbox may write beside `cwd`: git folder of the tree, the mirror's objects, TMPDIR.
    pub writable_roots: Vec<PathBuf>,
    /// The wall around the whole process.
    pub wall: Wall,
    /// The environment: the allow-list and the agent's own keys (artifacts 2b); the markers are added.
    pub env: Vec<(OsString, OsString)>,
    /// JSON Schema of the report.
    pub schema: serde_json::Value,
    /// A private folder for exit records and standard error; created when missing. A kept process lives in it: it stays until
    /// its session is closed.
    pub scratch: PathBuf,
    /// Where the transcript goes: JSON lines, capped, redacted; appended when it exists.
    pub transcript: PathBuf,
    /// Whether the agent's own sandbox is off (`danger_full_access`, corrections 47).
    pub danger: bool,
    /// Whether the agent's commands may use the network.
    pub network: bool,
    /// Names the session that a later turn may continue: run/task/role.
    pub session_key: String,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnResult {
    /// The report, or why there is none.
    pub text_report: Result<Report, TurnFailure>,
    /// The agent's session, when it has one that a later turn can ask for.
    pub session: Option<String>,
    /// Whether the session asked for was continued.
    pub resumed: bool,
    /// What it used.
    pub usage: TurnUsage,
    /// Name and version of the agent as it told.
    pub agent: String,
}

/// Asks a running turn to end. Both are level-triggered and may be cancelled at any time.
#[derive(Debug, Clone, Default)]
pub struct StopSignal {
    /// Interrupt the turn, then end its process within seconds.
    pub graceful: CancellationToken,
    /// Kill at once.
    pub now: CancellationToken,
}

/// Called with each new process and awaited before it gets its first byte, so that a crash leaves no unknown process.
pub type OnProcess<'a> = &'a (dyn Fn(Identity) -> BoxFuture<'static, ()> + Send + Sync);

/// A failure without further details.
pub(super) fn failure(kind: FailureKind, message: impl Into<String>) -> TurnFailure {
    TurnFailure { kind, message: message.into(), until: None, errors: Vec::new() }
}

impl TurnSpec {
    /// The text with `{{PLAN_DIR}}` filled in; prompts come from the engine, which knows no paths.
    pub(super) fn filled(&self, text: &str) -> String {
        match &self.plan_dir {
            Some(dir) => text.replace("{{PLAN_DIR}}", &dir.to_string_lossy()),
            None => text.to_owned(),
        }
    }
}
