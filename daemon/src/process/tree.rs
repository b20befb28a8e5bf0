//! Signals for whole trees: exact (pid and start time), and faster than a fork storm.

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
        Some(now) if now.start_time == target.start_time => pidfd_send_signal(&pidfd, signal).is_ok(),
        Some(_) | None => false,
    }
}

/// The processes of one tree that were signalled so far.
type Signalled = HashMap<(u32, u64), ProcessRow>;

/// Walks the table once and kills each descendant of `root` as soon as it is seen.
///
/// Killing while walking is what outruns a fork storm: a list made first is stale before it is complete. Parents mostly
/// have lower pids than their children; what this misses, the caller's full scan finds.
fn kill_while_walking(root: u32, signalled: &mut Signalled) -> usize {
    let mut family: HashSet<u32> = HashSet::from([root]);
    let mut fresh = 0;
    table::walk(|row| {
        if row.pid == root || row.dead {
            return;
        }
        match signalled.entry((row.pid, row.start_time)) {
            Entry::Occupied(_) => {
                family.insert(row.pid);
            }
            Entry::Vacant(place) if family.contains(&row.ppid) => {
                signal_exactly(&row, Signal::KILL);
                family.insert(row.pid);
                place.insert(row);
                fresh += 1;
            }
            Entry::Vacant(_) => {}
        }
    });
    fresh
}

/// One round below a sub-reaper: orphans come back to it, so that everything may be killed in any order.
fn kill_below(sub_reaper: u32, scan: &dyn Fn() -> Vec<ProcessRow>) -> Signalled {
    let mut signalled = Signalled::new();
    while kill_while_walking(sub_reaper, &mut signalled) > 0 {}
    for row in scan() {
        if signalled.insert((row.pid, row.start_time), row).is_none() {
            signal_exactly(&row, Signal::KILL);
        }
    }
    signalled
}

/// One round without a sub-reaper: an orphan would be lost, so everything is stopped before anything is killed.
fn stop_then_kill(scan: &dyn Fn() -> Vec<ProcessRow>) -> Signalled {
    let mut stopped = Signalled::new();
    for _ in 0..STOP_ROUNDS {
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
/// `sub_reaper` is this process, where `scan` returns its descendants and it adopts orphans. Returns the processes killed and those still alive (in uninterruptible sleep). Blocks; `between` runs after each round (a
/// sub-reaper reaps there).
pub(crate) fn kill_all(
    sub_reaper: Option<u32>,
    scan: &dyn Fn() -> Vec<ProcessRow>,
    limit: Duration,
    between: &mut dyn FnMut(),
) -> (HashSet<(u32, u64)>, Vec<ProcessRow>) {
    let begun = Instant::now();
    let mut killed = HashSet::new();
    loop {
        let round = match sub_reaper {
            Some(sub_reaper) => kill_below(sub_reaper, scan),
            None => stop_then_kill(scan),
        };
        killed.extend(round.into_keys());
        between();
        let left = scan();
        if left.is_empty() || begun.elapsed() >= limit {
            return (killed, left);
        }
        // The kernel needs a moment to tear killed processes down; this only paces the scans.
        std::thread::sleep(Duration::from_millis(5));
    }
}
