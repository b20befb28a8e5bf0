//! Starting an agent's process and telling how it ended.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_core::input::TurnFailure;
use harness_proto::vocab::FailureKind;

use super::turn::{OnProcess, TurnSpec, failure};
use super::watch::Watch;
use crate::process::{
    self, Child, Exit, Identity, Limits, Marker, OutputMode, ProcessError, SpawnError, Spec, StdinMode,
};
use crate::redact::Redactor;

/// How much of standard error is kept, in bytes.
const STDERR_CAP: u64 = 1024 * 1024;
/// How much of it a message quotes, in bytes.
const STDERR_QUOTED: usize = 600;

/// A started agent.
#[derive(Debug)]
pub(super) struct Running {
    /// The tree.
    pub(super) child: Child,
    stderr: PathBuf,
    redactor: Redactor,
}

impl Running {
    /// Starts `argv` for a turn and lets the caller store who it is.
    ///
    /// # Errors
    /// The turn's failure: the program is missing or cannot be started, or the turn has to end.
    ///
    /// Cancel safety: a dropped future leaves no process.
    pub(super) async fn start(
        argv: Vec<OsString>,
        cwd: &Path,
        stdin: StdinMode,
        spec: &TurnSpec,
        watch: &Watch,
        on_process: OnProcess<'_>,
    ) -> Result<Self, TurnFailure> {
        let task = spec.request.task.as_ref().map_or("", |task| task.as_str());
        let marker = Marker::new(spec.run.as_str(), task, spec.request.attempt, spec.request.role.as_str());
        let stderr = spec.scratch.join(format!("{}.stderr", marker.nonce));
        let program = argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let started = process::spawn(Spec {
            argv,
            cwd: cwd.to_owned(),
            env: environment(spec),
            stdin,
            stdout: OutputMode::Pipe,
            stderr: OutputMode::File { path: stderr.clone(), cap_bytes: STDERR_CAP },
            wall: spec.wall.clone(),
            limits: Limits::default(),
            record: spec.scratch.join(format!("{}.exit.json", marker.nonce)),
            scratch: spec.scratch.clone(),
            marker,
        });
        let mut started = Box::pin(started);
        let started = tokio::select! {
            child = &mut started => child,
            wake = watch.wake() => {
                // Dropping the start would leave its end to the launcher, and the turn would be over before its process is.
                if let Ok(mut child) = started.await
                    && let Err(error) = child.kill().await
                {
                    tracing::warn!(%error, "an agent's process did not end cleanly");
                }
                return Err(watch.failure(wake));
            }
        };
        let child = started.map_err(|error| not_started(&program, &error))?;
        on_process(child.identity().clone()).await;
        Ok(Self { child, stderr, redactor: Redactor::of_environment(&spec.env) })
    }

    /// Who it is.
    pub(super) fn identity(&self) -> &Identity {
        self.child.identity()
    }

    /// TERM, then KILL after `grace`; returns when nothing of the tree lives.
    pub(super) async fn end(&mut self, grace: Duration) {
        let ended = if grace.is_zero() { self.child.kill().await } else { self.child.terminate(grace).await };
        if let Err(error) = ended {
            tracing::warn!(pid = self.identity().pid, %error, "an agent's process did not end cleanly");
        }
        drop(self.seal());
    }

    /// Waits a little for a process that closed its output, then ends it; says how it ended, with its last words.
    ///
    /// End of output is a state and the exit status classifies it (weaknesses 6).
    pub(super) async fn post_mortem(&mut self, phase: &str) -> TurnFailure {
        let waited = tokio::time::timeout(Duration::from_secs(2), self.child.wait()).await;
        let exit = match waited {
            Ok(exit) => exit,
            Err(_) => self.child.terminate(Duration::from_secs(2)).await,
        };
        let mut message = format!("the agent's process {} {phase}", how(&exit));
        let text = self.seal();
        let start = text.ceil_char_boundary(text.len().saturating_sub(STDERR_QUOTED));
        let words = text[start..].split_whitespace().collect::<Vec<_>>().join(" ");
        if !words.is_empty() {
            message.push_str("; its last words: ");
            message.push_str(&words);
        }
        failure(FailureKind::Crashed, message)
    }

    /// Takes the secrets out of what was kept of standard error, once the process has ended, and returns it.
    pub(super) fn seal(&self) -> String {
        let sealed = std::fs::read(&self.stderr).and_then(|bytes| {
            let text = self.redactor.text(&String::from_utf8_lossy(&bytes));
            if text.as_bytes() != bytes {
                std::fs::write(&self.stderr, &text)?;
            }
            Ok(text)
        });
        sealed.unwrap_or_else(|error| {
            tracing::warn!(path = %self.stderr.display(), %error, "standard error of an agent cannot be read");
            String::new()
        })
    }
}

/// The allow-listed environment with what the turn adds; later entries win.
fn environment(spec: &TurnSpec) -> Vec<(OsString, OsString)> {
    let mut env = spec.env.clone();
    env.push(("TMPDIR".into(), spec.tmp.clone().into()));
    env.push(("CI".into(), "1".into()));
    if let Some(dir) = &spec.plan_dir {
        env.push(("HARNESS_PLAN_DIR".into(), dir.clone().into()));
    }
    env
}

fn not_started(program: &str, error: &SpawnError) -> TurnFailure {
    let mut message = format!("agent `{program}` did not start: {error}");
    if let Some(source) = std::error::Error::source(error) {
        message = format!("{message}: {source}");
    }
    failure(FailureKind::Crashed, message)
}

fn how(exit: &Result<Exit, ProcessError>) -> String {
    match exit {
        Ok(Exit { signal: Some(signal), .. }) => format!("was ended by signal {signal}"),
        Ok(Exit { code: Some(code), .. }) => format!("exited with status {code}"),
        Ok(Exit { .. }) => "ended".to_owned(),
        Err(error) => format!("ended in an unknown way ({error})"),
    }
}
