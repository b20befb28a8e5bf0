//! Trees whose daemon or launcher is gone, and the question who is below a launcher.
//!
//! Invariant: a process is only ever killed when it is a launcher named exactly (boot, pid, start time), a descendant
//! of one, or carries the never reused nonce of one in its environment.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use super::identity::{Identity, NONCE_VARIABLE, RUN_VARIABLE, boot_id};
use super::launcher::STAGE1;
use super::table::{self, ProcessRow};
use super::tree;

/// How long reaping may take before what is left is reported as unkillable.
const REAP_LIMIT: Duration = Duration::from_secs(10);

/// What reaping found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// Processes killed.
    pub killed: u32,
    /// Known trees of which nothing lived any more.
    pub gone: u32,
    /// Pids that could not be killed (uninterruptible sleep).
    pub left: Vec<u32>,
}

/// A process found by its marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The pid.
    pub pid: u32,
    /// Its arguments, lossily, for people.
    pub cmdline: String,
}

/// Kills what is left of these trees, also where the launcher died first; never a stranger. Blocks up to 10 s.
pub fn reap_orphans(known: &[Identity]) -> ReapReport {
    // Another boot: nothing of it can live, whatever has its pid now.
    let known: Vec<&Identity> =
        known.iter().filter(|identity| identity.boot_id == boot_id() && !identity.marker.nonce.is_empty()).collect();
    let mut report = ReapReport::default();
    let scan = || trees_of(&known);
    let found = scan();
    let living: HashSet<usize> = found.iter().map(|(index, _)| *index).collect();
    report.gone = u32::try_from(known.len() - living.len()).unwrap_or(u32::MAX);
    let rows = || scan().into_iter().map(|(_, row)| row).collect();
    let (killed, left) = tree::kill_all(None, &rows, REAP_LIMIT, &mut || {});
    report.killed = u32::try_from(killed.len()).unwrap_or(u32::MAX);
    report.left = left.into_iter().map(|row| row.pid).collect();
    report
}

/// Waits until no process with `variable=value` in its environment lives, and kills what is left after `patience`. Blocks.
///
/// For short programs of a dead daemon that are outside its kill trees: what they began is to end, not to be cut off.
pub fn end_marked(variable: &str, value: &OsStr, patience: Duration) -> ReapReport {
    let mut wanted = format!("{variable}=").into_bytes();
    wanted.extend_from_slice(value.as_bytes());
    let mine = |row: &ProcessRow| row.pid != std::process::id() && table::environ(row.pid).contains(&wanted);
    let scan = || table::all().into_iter().filter(|row| !row.dead && mine(row)).collect::<Vec<_>>();
    let begun = Instant::now();
    while !scan().is_empty() {
        if begun.elapsed() > patience {
            let (killed, left) = tree::kill_all(None, &scan, REAP_LIMIT, &mut || {});
            let killed = u32::try_from(killed.len()).unwrap_or(u32::MAX);
            return ReapReport { killed, gone: 0, left: left.into_iter().map(|row| row.pid).collect() };
        }
        // why: paces the look at processes that are no children of ours; nothing tells when they end
        std::thread::sleep(Duration::from_millis(10));
    }
    ReapReport::default()
}

/// Returns the living processes of each known tree, with the index of the tree.
fn trees_of(known: &[&Identity]) -> Vec<(usize, ProcessRow)> {
    let mut found = Vec::new();
    let nonces: Vec<Vec<u8>> = known.iter().map(|identity| entry(NONCE_VARIABLE, &identity.marker.nonce)).collect();
    for row in table::all() {
        if row.dead || row.pid == std::process::id() {
            continue;
        }
        let index = known
            .iter()
            .position(|identity| identity.pid == row.pid && identity.start_time == row.start_time)
            .or_else(|| {
                let environ = table::environ(row.pid);
                nonces.iter().position(|nonce| environ.contains(nonce))
            });
        if let Some(index) = index {
            found.push((index, row));
        }
    }
    // Descendants that cleaned their environment are still below one that did not.
    let mut seen: HashSet<u32> = found.iter().map(|(_, row)| row.pid).collect();
    for (index, root) in found.clone() {
        for row in table::descendants(&[root.pid]) {
            if seen.insert(row.pid) && row.pid != std::process::id() {
                found.push((index, row));
            }
        }
    }
    found
}

fn entry(variable: &str, value: &str) -> Vec<u8> {
    format!("{variable}={value}").into_bytes()
}

/// Returns the living processes that carry the marker of `run`, launchers included, this process excluded.
pub fn processes_of_run(run: &str) -> Vec<Found> {
    let wanted = entry(RUN_VARIABLE, run);
    table::all()
        .into_iter()
        .filter(|row| !row.dead && row.pid != std::process::id())
        .filter(|row| table::environ(row.pid).contains(&wanted))
        .map(|row| Found {
            pid: row.pid,
            cmdline: table::cmdline(row.pid).join(OsStr::new(" ")).to_string_lossy().into_owned(),
        })
        .collect()
}

/// Returns whether `pid` is a launcher of this daemon or below one: such a peer must not command the daemon.
///
/// The sub-reaper keeps double-forked and re-parented processes below their launcher. A process that vanishes while we
/// look, or whose chain of parents does not hold together, counts as below. Launchers above this daemon itself do not count.
pub fn has_launcher_ancestor(pid: u32) -> bool {
    let above_us = chain(std::process::id()).unwrap_or_default();
    let Some(chain) = chain(pid) else {
        return true;
    };
    for row in chain {
        if row.pid == std::process::id() {
            // Below us and not a client: what we start ourselves has no business here either.
            return row.pid != pid;
        }
        if above_us.iter().any(|ours| ours.pid == row.pid) {
            return false;
        }
        if is_launcher(row.pid) || carries_foreign_nonce(row.pid) {
            return true;
        }
    }
    false
}

/// Returns `pid` and its ancestors up to the first process; `None` when the chain breaks while it is read.
fn chain(pid: u32) -> Option<Vec<ProcessRow>> {
    let mut rows = vec![table::row(pid)?];
    loop {
        let last = *rows.last()?;
        if last.ppid == 0 {
            return Some(rows);
        }
        let parent = table::row(last.ppid)?;
        // A parent younger than its child is a stranger with a reused pid; and no chain is endless.
        if parent.start_time > last.start_time || rows.len() > 10_000 {
            return None;
        }
        rows.push(parent);
    }
}

fn is_launcher(pid: u32) -> bool {
    table::cmdline(pid).get(1).map(OsString::as_os_str) == Some(OsStr::new(STAGE1))
}

/// Whether the process carries a marker that we ourselves do not live under (its launcher may have been killed).
fn carries_foreign_nonce(pid: u32) -> bool {
    let prefix = entry(NONCE_VARIABLE, "");
    let ours = std::env::var_os(NONCE_VARIABLE).map(|nonce| entry(NONCE_VARIABLE, &nonce.to_string_lossy()));
    table::environ(pid).iter().any(|variable| variable.starts_with(&prefix) && Some(variable) != ours.as_ref())
}
