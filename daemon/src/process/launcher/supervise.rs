//! The launcher's loop: drains outputs, obeys orders, reaps, and ends when no descendant lives.
//!
//! ```text
//! Running ──main ended──▶ Leaking(1 s) ──┐
//!    │  └──────order────▶ Ending(grace) ─┼──▶ kill all ──▶ record
//!    └────kill, lifeline, limit──────────┘
//! ```

use std::collections::HashSet;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::control::{Control, Order};
use super::drain::{Drain, READS_PER_TURN};
use crate::process::record::{Captured, Cause, ExecFailure, ExecStep, ExitRecord};
use crate::process::spec::LaunchSpec;
use crate::process::table::{self, ProcessRow};
use crate::process::tree;

/// How long a descendant may outlive the program (T8: a holder of stdout delays the end by at most this).
const LEAK_GRACE: Duration = Duration::from_secs(1);
/// How long killing may take before the record says that something is unkillable.
const KILL_LIMIT: Duration = Duration::from_secs(10);
/// How often the number of processes is looked at, when it is limited.
const COUNT_EVERY: Duration = Duration::from_millis(500);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    Leaking { until: Instant },
    Ending { until: Instant },
    Over,
}

/// Everything stage 1 holds while a tree lives.
pub(super) struct Supervision<'spec> {
    spec: &'spec LaunchSpec,
    signals: SignalFd,
    control: Control,
    outcome: Option<File>,
    outcome_text: Vec<u8>,
    main: u32,
    main_start: u64,
    main_end: Option<(Option<i32>, Option<i32>)>,
    drains: [Option<Drain>; 2],
    phase: Phase,
    cause: Option<Cause>,
    begun: Instant,
    begun_uptime: Duration,
    next_count: Option<Instant>,
    killed: HashSet<(u32, u64)>,
    left: usize,
    buffer: Vec<u8>,
}

impl<'spec> Supervision<'spec> {
    pub(super) fn new(
        spec: &'spec LaunchSpec,
        signals: SignalFd,
        outcome: File,
        main: u32,
        drains: [Option<Drain>; 2],
    ) -> Self {
        let begun = Instant::now();
        Self {
            spec,
            signals,
            control: Control::default(),
            outcome: Some(outcome),
            outcome_text: Vec::new(),
            main,
            main_start: table::row(main).map_or(0, |row| row.start_time),
            main_end: None,
            drains,
            phase: Phase::Running,
            cause: None,
            begun,
            begun_uptime: uptime(),
            next_count: spec.limits.max_processes.map(|_| begun + COUNT_EVERY),
            killed: HashSet::new(),
            left: 0,
            buffer: vec![0; 64 * 1024],
        }
    }

    /// Runs until no descendant lives and returns the record.
    pub(super) fn run(mut self) -> ExitRecord {
        while self.phase != Phase::Over {
            self.wait_for_events();
            self.advance();
        }
        self.kill_the_rest();
        self.finish()
    }

    fn wait_for_events(&mut self) {
        let mut fds: Vec<(Source, BorrowedFd<'_>)> = Vec::new();
        let stderr = std::io::stderr();
        fds.push((Source::Signals, self.signals.as_fd()));
        fds.push((Source::Control, stderr.as_fd()));
        if let Some(outcome) = &self.outcome {
            fds.push((Source::Outcome, outcome.as_fd()));
        }
        for (index, drain) in self.drains.iter().enumerate() {
            if let Some(reader) = drain.as_ref().and_then(Drain::open_reader) {
                fds.push((Source::Output(index), reader.as_fd()));
            }
        }
        let mut polled: Vec<PollFd<'_>> = fds.iter().map(|(_, fd)| PollFd::new(*fd, PollFlags::POLLIN)).collect();
        if poll(&mut polled, self.timeout()).is_err() {
            return;
        }
        let ready: Vec<Source> = fds
            .iter()
            .zip(&polled)
            .filter(|(_, polled)| polled.any().unwrap_or(true))
            .map(|((source, _), _)| *source)
            .collect();
        for source in ready {
            self.handle(source);
        }
    }

    fn handle(&mut self, source: Source) {
        match source {
            Source::Signals => self.take_signals(),
            Source::Control => {
                for order in self.control.read() {
                    self.obey(order);
                }
            }
            Source::Outcome => self.take_outcome(),
            Source::Output(index) => {
                if let Some(drain) = &mut self.drains[index] {
                    drain.read(&mut self.buffer, READS_PER_TURN);
                }
            }
        }
    }

    fn take_signals(&mut self) {
        while let Ok(Some(info)) = self.signals.read_signal() {
            if i32::try_from(info.ssi_signo) != Ok(Signal::SIGCHLD as i32) {
                self.obey(Order::Kill);
            }
        }
        self.reap();
    }

    /// Reaps every child that ended; orphans of the whole tree are our children.
    fn reap(&mut self) {
        loop {
            let ended = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => (pid, (Some(code), None)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, (None, Some(signal as i32))),
                Ok(WaitStatus::StillAlive) | Err(nix::errno::Errno::ECHILD) => return,
                Ok(_) | Err(_) => continue,
            };
            if u32::try_from(ended.0.as_raw()) == Ok(self.main) && self.main_end.is_none() {
                self.main_end = Some(ended.1);
            }
        }
    }

    fn obey(&mut self, order: Order) {
        let cause = match order {
            Order::Terminate(_) | Order::Kill => Cause::KilledByUs,
            Order::LifelineLost => Cause::LifelineLost,
        };
        match order {
            Order::Terminate(grace) => {
                if matches!(self.phase, Phase::Running | Phase::Leaking { .. }) {
                    for row in self.descendants() {
                        tree::signal_exactly(&row, rustix::process::Signal::TERM);
                        // A stopped process takes the signal only when it goes on.
                        tree::signal_exactly(&row, rustix::process::Signal::CONT);
                    }
                    self.phase = Phase::Ending { until: Instant::now() + grace };
                }
            }
            Order::Kill | Order::LifelineLost => self.phase = Phase::Over,
        }
        if self.main_end.is_none() {
            self.cause.get_or_insert(cause);
        }
    }

    /// Learns from stage 2 whether the program was executed: an end without a word is success.
    fn take_outcome(&mut self) {
        let Some(outcome) = &mut self.outcome else {
            return;
        };
        let mut buffer = [0_u8; 4096];
        match outcome.read(&mut buffer) {
            Ok(0) => {
                self.outcome = None;
                if self.outcome_text.is_empty() {
                    Control::say("started");
                }
            }
            Ok(n) => self.outcome_text.extend_from_slice(&buffer[..n]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.outcome = None,
        }
    }

    /// Moves through the phases on what is known now.
    fn advance(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.main_end.is_some() => {
                let grace = self.spec.limits.leak_grace.unwrap_or(LEAK_GRACE);
                self.phase =
                    if self.descendants().is_empty() { Phase::Over } else { Phase::Leaking { until: now + grace } };
            }
            Phase::Running => self.check_limits(now),
            Phase::Leaking { until } | Phase::Ending { until } => {
                let over = now >= until || self.descendants().is_empty();
                if over {
                    if matches!(self.phase, Phase::Leaking { .. }) && self.output_is_held() {
                        self.cause = Some(Cause::OutputHolderKilled);
                    }
                    self.phase = Phase::Over;
                }
            }
            Phase::Over => {}
        }
    }

    fn output_is_held(&mut self) -> bool {
        for drain in self.drains.iter_mut().flatten() {
            drain.read(&mut self.buffer, READS_PER_TURN);
        }
        let held = self.drains.iter().flatten().any(|drain| drain.open_reader().is_some());
        held && !self.descendants().is_empty()
    }

    fn check_limits(&mut self, now: Instant) {
        let Some(limit) = self.spec.limits.max_wall else {
            return self.check_count(now);
        };
        if uptime().saturating_sub(self.begun_uptime) >= limit {
            self.cause.get_or_insert(Cause::MaxWall);
            self.phase = Phase::Over;
        } else {
            self.check_count(now);
        }
    }

    fn check_count(&mut self, now: Instant) {
        let (Some(most), Some(due)) = (self.spec.limits.max_processes, self.next_count) else {
            return;
        };
        if now < due {
            return;
        }
        self.next_count = Some(now + COUNT_EVERY);
        if self.descendants().len() as u64 > most {
            self.cause.get_or_insert(Cause::TooManyProcesses);
            self.phase = Phase::Over;
        }
    }

    fn timeout(&self) -> PollTimeout {
        let now = Instant::now();
        let mut wait: Option<Duration> = match self.phase {
            Phase::Leaking { until } | Phase::Ending { until } => Some(until.saturating_duration_since(now)),
            Phase::Running | Phase::Over => None,
        };
        let mut sooner = |other: Duration| wait = Some(wait.map_or(other, |w| w.min(other)));
        if let Some(limit) = self.spec.limits.max_wall {
            sooner(limit.saturating_sub(uptime().saturating_sub(self.begun_uptime)));
        }
        if let Some(due) = self.next_count {
            sooner(due.saturating_duration_since(now));
        }
        // One more millisecond, so that a deadline is over when we wake up.
        wait.map_or(PollTimeout::NONE, |wait| {
            PollTimeout::try_from(wait + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
        })
    }

    fn descendants(&self) -> Vec<ProcessRow> {
        table::descendants(&[std::process::id()])
    }

    /// Kills until nothing lives, then takes what the pipes still hold.
    fn kill_the_rest(&mut self) {
        let own = std::process::id();
        let scan = || table::descendants(&[own]);
        let (killed, left) = tree::kill_all(Some(own), &scan, KILL_LIMIT, &mut || self.reap());
        self.reap();
        self.left = left.len();
        self.killed = killed;
        self.killed.remove(&(self.main, self.main_start));
        while self.outcome.is_some() && self.outcome_text.len() < 64 * 1024 {
            let before = self.outcome_text.len();
            self.take_outcome();
            if self.outcome_text.len() == before {
                break;
            }
        }
        for drain in self.drains.iter_mut().flatten() {
            // No writer lives, so that a pipe holds at most its capacity (1 MiB, the most a user may set).
            drain.read(&mut self.buffer, READS_PER_TURN * 2);
        }
    }

    fn finish(self) -> ExitRecord {
        let (code, signal) = self.main_end.unwrap_or_default();
        let natural = if signal.is_some() { Cause::Signalled } else { Cause::Exited };
        let cause = self.cause.unwrap_or(natural);
        let mut record = ExitRecord::new(self.spec.marker.clone(), cause);
        let [stdout, stderr] = self.drains.map(|drain| drain.map_or(Captured::default(), Drain::finish));
        record.code = code;
        record.signal = signal;
        record.stdout = stdout;
        record.stderr = stderr;
        record.survivors_killed = u32::try_from(self.killed.len()).unwrap_or(u32::MAX);
        record.survivors_left = u32::try_from(self.left).unwrap_or(u32::MAX);
        let slept = uptime().saturating_sub(self.begun_uptime);
        let duration = slept.max(self.begun.elapsed());
        record.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if !self.outcome_text.is_empty() {
            record.cause = Cause::NotStarted;
            record.failure = Some(serde_json::from_slice(&self.outcome_text).unwrap_or_else(|_| ExecFailure {
                step: ExecStep::Launcher,
                detail: String::from_utf8_lossy(&self.outcome_text).into_owned(),
                errno: None,
            }));
        }
        record
    }
}

#[derive(Debug, Clone, Copy)]
enum Source {
    Signals,
    Control,
    Outcome,
    Output(usize),
}

/// Time since boot, sleep included, in steps of 10 ms.
fn uptime() -> Duration {
    std::fs::read_to_string("/proc/uptime")
        .ok()
        .and_then(|text| text.split_ascii_whitespace().next()?.parse().ok())
        .map_or(Duration::ZERO, Duration::from_secs_f64)
}
