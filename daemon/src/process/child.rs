//! A running tree, seen from the daemon.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::task::JoinSet;

use super::error::ProcessError;
use super::identity::Identity;
use super::orphans::reap_orphans;
use super::record::{Captured, Cause, ExitRecord};

/// How much longer than the grace the launcher may take to kill its tree and write the record.
const LAUNCHER_LIMIT: Duration = Duration::from_secs(15);

/// How a tree ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// The program's exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// From start to the end of the whole tree.
    pub duration: Duration,
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
    /// Why it ended.
    pub cause: Cause,
    /// Descendants that outlived the program and were killed.
    pub survivors_killed: u32,
}

/// A running tree. Dropping it closes the lifeline, and the launcher kills the tree.
#[derive(Debug)]
pub struct Child {
    launcher: tokio::process::Child,
    identity: Identity,
    record: PathBuf,
    lifeline: (BufReader<OwnedReadHalf>, OwnedWriteHalf),
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    /// The task that writes `StdinMode::Bytes`; ends with the child's input.
    feeding: JoinSet<()>,
}

impl Child {
    pub(super) fn new(
        launcher: tokio::process::Child,
        identity: Identity,
        record: PathBuf,
        lifeline: (BufReader<OwnedReadHalf>, OwnedWriteHalf),
        stdin: Option<ChildStdin>,
        stdout: Option<ChildStdout>,
        feeding: JoinSet<()>,
    ) -> Self {
        Self { launcher, identity, record, lifeline, stdin, stdout, feeding }
    }

    /// Returns who the launcher is; store it before the tree is used.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Takes the writing end of standard input (`StdinMode::Pipe`); dropping it is the end of input.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Takes the reading end of standard output (`OutputMode::Pipe`).
    ///
    /// Who takes it must read on: a child blocks on a full pipe. Lines are the reader's to bound.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.stdout.take()
    }

    /// Waits until the tree has ended, and says how. May be called again.
    ///
    /// # Errors
    /// See [`ProcessError`]; after an error of kind `LauncherDied` the tree has been killed here.
    ///
    /// Cancel safety: safe; nothing is lost when the future is dropped.
    pub async fn wait(&mut self) -> Result<Exit, ProcessError> {
        let status =
            self.launcher.wait().await.map_err(|source| ProcessError::Wait { pid: self.identity.pid, source })?;
        self.feeding.abort_all();
        let record = ExitRecord::load(&self.record)
            .map_err(|source| ProcessError::Record { path: self.record.clone(), source })?;
        let Some(record) = record else {
            self.kill_from_outside().await;
            return Err(ProcessError::LauncherDied { pid: self.identity.pid, status: status.to_string() });
        };
        if record.survivors_left > 0 {
            return Err(ProcessError::Unkillable { pid: self.identity.pid, count: record.survivors_left });
        }
        Ok(Exit {
            code: record.code,
            signal: record.signal,
            duration: Duration::from_millis(record.duration_ms),
            stdout: record.stdout,
            stderr: record.stderr,
            cause: record.cause,
            survivors_killed: record.survivors_killed,
        })
    }

    /// Sends TERM to the whole tree, KILL after `grace`, and returns when no descendant lives.
    ///
    /// # Errors
    /// As [`Child::wait`].
    ///
    /// Cancel safety: safe; the order stands, and a later call waits on.
    pub async fn terminate(&mut self, grace: Duration) -> Result<Exit, ProcessError> {
        self.order(&format!("term {}\n", grace.as_millis())).await;
        self.wait_at_most(grace + LAUNCHER_LIMIT).await
    }

    /// Sends KILL to the whole tree and returns when no descendant lives.
    ///
    /// # Errors
    /// As [`Child::wait`].
    ///
    /// Cancel safety: safe; the order stands, and a later call waits on.
    pub async fn kill(&mut self) -> Result<Exit, ProcessError> {
        self.order("kill\n").await;
        self.wait_at_most(LAUNCHER_LIMIT).await
    }

    async fn order(&mut self, line: &str) {
        // A launcher that is gone needs no order.
        drop(self.lifeline.1.write_all(line.as_bytes()).await);
    }

    /// Waits for the launcher; one that does not come to an end (stopped by somebody, say) is killed with its tree.
    async fn wait_at_most(&mut self, limit: Duration) -> Result<Exit, ProcessError> {
        match tokio::time::timeout(limit, self.wait()).await {
            Ok(exit) => exit,
            Err(_) => {
                self.kill_from_outside().await;
                self.wait().await
            }
        }
    }

    async fn kill_from_outside(&self) {
        let known = [self.identity.clone()];
        let killing = tokio::task::spawn_blocking(move || reap_orphans(&known));
        // A panic in there leaves processes behind; the next start reaps them by their marker.
        drop(killing.await);
    }
}
