//! `daemon run|start|stop|status` (ux.md section 10).

use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use clap::Subcommand;
use harness_proto::api::answer::{DaemonAnswer, DaemonStopAnswer};
use harness_proto::error::Problem;
use harness_proto::exit::Exit;
use jiff::Timestamp;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::autostart;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// How long `daemon stop` waits until the socket is gone: turns get their grace.
const STOP_TIME: Duration = Duration::from_secs(60);

/// See the module.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DaemonVerb {
    /// Run the daemon in the foreground
    Run,
    /// Start the daemon; returns when its socket answers
    Start,
    /// Stop the daemon; runs go on with the next one
    Stop,
    /// Show the daemon; 3 when none runs
    Status,
}

pub(crate) async fn run(context: &Context<'_>, verb: &DaemonVerb) -> Result<Exit, Failure> {
    match verb {
        DaemonVerb::Run => {
            let program = autostart::program()?;
            // Returns only when it fails.
            let error = Command::new(&program).exec();
            Err(Problem::new("DAEMON_REFUSED", format!("{} cannot be started", program.display()))
                .why(error.to_string())
                .into())
        }
        DaemonVerb::Start => {
            if autostart::answers(&context.socket.path).await {
                same_place(context).await?;
                context.out.note("harnessd is already running");
            } else {
                autostart::start(context).await?;
            }
            status(context).await
        }
        DaemonVerb::Stop => stop(context).await,
        DaemonVerb::Status => status(context).await,
    }
}

async fn status(context: &Context<'_>) -> Result<Exit, Failure> {
    let answer: DaemonAnswer = context.client.get("daemon_status", &Target::default()).await?;
    let pid = answer.daemon.pid.to_string();
    context.out.answer(&answer, &pid, || {
        format!("{}socket {}\n", render::daemon_line(&answer.daemon, Timestamp::now()), answer.daemon.socket)
    })?;
    Ok(Exit::Success)
}

/// A daemon that answers at our socket and works on another state directory is not the one that was asked for.
async fn same_place(context: &Context<'_>) -> Result<(), Failure> {
    let answer: DaemonAnswer = context.client.get("daemon_status", &Target::default()).await?;
    let (theirs, ours) = (std::path::Path::new(&answer.daemon.state_dir), context.state_dir.as_path());
    let real = |path: &std::path::Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    if real(theirs) == real(ours) {
        return Ok(());
    }
    let socket = context.socket.path.display();
    Err(Problem::new("DAEMON_REFUSED", format!("{socket} belongs to the daemon of {}", theirs.display()))
        .why(format!(
            "pid {} listens there; a daemon of {} needs a socket of its own",
            answer.daemon.pid,
            ours.display()
        ))
        .next("unset HARNESS_SOCKET, then harnessctl daemon start")
        .into())
}

/// Whether a process of this number runs; one that ended and waits for its parent does not.
fn lives(pid: i64) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let ended = stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['Z', 'X']));
    let there = |pid: i32| pid > 0 && nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok();
    !ended && i32::try_from(pid).is_ok_and(there)
}

async fn stop(context: &Context<'_>) -> Result<Exit, Failure> {
    let answer = match context.client.post::<DaemonStopAnswer, _>("daemon_stop", &Target::default(), &json!({})).await {
        Ok(answer) => answer,
        // Stopping what does not run is no error.
        Err(failure) if failure.is("DAEMON_DOWN") => {
            context.out.note("harnessd is not running");
            return Ok(Exit::Success);
        }
        Err(failure) => return Err(failure),
    };
    let deadline = Instant::now() + STOP_TIME;
    // Also until the process is gone: it holds the state directory until then, and the next one would be refused.
    while autostart::answers(&context.socket.path).await || lives(answer.pid) {
        if Instant::now() > deadline {
            return Err(Problem::new("BUSY", format!("harnessd (pid {}) still runs", answer.pid))
                .why("turns are being ended")
                .next("harnessctl daemon status")
                .into());
        }
        sleep(Duration::from_millis(50)).await;
    }
    let runs = answer.continues.join(" ");
    context.out.answer(&answer, "", || {
        if runs.is_empty() {
            "harnessd stopped\n".to_owned()
        } else {
            format!("harnessd stopped; the next one continues {runs}\n")
        }
    })?;
    Ok(Exit::Success)
}
