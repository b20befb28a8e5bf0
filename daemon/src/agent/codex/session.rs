//! One app-server process and the thread that our turns go to.

use std::path::PathBuf;
use std::time::Duration;

use harness_core::input::TurnFailure;
use harness_proto::vocab::FailureKind;
use serde_json::{Value, json};

use super::connection::{Connection, Incoming};
use super::message::{Message, RpcError};
use super::meter::{Meter, Totals};
use super::outcome;
use crate::agent::launch::Running;
use crate::agent::transcript::Transcript;
use crate::agent::turn::{OnProcess, TurnSpec, failure};
use crate::agent::watch::Watch;
use crate::process::{Identity, StdinMode};

/// How long a server may take to end after the end of its input; measured: 0.16 s.
const EOF_GRACE: Duration = Duration::from_secs(2);
/// How long it may take after TERM.
const TERM_GRACE: Duration = Duration::from_secs(3);
/// How many late frames of an idle server are read before it is taken as broken.
const LATE_FRAMES: usize = 10_000;
/// How many ended turns are remembered.
const FINISHED_KEPT: usize = 16;

/// Notifications that only repeat, piece by piece, what comes whole later.
const MUTED: [&str; 4] = [
    "item/agentMessage/delta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
];

/// A live process after its handshake.
#[derive(Debug)]
pub(in crate::agent) struct Session {
    /// Frames.
    pub(super) connection: Connection,
    program: String,
    /// The TMPDIR that the process was started with, which its commands inherit.
    tmp: PathBuf,
    plan_dir: Option<PathBuf>,
    /// Name and version.
    pub(super) agent: String,
    /// The thread of the last turn.
    pub(super) thread: Option<String>,
    /// Its token total, when it is known.
    pub(super) total: Option<Totals>,
    finished: Vec<String>,
}

/// Why a request has no result.
enum CallError {
    /// The server's error answer.
    Refused(RpcError),
    /// The turn is over.
    Failed(TurnFailure),
}

impl Session {
    /// Starts a process and shakes hands.
    ///
    /// # Errors
    /// The turn's failure; no process is left.
    pub(super) async fn start(
        program: &str,
        spec: &TurnSpec,
        watch: &mut Watch,
        log: &mut Transcript,
        on_process: OnProcess<'_>,
    ) -> Result<Self, TurnFailure> {
        let argv = vec![program.into(), "app-server".into()];
        // The process may outlive the tree of its first turn: it lives in the scratch folder, threads name their own.
        let running = Running::start(argv, &spec.scratch, StdinMode::Pipe, spec, watch, on_process).await?;
        let mut session = Self {
            connection: Connection::new(running),
            program: program.to_owned(),
            tmp: spec.tmp.clone(),
            plan_dir: spec.plan_dir.clone(),
            agent: "codex".to_owned(),
            thread: None,
            total: None,
            finished: Vec::new(),
        };
        match session.shake_hands(watch, log).await {
            Ok(()) => Ok(session),
            Err(error) => {
                let failed = session.failure("initialize", error, log);
                session.close().await;
                Err(failed)
            }
        }
    }

    async fn shake_hands(&mut self, watch: &mut Watch, log: &mut Transcript) -> Result<(), CallError> {
        let params = json!({
            "clientInfo": {"name": "harnessd", "title": "Harness", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {"experimentalApi": false, "optOutNotificationMethods": MUTED},
        });
        let result = self.call("initialize", &params, watch, log).await?;
        self.connection.send(&json!({"method": "initialized"}), watch, log);
        // `harnessd/0.171.0 (…)`: the part behind the slash is the server's own version.
        let version = result["userAgent"].as_str().and_then(|agent| agent.split_once('/'));
        let version = version.and_then(|(_, rest)| rest.split_whitespace().next());
        if let Some(version) = version {
            self.agent = format!("codex {}", version.chars().take(40).collect::<String>());
        }
        Ok(())
    }

    /// Whether a kept process can take this turn; reads what it said since.
    pub(super) async fn usable(&mut self, program: &str, spec: &TurnSpec, watch: &Watch, log: &mut Transcript) -> bool {
        // Its environment is what it was started with.
        if self.program != program || self.plan_dir != spec.plan_dir || !self.tmp.is_dir() {
            return false;
        }
        for _ in 0..LATE_FRAMES {
            match tokio::time::timeout(Duration::ZERO, self.connection.next(watch, log)).await {
                Err(_) => return true,
                Ok(Incoming::End) => return false,
                Ok(Incoming::Message(_) | Incoming::Dropped(_)) => {}
            }
        }
        false
    }

    /// Makes the thread that the turn asks for the current one; true when an earlier session goes on.
    ///
    /// # Errors
    /// The turn's failure; the process is of no more use.
    pub(super) async fn open_thread(
        &mut self,
        spec: &TurnSpec,
        watch: &mut Watch,
        log: &mut Transcript,
    ) -> Result<bool, TurnFailure> {
        let place = json!({
            "cwd": spec.cwd.to_string_lossy(),
            "approvalPolicy": "never",
            "sandbox": if spec.danger { "danger-full-access" } else { "workspace-write" },
        });
        if let Some(wanted) = &spec.request.session {
            if self.thread.as_ref() == Some(wanted) {
                return Ok(true);
            }
            let mut params = place.clone();
            params["threadId"] = json!(wanted);
            match self.call("thread/resume", &params, watch, log).await {
                Ok(_) => {
                    self.enter(wanted.clone());
                    return Ok(true);
                }
                // Whatever the reason is: a new thread with the handover note goes on (weaknesses 2).
                Err(CallError::Refused(error)) => {
                    tracing::info!(session = %wanted, reason = %error.message, "the agent's session cannot be continued");
                }
                Err(error) => return Err(self.failure("thread/resume", error, log)),
            }
        }
        let mut params = place;
        params["ephemeral"] = json!(false);
        match self.call("thread/start", &params, watch, log).await {
            Ok(result) => match result["thread"]["id"].as_str() {
                Some(id) => {
                    self.total = None;
                    self.enter(id.to_owned());
                    self.total = Some(Totals::default());
                    Ok(false)
                }
                None => Err(failure(FailureKind::Protocol, "the agent started a thread without an id")),
            },
            Err(error) => Err(self.failure("thread/start", error, log)),
        }
    }

    fn enter(&mut self, thread: String) {
        self.thread = Some(thread);
        self.finished.clear();
    }

    /// Asks for something and waits for the answer; every other frame is dealt with on the way.
    async fn call(
        &mut self,
        method: &str,
        params: &Value,
        watch: &mut Watch,
        log: &mut Transcript,
    ) -> Result<Value, CallError> {
        let wanted = self.connection.request(method, params, watch, log);
        let mut replayed = Meter::default();
        loop {
            let incoming = tokio::select! {
                incoming = self.connection.next(watch, log) => incoming,
                wake = watch.wake() => return Err(CallError::Failed(watch.failure(wake))),
            };
            match incoming {
                Incoming::End => {
                    let phase = format!("while it was asked to `{method}`");
                    let failed = self.connection.running.post_mortem(&phase).await;
                    return Err(CallError::Failed(failed));
                }
                Incoming::Message(Message::Response { id, result }) if id == wanted => {
                    self.total = replayed.total();
                    return result.map_err(CallError::Refused);
                }
                Incoming::Message(Message::Request { id, method }) => {
                    self.connection.refuse(&id, &method, watch, log);
                }
                Incoming::Message(Message::Notification { method, params }) => {
                    if method == "thread/tokenUsage/updated" {
                        replayed.usage(&params["tokenUsage"], false);
                    }
                }
                Incoming::Message(_) | Incoming::Dropped(_) => {}
            }
        }
    }

    fn failure(&self, method: &str, error: CallError, log: &Transcript) -> TurnFailure {
        match error {
            CallError::Refused(error) => outcome::refused(method, &error, log.redactor()),
            CallError::Failed(failed) => failed,
        }
    }

    /// What the agent's own sandbox allows in this turn; given with every turn, because a resume loses it (corrections 3).
    pub(super) fn sandbox_policy(&self, spec: &TurnSpec) -> Value {
        if spec.danger {
            return json!({"type": "dangerFullAccess"});
        }
        let mut roots = spec.writable_roots.clone();
        roots.extend([spec.tmp.clone(), self.tmp.clone()]);
        roots.extend(spec.plan_dir.clone());
        let mut known: Vec<String> = Vec::new();
        for root in roots {
            let root = root.to_string_lossy().into_owned();
            if !known.contains(&root) {
                known.push(root);
            }
        }
        json!({
            "type": "workspaceWrite",
            "writableRoots": known,
            "networkAccess": spec.network,
            "excludeSlashTmp": true,
            "excludeTmpdirEnvVar": true,
        })
    }

    /// Turns of the current thread that have ended.
    pub(super) fn finished(&self) -> Vec<String> {
        self.finished.clone()
    }

    /// Remembers an ended turn.
    pub(super) fn finish(&mut self, turn: Option<String>, total: Option<Totals>) {
        self.total = total;
        self.finished.extend(turn);
        if self.finished.len() > FINISHED_KEPT {
            self.finished.remove(0);
        }
    }

    /// Who the process is.
    pub(in crate::agent) fn identity(&self) -> &Identity {
        self.connection.running.identity()
    }

    /// Ends the process: end of input, TERM, KILL; returns when nothing of its tree lives.
    pub(in crate::agent) async fn close(mut self) {
        self.connection.close_pipes();
        let running = &mut self.connection.running;
        match tokio::time::timeout(EOF_GRACE, running.child.wait()).await {
            Ok(_) => drop(running.seal()),
            Err(_) => running.end(TERM_GRACE).await,
        }
    }

    /// Kills the process; returns when nothing of its tree lives.
    pub(super) async fn kill(mut self) {
        self.connection.running.end(Duration::ZERO).await;
    }
}
