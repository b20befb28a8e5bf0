//! All agents of the daemon and their live sessions.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use harness_proto::ids::RunId;

use super::codex::{self, Session};
use super::command;
use super::kind::AgentKind;
use super::turn::{OnProcess, StopSignal, TurnResult, TurnSpec};
use crate::process::Identity;

/// How many idle sessions are kept alive; the one idle for longest ends first, its thread can still be resumed
/// (weaknesses 34).
const IDLE_MAX: usize = 4;

/// Runs turns; keeps the process of a session between two turns of the same key.
#[derive(Debug)]
pub struct Agents {
    own_binary: PathBuf,
    idle: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    sessions: HashMap<String, (u64, RunId, Session)>,
    counter: u64,
    closed: bool,
}

impl Agents {
    /// `own_binary` is this program, which is also the `offline` agent.
    #[must_use]
    pub fn new(own_binary: PathBuf) -> Self {
        Self { own_binary, idle: Mutex::default() }
    }

    /// Runs one turn to its end, whatever that is.
    ///
    /// `on_process` is awaited with each process before it gets its first byte.
    ///
    /// Cancel safety: a dropped future kills the turn's process; the turn then counts as lost.
    pub async fn run_turn(
        &self,
        kind: &AgentKind,
        spec: &TurnSpec,
        stop: StopSignal,
        on_process: OnProcess<'_>,
    ) -> TurnResult {
        match kind {
            AgentKind::Codex { program } => {
                let kept = self.take(&spec.session_key);
                let (result, session) = Box::pin(codex::run(program, spec, stop, kept, on_process)).await;
                if let Some(session) = session {
                    self.put(spec, session).await;
                }
                result
            }
            AgentKind::Command { argv } => {
                let argv = argv.iter().map(OsString::from).collect();
                Box::pin(command::run(argv, &kind.to_string(), spec, stop, on_process)).await
            }
            AgentKind::Offline { faults } => {
                let mut argv = vec![self.own_binary.clone().into(), "offline-agent".into()];
                if !faults.is_empty() {
                    argv.extend(["--faults".into(), OsString::from(faults)]);
                }
                let name = concat!("offline ", env!("CARGO_PKG_VERSION"));
                Box::pin(command::run(argv, name, spec, stop, on_process)).await
            }
        }
    }

    /// The processes of idle sessions.
    #[must_use]
    pub fn idle_processes(&self) -> Vec<Identity> {
        self.lock().sessions.values().map(|(_, _, session)| session.identity().clone()).collect()
    }

    /// Ends the idle session of this key, if there is one; returns when its processes are gone. A turn that is running is
    /// ended by its [`StopSignal`], not by this.
    pub async fn close_session(&self, key: &str) {
        if let Some(session) = self.take(key) {
            session.close().await;
        }
    }

    /// Ends the idle sessions of a run.
    pub async fn close_run(&self, run: &RunId) {
        let sessions = self.take_where(|owner| owner == run);
        close(sessions).await;
    }

    /// Ends all idle sessions and keeps none from now on.
    pub async fn close_all(&self) {
        self.lock().closed = true;
        let sessions = self.take_where(|_| true);
        close(sessions).await;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Idle> {
        // No code panics while it holds the lock; a poisoned map is still a correct map.
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, key: &str) -> Option<Session> {
        self.lock().sessions.remove(key).map(|(_, _, session)| session)
    }

    fn take_where(&self, wanted: impl Fn(&RunId) -> bool) -> Vec<Session> {
        let mut idle = self.lock();
        let found = idle.sessions.extract_if(|_, (_, run, _)| wanted(run));
        found.map(|(_, (_, _, session))| session).collect()
    }

    async fn put(&self, spec: &TurnSpec, session: Session) {
        let surplus = {
            let mut idle = self.lock();
            if idle.closed {
                vec![session]
            } else {
                idle.counter += 1;
                let entry = (idle.counter, spec.run.clone(), session);
                let replaced = idle.sessions.insert(spec.session_key.clone(), entry);
                let mut surplus: Vec<Session> = replaced.map(|(_, _, session)| session).into_iter().collect();
                if idle.sessions.len() > IDLE_MAX {
                    let oldest = idle.sessions.iter().min_by_key(|(_, (age, _, _))| *age);
                    let oldest = oldest.map(|(key, _)| key.clone());
                    let oldest = oldest.and_then(|key| idle.sessions.remove(&key));
                    surplus.extend(oldest.map(|(_, _, session)| session));
                }
                surplus
            }
        };
        close(surplus).await;
    }
}

async fn close(sessions: Vec<Session>) {
    futures_util::future::join_all(sessions.into_iter().map(Session::close)).await;
}
