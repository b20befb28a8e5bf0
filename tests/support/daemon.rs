//! The daemon as a process of the test: started, killed, started again.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::env::TestEnv;
use crate::wait::wait_for;

/// Where a daemon is to abort.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failpoint {
    /// Name in the registry.
    pub name: String,
    /// At which hit, from 1.
    pub hit: u32,
}

impl Failpoint {
    /// Every crash point of the daemon; empty when it was built without them.
    #[must_use]
    pub fn registry() -> &'static [&'static str] {
        harnessd::failpoint::REGISTRY
    }
}

/// A running daemon. Dropping it kills it.
#[derive(Debug)]
pub struct Daemon<'a> {
    env: &'a TestEnv,
    child: Child,
    /// One line for each crash point that was reached, over all daemons of the test.
    log: PathBuf,
}

impl TestEnv {
    /// Starts the daemon in the foreground and waits until it answers.
    #[must_use]
    pub fn daemon(&self) -> Daemon<'_> {
        let daemon = Daemon::spawn(self, None);
        daemon.wait_ready();
        daemon
    }

    /// Starts the daemon and does not wait for it.
    #[must_use]
    pub fn daemon_unready(&self) -> Daemon<'_> {
        Daemon::spawn(self, None)
    }

    /// Starts the daemon so that it aborts at a crash point. It may never answer: the point may lie in its start.
    #[must_use]
    pub fn daemon_that_dies(&self, at: &Failpoint) -> Daemon<'_> {
        Daemon::spawn(self, Some(at))
    }
}

impl<'a> Daemon<'a> {
    fn spawn(env: &'a TestEnv, at: Option<&Failpoint>) -> Self {
        let log = env.path("failpoints");
        let out = File::options().create(true).append(true).open(env.path("daemon.log")).expect("a log");
        let mut command = env.command(env.bin().join("harnessd"));
        command.env("HARNESS_FAILPOINT_LOG", &log).stdout(Stdio::null()).stderr(out);
        if let Some(at) = at {
            command.env("HARNESS_FAILPOINT", format!("{}:{}", at.name, at.hit));
        }
        let child = command.spawn().expect("harnessd starts");
        Self { env, child, log }
    }

    fn wait_ready(&self) {
        wait_for("the daemon answers", || {
            let done = self.env.harnessctl(&["daemon", "status", "--json"]);
            (done.code == 0).then_some(())
        });
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, and waits until it is gone.
    pub fn kill(mut self) {
        self.kill_now();
    }

    fn kill_now(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        // Not waited for yet, so the number is still ours.
        if matches!(self.child.try_wait(), Ok(None)) {
            kill(pid, Signal::SIGKILL).expect("our own child can be killed");
        }
        self.child.wait().expect("our own child can be waited for");
    }

    /// How it ended; none while it lives.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("our own child")
    }

    /// Asks it to end and does not wait.
    pub fn ask_to_end(&mut self) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        if matches!(self.child.try_wait(), Ok(None)) {
            kill(pid, Signal::SIGTERM).expect("our own child gets a signal");
        }
    }

    /// Waits until it aborts at its crash point; panics when it ends in another way.
    pub fn wait_abort(mut self) {
        let status = wait_for("the daemon aborts", || self.child.try_wait().expect("our own child"));
        assert_eq!(status.signal(), Some(Signal::SIGABRT as i32), "it ended otherwise: {status}\n{}", self.errors());
    }

    /// Asks it to end and waits; returns its exit code.
    pub fn terminate(mut self) -> i32 {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"));
        kill(pid, Signal::SIGTERM).expect("our own child gets a signal");
        let status = wait_for("the daemon ends", || self.child.try_wait().expect("our own child"));
        status.code().unwrap_or(-1)
    }

    /// Crash points that were reached so far, in order.
    #[must_use]
    pub fn hits(&self) -> Vec<String> {
        fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// What it said on standard error.
    #[must_use]
    pub fn errors(&self) -> String {
        fs::read_to_string(self.env.path("daemon.log")).unwrap_or_default()
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.kill_now();
    }
}
