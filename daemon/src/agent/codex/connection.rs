//! Frames to and from one app-server process.
//!
//! Writing and reading go on together in [`Connection::next`], so that a server that does not read cannot block us while it
//! floods us. There is no reader task: between turns nobody reads, and an end of stream is a state that the next read finds.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStdin, ChildStdout};

use super::message::{self, Message};
use crate::agent::launch::Running;
use crate::agent::lines::{LINE_CAP, Line, Lines};
use crate::agent::transcript::Transcript;
use crate::agent::watch::Watch;

/// Bytes of one read.
const CHUNK: usize = 64 * 1024;
/// How much may wait for a server that does not read, in bytes; more than the longest prompt.
const UNREAD_MAX: usize = LINE_CAP;

/// What comes next.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A message.
    Message(Message),
    /// A line above the cap, of this many bytes, that was dropped.
    Dropped(u64),
    /// The process closed its output.
    End,
}

/// One process and its pipes.
#[derive(Debug)]
pub(super) struct Connection {
    /// The process.
    pub(super) running: Running,
    stdin: Option<ChildStdin>,
    stdout: Option<ChildStdout>,
    /// Bytes to write, of which `sent` are written.
    out: Vec<u8>,
    sent: usize,
    lines: Lines,
    chunk: Vec<u8>,
    last_id: u64,
}

impl Connection {
    /// Takes over the pipes.
    pub(super) fn new(mut running: Running) -> Self {
        Self {
            stdin: running.child.take_stdin(),
            stdout: running.child.take_stdout(),
            running,
            out: Vec::new(),
            sent: 0,
            lines: Lines::new(LINE_CAP),
            chunk: vec![0; CHUNK],
            last_id: 0,
        }
    }

    /// Queues a request and returns its id.
    pub(super) fn request(&mut self, method: &str, params: &Value, watch: &Watch, log: &mut Transcript) -> u64 {
        self.last_id += 1;
        let frame = json!({"id": self.last_id, "method": method, "params": params});
        self.send(&frame, watch, log);
        self.last_id
    }

    /// Queues the refusal of a server's request; a server that asks and never reads gets no more of them.
    pub(super) fn refuse(&mut self, id: &Value, method: &str, watch: &Watch, log: &mut Transcript) {
        if self.out.len() - self.sent < UNREAD_MAX {
            self.send(&message::refusal(id, method), watch, log);
        }
    }

    /// Queues a frame; [`Connection::next`] writes it.
    pub(super) fn send(&mut self, frame: &Value, watch: &Watch, log: &mut Transcript) {
        let text = frame.to_string();
        log.frame(watch.elapsed(), ">", text.as_bytes());
        self.out.extend_from_slice(text.as_bytes());
        self.out.push(b'\n');
    }

    /// The next frame. Cancel safe: a dropped future has read and written whole chunks only and forgets nothing.
    pub(super) async fn next(&mut self, watch: &Watch, log: &mut Transcript) -> Incoming {
        loop {
            match self.lines.pop() {
                Some(Line::Whole(line)) if line.iter().all(u8::is_ascii_whitespace) => continue,
                Some(Line::Whole(line)) => {
                    log.frame(watch.elapsed(), "<", &line);
                    return Incoming::Message(message::read(&line));
                }
                Some(Line::Dropped(bytes)) => {
                    let note = format!("a line of {bytes} bytes was dropped");
                    log.frame(watch.elapsed(), "!", note.as_bytes());
                    return Incoming::Dropped(bytes);
                }
                None if self.stdout.is_none() => return Incoming::End,
                None => self.transfer().await,
            }
        }
    }

    /// One read or one write, whatever is possible first.
    async fn transfer(&mut self) {
        let Some(stdout) = &mut self.stdout else {
            return;
        };
        let unsent = &self.out[self.sent..];
        let write = async {
            match &mut self.stdin {
                Some(stdin) if !unsent.is_empty() => stdin.write(unsent).await,
                Some(_) | None => std::future::pending().await,
            }
        };
        // Both branches are cancel safe: tokio's `read` and `write` have done nothing when they are dropped.
        tokio::select! {
            read = stdout.read(&mut self.chunk) => match read {
                Ok(count) if count > 0 => self.lines.push(&self.chunk[..count]),
                Ok(_) | Err(_) => {
                    self.lines.finish();
                    self.stdout = None;
                }
            },
            written = write => match written {
                Ok(count) => {
                    self.sent += count;
                    if self.sent == self.out.len() {
                        self.out.clear();
                        self.sent = 0;
                    }
                }
                // The process does not read any more; what it has said is still to be read.
                Err(_) => self.stdin = None,
            },
        }
    }

    /// Closes both pipes: the end of its input asks an app-server to end, and it cannot be blocked on its output.
    pub(super) fn close_pipes(&mut self) {
        self.stdin = None;
        self.stdout = None;
    }
}
