//! Runs Python and other short commands with a deadline.
//!
//! Plain `std::process` on purpose: this is code of the child that the launcher has already walled, not of the daemon.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long one command may take. Generated test suites need seconds; a minute and a half means broken.
const COMMAND_MAX: Duration = Duration::from_secs(90);

/// How much of an output is kept, in bytes.
const OUTPUT_BYTES_MAX: u64 = 256 * 1024;

/// What came of a command.
#[derive(Debug, Clone)]
pub(super) struct Ran {
    /// `None`: ended by a signal or by the deadline.
    pub(super) exit: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    pub(super) fn passed(&self) -> bool {
        self.exit == Some(0)
    }

    /// Returns `exit 1`, or how it ended otherwise.
    pub(super) fn ending(&self) -> String {
        self.exit
            .map_or_else(|| "no exit code (killed, or over the time limit)".to_owned(), |code| format!("exit {code}"))
    }

    /// Returns the last lines of what it printed, stderr first, for a finding.
    pub(super) fn tail(&self) -> String {
        let text = if self.stderr.trim().is_empty() { &self.stdout } else { &self.stderr };
        let lines: Vec<&str> = text.trim().lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

/// Makes sure that a usable `python3` is there.
pub(super) fn preflight() -> Result<(), String> {
    let need = "the offline agent requires python3 (3.9 or newer) on PATH";
    let mut command = program("python3");
    command.args(["-c", "import sys; print(*sys.version_info[:2]); sys.exit(sys.version_info < (3, 9))"]);
    let ran =
        run(&mut command, Path::new(".")).map_err(|error| format!("{need}, and it cannot be started: {error}"))?;
    if ran.passed() {
        return Ok(());
    }
    Err(format!("{need}; the one found ended with {} and printed: {}", ran.ending(), ran.tail()))
}

/// Returns `python3` without byte code left behind in the tree, the data file in `store`.
pub(super) fn python(variable: &str, store: &Path) -> Command {
    let mut command = program("python3");
    command.env(variable, store);
    command
}

/// Returns a shell that runs one verification command.
pub(super) fn shell(line: &str) -> Command {
    let mut command = program("sh");
    command.args(["-c", line]);
    command
}

/// A child of the offline agent, which is itself a child inside the wall.
#[expect(clippy::disallowed_methods, reason = "the offline agent is a program of its own, with one spawn site")]
pub(super) fn program(name: &str) -> Command {
    Command::new(name)
}

/// Runs to the end or to the deadline, without stdin.
pub(super) fn run(command: &mut Command, cwd: &Path) -> std::io::Result<Ran> {
    command.current_dir(cwd).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env("PYTHONDONTWRITEBYTECODE", "1").env("PYTHONIOENCODING", "utf-8").env("PYTHONHASHSEED", "0");
    let mut child = command.spawn()?;
    let (sender, outputs) = mpsc::channel();
    let pipes: [Option<Box<dyn Read + Send>>; 2] =
        [child.stdout.take().map(|pipe| Box::new(pipe) as _), child.stderr.take().map(|pipe| Box::new(pipe) as _)];
    for (index, pipe) in pipes.into_iter().enumerate() {
        let sender = sender.clone();
        // Detached: after the deadline a grandchild may still hold the pipe open.
        std::thread::spawn(move || sender.send((index, read(pipe))));
    }
    drop(sender);
    let end = Instant::now() + COMMAND_MAX;
    let mut texts = [String::new(), String::new()];
    let mut late = false;
    for _ in 0..2 {
        match outputs.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok((index, text)) => texts[index] = text,
            Err(_) => late = true,
        }
    }
    if late {
        child.kill()?;
    }
    let status = child.wait()?;
    let [stdout, stderr] = texts;
    Ok(Ran { exit: status.code().filter(|_| !late), stdout, stderr })
}

fn read(pipe: Option<Box<dyn Read + Send>>) -> String {
    let Some(mut pipe) = pipe else {
        return String::new();
    };
    let mut kept = Vec::new();
    let first = pipe.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut kept);
    // The rest is drained, so that a chatty command does not block on a full pipe.
    let rest = first.and_then(|_| std::io::copy(&mut pipe, &mut std::io::sink()));
    let mut text = String::from_utf8_lossy(&kept).into_owned();
    if let Err(error) = rest {
        text.push_str(&format!("\n(reading the output failed: {error})"));
    }
    text
}
