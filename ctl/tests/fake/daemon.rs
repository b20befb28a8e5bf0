//! A daemon that answers what a test tells it to, on a real Unix socket, and remembers what it was asked.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use harness_proto::error::Problem;
use serde::Serialize;

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

/// An answer: status, media type, body.
pub(crate) type Reply = (u16, &'static str, String);

pub(crate) fn ok<T: Serialize>(value: &T) -> Reply {
    (200, "application/json", serde_json::to_string(value).unwrap())
}

pub(crate) fn refuse(problem: &Problem) -> Reply {
    (problem.status, "application/problem+json", serde_json::to_string(problem).unwrap())
}

/// A state directory with a daemon or without.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl World {
    pub(crate) fn without_daemon() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        Self { folder, asked: Arc::default() }
    }

    pub(crate) fn new(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        let world = Self::without_daemon();
        let listener = UnixListener::bind(world.socket()).unwrap();
        let (answer, asked) = (Arc::new(answer), world.asked.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, asked) = (answer.clone(), asked.clone());
                std::thread::spawn(move || serve(stream, &*answer, &asked));
            }
        });
        world
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harnessctl"));
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", "/usr/bin:/bin")
            .env("HARNESS_STATE_DIR", self.state())
            .env("HARNESS_SOCKET", self.socket())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command().args(args).output().unwrap()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|a| a.line.clone()).collect()
    }
}

fn serve(stream: UnixStream, answer: &dyn Fn(&Asked) -> Reply, asked: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap_or(0) == 0 {
                return;
            }
        }
        let lower = head.to_ascii_lowercase();
        let length = lower
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next()?.trim().parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let line = head.lines().next().unwrap().trim_end_matches(" HTTP/1.1").to_owned();
        let request = Asked { line, head: lower, body: String::from_utf8_lossy(&body).into_owned() };
        let (status, kind, body) = answer(&request);
        asked.lock().unwrap().push(request);
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nx-harness-protocol: 1 9.9.9\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        // A client that has read enough goes away.
        if stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).is_err() {
            return;
        }
    }
}
