//! The process table, read from `/proc`: parents, states, start times.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;

/// One row of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessRow {
    pub(crate) pid: u32,
    pub(crate) ppid: u32,
    /// Clock ticks since boot; with the pid this names a process exactly.
    pub(crate) start_time: u64,
    /// Dead in all threads. A process whose first thread ended while others run also shows `Z`, and is not dead.
    pub(crate) dead: bool,
}

/// Returns the row of `pid`, or `None` when there is no such process.
pub(crate) fn row(pid: u32) -> Option<ProcessRow> {
    // One read: the kernel hands out the whole line at once, and a fork storm is a race.
    let mut line = [0_u8; 1024];
    let mut file = File::open(format!("/proc/{pid}/stat")).ok()?;
    let length = file.read(&mut line).ok()?;
    parse(pid, line.get(..length)?)
}

/// Parses `/proc/<pid>/stat`; the command in parentheses may itself hold spaces, parentheses and any bytes.
fn parse(pid: u32, text: &[u8]) -> Option<ProcessRow> {
    let end_of_command = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(end_of_command + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let ppid = fields.next()?.parse().ok()?;
    let threads: u64 = fields.nth(15)?.parse().ok()?;
    let start_time = fields.nth(1)?.parse().ok()?;
    Some(ProcessRow { pid, ppid, start_time, dead: matches!(state, "Z" | "X" | "x") && threads <= 1 })
}

/// Returns every row of the table; processes that vanish meanwhile are left out.
pub(crate) fn all() -> Vec<ProcessRow> {
    let mut rows = Vec::new();
    walk(|row| rows.push(row));
    rows
}

/// Hands each row of the table to `visit` as soon as it is read, by ascending pid.
pub(crate) fn walk(mut visit: impl FnMut(ProcessRow)) {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if let Some(found) = name.to_str().and_then(|pid| pid.parse().ok()).and_then(row) {
            visit(found);
        }
    }
}

/// Returns the living descendants of `roots`, the roots themselves excluded.
pub(crate) fn descendants(roots: &[u32]) -> Vec<ProcessRow> {
    let rows = all();
    let mut children: HashMap<u32, Vec<&ProcessRow>> = HashMap::new();
    for each in &rows {
        children.entry(each.ppid).or_default().push(each);
    }
    let mut seen: HashSet<u32> = roots.iter().copied().collect();
    let mut open: Vec<u32> = roots.to_vec();
    let mut found = Vec::new();
    while let Some(parent) = open.pop() {
        for child in children.get(&parent).into_iter().flatten() {
            if seen.insert(child.pid) {
                open.push(child.pid);
                if !child.dead {
                    found.push(**child);
                }
            }
        }
    }
    found
}

/// Returns the environment of `pid` as raw `KEY=value` entries; empty when it cannot be read.
pub(crate) fn environ(pid: u32) -> Vec<Vec<u8>> {
    split_nul(std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default())
}

/// Returns the arguments of `pid`; empty for zombies and when it cannot be read.
pub(crate) fn cmdline(pid: u32) -> Vec<OsString> {
    split_nul(std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default())
        .into_iter()
        .map(OsString::from_vec)
        .collect()
}

fn split_nul(mut bytes: Vec<u8>) -> Vec<Vec<u8>> {
    if bytes.last() == Some(&0) {
        bytes.pop();
    }
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(text: &[u8], dead: bool) {
        let row = parse(7, text).unwrap();
        assert_eq!((row.ppid, row.start_time, row.dead), (5, 999, dead));
    }

    #[test]
    fn a_stat_line_is_read_behind_the_last_parenthesis() {
        check(b"7 (a) Z 1 (b)) S 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 999 1 2 3", false);
        check(b"7 (\xff\xfe x) Z 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 999 1 2 3", true);
        // The first thread ended, three others run.
        check(b"7 (x) Z 5 7 7 0 -1 4 0 0 0 0 0 0 0 0 20 0 4 0 999 1 2 3", false);
    }

    #[test]
    fn this_process_is_in_the_table_below_its_parent() {
        let own = row(std::process::id()).unwrap();
        assert!(!own.dead);
        assert!(descendants(&[own.ppid]).contains(&own));
    }
}
