//! Signals for whole trees: exact (pid and start time), stop-all before kill-all, so that fork storms cannot outrun us.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::table::{self, ProcessRow};

/// How many scans look for late children before the kill; measured: a storm of 1,000 needs two.
const STOP_ROUNDS: u32 = 20;

/// Sends `signal` to exactly this process; a stranger that got the same pid meanwhile is left alone.
pub(crate) fn signal_exactly(target: &ProcessRow, signal: Signal) -> bool {
    let Some(pid) = i32::try_from(target.pid).ok().and_then(Pid::from_raw) else {
        return false;
    };
    let Ok(pidfd) = pidfd_open(pid, PidfdFlags::empty()) else {
        return false;
    };
    // The pidfd pins the process, so that this comparison cannot become untrue before the signal.
    match table::row(target.pid) {
        Some(now) if now.start_time == target.start_time => {
            pidfd_send_signal(&pidfd, signal).is_ok()
        }
        Some(_) | None => false,
    }
}

/// One kill round: stops everything `scan` finds until nothing new appears, then kills it all.
///
/// Returns the processes that were signalled. A round may leave late children; the caller repeats until a scan is empty.
pub(crate) fn kill_round(scan: &dyn Fn() -> Vec<ProcessRow>) -> Vec<ProcessRow> {
    let mut stopped: Vec<ProcessRow> = Vec::new();
    let mut seen: HashSet<(u32, u64)> = HashSet::new();
    for _ in 0..STOP_ROUNDS {
        let fresh: Vec<ProcessRow> = scan()
            .into_iter()
            .filter(|row| seen.insert((row.pid, row.start_time)))
            .collect();
        if fresh.is_empty() {
            break;
        }
        for row in fresh {
            signal_exactly(&row, Signal::STOP);
            stopped.push(row);
        }
    }
    for row in &stopped {
        signal_exactly(row, Signal::KILL);
    }
    stopped
}

/// Kills everything `scan` finds, again and again, until nothing is left or `limit` has passed.
///
/// Returns the processes killed and those still alive (in uninterruptible sleep). Blocks; `between` runs after each
/// round (a sub-reaper reaps there).
pub(crate) fn kill_all(
    scan: &dyn Fn() -> Vec<ProcessRow>,
    limit: Duration,
    between: &mut dyn FnMut(),
) -> (HashSet<(u32, u64)>, Vec<ProcessRow>) {
    let begun = Instant::now();
    let mut killed = HashSet::new();
    loop {
        let round = kill_round(scan);
        killed.extend(round.iter().map(|row| (row.pid, row.start_time)));
        between();
        let left = scan();
        if left.is_empty() || begun.elapsed() >= limit {
            return (killed, left);
        }
        // The kernel needs a moment to tear killed processes down; this only paces the scans.
        std::thread::sleep(Duration::from_millis(2));
    }
}
