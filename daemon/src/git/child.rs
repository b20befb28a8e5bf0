//! Feeding and draining a child process without a deadlock, within a deadline.

use std::io::{Read, Write as _};
use std::process::Child;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::error::GitError;

/// How much of standard error is kept, in bytes.
const STDERR_TAIL: usize = 4000;

/// The last part of what a command complained about.
pub(super) fn tail(bytes: &[u8]) -> String {
    let from = bytes.len().saturating_sub(STDERR_TAIL);
    String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
}

/// How a child ended and what it printed.
pub(super) struct Answer {
    pub(super) code: Option<i32>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

enum Stream {
    Out(std::io::Result<Vec<u8>>),
    Err(Vec<u8>),
}

/// Feeds and drains the child until both outputs end, or kills its whole group.
pub(super) fn drive(
    mut child: Child,
    input: Vec<u8>,
    deadline: Duration,
    max_output: usize,
    label: &str,
) -> Result<Answer, GitError> {
    let until = Instant::now() + deadline;
    let (to_main, streams) = mpsc::channel();
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        unreachable!("all three streams are piped")
    };
    // A command may end without reading all of its input; its exit code says what that means.
    std::thread::spawn(move || drop(stdin.write_all(&input)));
    let to_main_err = to_main.clone();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(max_output as u64 + 1).read_to_end(&mut bytes);
        drop(to_main.send(Stream::Out(read.map(|_| bytes))));
    });
    std::thread::spawn(move || {
        drop(to_main_err.send(Stream::Err(drain_tail(stderr))));
    });
    let (mut out, mut err) = (None, None);
    while out.is_none() || err.is_none() {
        match streams.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Stream::Out(Ok(bytes))) if bytes.len() > max_output => {
                kill(&mut child);
                return Err(GitError::OutputTooLarge { command: label.to_owned(), limit: max_output });
            }
            Ok(Stream::Out(Ok(bytes))) => out = Some(bytes),
            Ok(Stream::Out(Err(source))) => {
                kill(&mut child);
                return Err(GitError::Spawn { command: label.to_owned(), source });
            }
            Ok(Stream::Err(bytes)) => err = Some(bytes),
            Err(_) => {
                kill(&mut child);
                return Err(GitError::Timeout { command: label.to_owned(), seconds: deadline.as_secs() });
            }
        }
    }
    let status = child.wait().map_err(|source| GitError::Spawn { command: label.to_owned(), source })?;
    Ok(Answer { code: status.code(), stdout: out.unwrap_or_default(), stderr: err.unwrap_or_default() })
}

/// Reads to the end and keeps only the last part, so that a flood of messages costs no memory.
fn drain_tail(mut from: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut buffer = [0; 8192];
    while let Ok(n) = from.read(&mut buffer) {
        if n == 0 {
            break;
        }
        kept.extend_from_slice(&buffer[..n]);
        if kept.len() > 4 * STDERR_TAIL {
            kept.drain(..kept.len() - STDERR_TAIL);
        }
    }
    kept
}

/// Kills git and what it started (filters), then collects its exit.
fn kill(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // A group that is gone already is what is wanted.
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
    }
    drop(child.wait());
}
