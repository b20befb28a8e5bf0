//! The truth of the process table: who lives, by the marks in its environment.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Living {
    /// Its id.
    pub pid: i32,
    /// Its command line, words separated by spaces.
    pub command: String,
}

/// Every living process with this text in its environment: `HARNESS_RUN=run_…`, or a path of the test.
///
/// A process in state Z is dead: it only waits to be asked for its exit code. Other users' processes are not seen.
#[must_use]
pub fn living(mark: &str) -> Vec<Living> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc is there").flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let own = pid == i32::try_from(std::process::id()).expect("a process id");
        // It may end between two reads; then it is not living.
        let Ok(environment) = fs::read(entry.path().join("environ")) else { continue };
        if !own && contains(&environment, mark.as_bytes()) && !is_zombie(&entry.path()) {
            let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(Living { pid, command: String::from_utf8_lossy(&words).replace('\0', " ").trim().to_owned() });
        }
    }
    found
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

fn is_zombie(place: &Path) -> bool {
    let stat = fs::read_to_string(place.join("stat")).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

/// Kills every process with this test's folder in its environment, again and again until none is left.
pub(crate) fn kill_all(root: &Path) {
    let mark = root.to_string_lossy().into_owned();
    for _ in 0..100 {
        let left = living(&mark);
        if left.is_empty() {
            return;
        }
        for process in left {
            // It may be gone already, which is what we want.
            kill(Pid::from_raw(process.pid), Signal::SIGKILL).ok();
        }
    }
}
