//! Starts the daemon detached when none runs, and says so (DESIGN 11, ux.md sections 1 and 10).

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use harness_proto::error::Problem;
use harness_proto::place::DAEMON_LOG;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep};

use crate::context::Context;
use crate::failure::Failure;
use crate::repo;

/// How long a daemon may take until its socket answers (it may migrate a database first).
const START_TIME: Duration = Duration::from_secs(30);

/// A daemon's refusal because another one works on the state directory.
const LOCKED: &str = "STATE_LOCKED";

/// The daemon's program: beside this one, else on PATH.
pub(crate) fn program() -> Result<PathBuf, Problem> {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("harnessd")));
    if let Some(found) = beside.filter(|path| path.is_file()) {
        return Ok(found);
    }
    repo::program("harnessd", std::env::var_os("PATH").as_deref()).ok_or_else(|| {
        Problem::new("DAEMON_MISSING", "the program harnessd was not found")
            .why("it stands neither beside harnessctl nor on PATH")
            .next("install harnessd beside harnessctl, or add its folder to PATH")
    })
}

/// Starts the daemon when the socket does not answer; verbs that begin work call this.
pub(crate) async fn ensure(context: &Context<'_>) -> Result<(), Failure> {
    if context.global.no_autostart || answers(&context.socket.path).await {
        return Ok(());
    }
    start(context).await
}

/// Whether somebody listens.
pub(crate) async fn answers(socket: &Path) -> bool {
    UnixStream::connect(socket).await.is_ok()
}

/// Starts the daemon and returns when its socket answers; its refusal is ours.
pub(crate) async fn start(context: &Context<'_>) -> Result<(), Failure> {
    let program = program()?;
    let log = context.state_dir.join(DAEMON_LOG);
    let first = !context.state_dir.exists();
    let (file, before) = open_log(&context.state_dir, &log)?;
    let mut child = spawn(&program, &file)?;
    if first {
        context.out.note(&format!("state directory made: {}", context.state_dir.display()));
    }
    let deadline = Instant::now() + START_TIME;
    let mut last_refusal = None;
    while !answers(&context.socket.path).await {
        let ended = child.try_wait().map_err(|e| io("the daemon cannot be watched", &e))?;
        if let Some(status) = ended {
            // Another client may have been faster; then its daemon answers and ours was refused.
            if answers(&context.socket.path).await {
                return Ok(());
            }
            let refusal = refused(&file, before, &log, status.code());
            if refusal.code != LOCKED || Instant::now() > deadline {
                return Err(refusal.into());
            }
            last_refusal = Some(refusal);
            // Whoever holds the lock is about to answer, or is going down: then ours is next.
            sleep(Duration::from_millis(100)).await;
            child = spawn(&program, &file)?;
        }
        if Instant::now() > deadline {
            if let Some(refusal) = last_refusal {
                return Err(refusal.into());
            }
            return Err(Problem::new("DAEMON_REFUSED", format!("harnessd (pid {}) does not answer yet", child.id()))
                .why(format!(
                    "its socket {} stayed silent for {} s",
                    context.socket.path.display(),
                    START_TIME.as_secs()
                ))
                .next(format!("tail {}", log.display()))
                .into());
        }
        sleep(Duration::from_millis(20)).await;
    }
    context.out.note(&format!("harnessd started (pid {}), log {}", child.id(), log.display()));
    Ok(())
}

fn open_log(state_dir: &Path, log: &Path) -> Result<(File, u64), Problem> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(state_dir);
    made.map_err(|e| io(&format!("{} cannot be made", state_dir.display()), &e))?;
    let open = OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(log);
    let file = open.map_err(|e| io(&format!("{} cannot be written", log.display()), &e))?;
    let before = file.metadata().map(|m| m.len()).unwrap_or_default();
    Ok((file, before))
}

/// `--detached` makes the daemon its own session before anything else: closing this terminal must not end it.
fn spawn(program: &Path, log: &File) -> Result<Child, Problem> {
    let both = || log.try_clone().map(Stdio::from).map_err(|e| io("the log cannot be shared", &e));
    Command::new(program)
        .arg("--detached")
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(both()?)
        .stderr(both()?)
        .spawn()
        .map_err(|e| {
            Problem::new("DAEMON_REFUSED", format!("{} cannot be started", program.display())).why(e.to_string())
        })
}

/// What the daemon wrote before it ended, as our refusal.
fn refused(mut log: &File, before: u64, path: &Path, code: Option<i32>) -> Problem {
    let mut text = String::new();
    let read = log.seek(SeekFrom::Start(before)).and_then(|_| log.take(64 << 10).read_to_string(&mut text));
    let told: Vec<&str> = text.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    let part = |mark: &str| told.iter().find_map(|l| l.strip_prefix(mark)).map(str::trim);
    let error = told.iter().rev().find_map(|l| l.strip_prefix("error[")?.split_once("]: "));
    let exit = code.map_or_else(|| "by a signal".to_owned(), |c| format!("with code {c}"));
    let next = part("next:").map_or_else(|| format!("tail {}", path.display()), str::to_owned);
    match error {
        Some((code, detail)) => {
            Problem::new(code, detail).why(part("why:").unwrap_or(&format!("harnessd ended {exit}"))).next(next)
        }
        None => {
            let last =
                if read.is_ok() { told.last().copied().unwrap_or("it said nothing") } else { "its log cannot be read" };
            Problem::new("DAEMON_REFUSED", format!("harnessd ended {exit}")).why(last).next(next)
        }
    }
}

fn io(what: &str, error: &std::io::Error) -> Problem {
    Problem::new("IO", what).why(error.to_string())
}
