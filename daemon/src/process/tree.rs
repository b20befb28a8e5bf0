//! Signals for whole trees: exact (pid and start time), stop-all before kill-all, so that fork storms cannot outrun us.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
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

/// The processes of one tree that were stopped so far.
type Stopped = HashMap<(u32, u64), ProcessRow>;

/// Walks the table once and stops each descendant of `root` as soon as it is seen.
///
/// Stopping while walking is what outruns a fork storm: a list made first is stale before it is complete. Parents mostly
/// have lower pids than their children; what this misses, the caller's full scan finds.
fn stop_while_walking(root: u32, stopped: &mut Stopped) -> usize {
    let mut family: HashSet<u32> = HashSet::from([root]);
    let mut fresh = 0;
    table::walk(|row| {
        if row.pid == root || row.dead {
            return;
        }
        match stopped.entry((row.pid, row.start_time)) {
            Entry::Occupied(_) => {
                family.insert(row.pid);
            }
            Entry::Vacant(place) if family.contains(&row.ppid) => {
                signal_exactly(&row, Signal::STOP);
                family.insert(row.pid);
                place.insert(row);
                fresh += 1;
            }
            Entry::Vacant(_) => {}
        }
    });
    fresh
}

/// One kill round: stops everything `scan` finds until nothing new appears, then kills it all.
///
/// Returns the processes that were signalled. A round may leave late children; the caller repeats until a scan is empty.
fn kill_round(root: Option<u32>, scan: &dyn Fn() -> Vec<ProcessRow>) -> Stopped {
    let mut stopped = Stopped::new();
    for _ in 0..STOP_ROUNDS {
        while let Some(root) = root
            && stop_while_walking(root, &mut stopped) > 0
        {}
        let before = stopped.len();
        for row in scan() {
            if stopped.insert((row.pid, row.start_time), row).is_none() {
                signal_exactly(&row, Signal::STOP);
            }
        }
        if stopped.len() == before {
            break;
        }
    }
    for row in stopped.values() {
        signal_exactly(row, Signal::KILL);
    }
    stopped
}

/// Kills everything `scan` finds, again and again, until nothing is left or `limit` has passed.
///
/// `root` is the process whose descendants `scan` returns, where it is one; it makes stopping faster. Returns the
/// processes killed and those still alive (in uninterruptible sleep). Blocks; `between` runs after each round (a
/// sub-reaper reaps there).
pub(crate) fn kill_all(
    root: Option<u32>,
    scan: &dyn Fn() -> Vec<ProcessRow>,
    limit: Duration,
    between: &mut dyn FnMut(),
) -> (HashSet<(u32, u64)>, Vec<ProcessRow>) {
    let begun = Instant::now();
    let mut killed = HashSet::new();
    loop {
        killed.extend(kill_round(root, scan).into_keys());
        between();
        let left = scan();
        if left.is_empty() || begun.elapsed() >= limit {
            return (killed, left);
        }
        // The kernel needs a moment to tear killed processes down; this only paces the scans.
        std::thread::sleep(Duration::from_millis(2));
    }
}
