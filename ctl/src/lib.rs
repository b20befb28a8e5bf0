//! The client of harness: asks the daemon over its socket and shows the answer (DESIGN 11, ux.md).
//!
//! Owns: the command line, the socket path, starting the daemon, printing, exit codes.
//! Does not: open the database, decide anything, print outside `render`.
//!
//! Read in this order: `cli` (what can be typed), `command` (a verb each), `client`, `follow`, `render`.

mod autostart;
mod cli;
mod client;
mod command;
mod context;
mod failure;
mod follow;
mod judge;
mod render;
mod repo;
mod sse;

use std::ffi::OsString;

use clap::Parser as _;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::render::Out;

/// Runs the client with these arguments, the program's name first, and returns the exit code.
#[must_use]
pub fn run(args: Vec<OsString>) -> u8 {
    // Looked for before parsing, so that also a usage error is JSON.
    let wants_json = args.iter().take_while(|a| *a != "--").any(|a| a == "--json");
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, wants_json),
    };
    let out = Out::new(&cli.global);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            return finish(&out, Err(Problem::new("IO", "the client cannot start").why(error.to_string()).into()));
        }
    };
    let result = runtime.block_on(interruptible(cli, &out));
    finish(&out, result)
}

/// Ctrl-C and TERM end the client only.
async fn interruptible(cli: Cli, out: &Out) -> Result<Exit, Failure> {
    use tokio::signal::unix::{SignalKind, signal};
    let keeps_running = cli.follows_a_run();
    let listen = |kind| {
        signal(kind).map_err(|e| Failure::from(Problem::new("IO", "signals cannot be watched").why(e.to_string())))
    };
    let mut interrupt = listen(SignalKind::interrupt())?;
    let mut terminate = listen(SignalKind::terminate())?;
    let exit = tokio::select! {
        result = command::dispatch(cli, out) => return result,
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    };
    if keeps_running {
        out.note("the run continues without this client; stop it with: harnessctl stop");
    }
    Ok(exit)
}

fn finish(out: &Out, result: Result<Exit, Failure>) -> u8 {
    match result {
        Ok(exit) => exit.code(),
        Err(Failure::Pipe) => failure::PIPE_CLOSED,
        Err(Failure::Problem(problem)) => {
            out.problem(&problem);
            problem.exit().code()
        }
    }
}

fn usage(error: &clap::Error, json: bool) -> u8 {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion) {
        return match Out::plain(json).data(&error.render().to_string()) {
            Ok(()) => Exit::Success.code(),
            Err(_) => failure::PIPE_CLOSED,
        };
    }
    let problem = if error.kind() == DisplayHelpOnMissingArgumentOrSubcommand {
        cli::verb_missing(&error.render().to_string())
    } else {
        cli::usage_problem(&error.render().to_string())
    };
    Out::plain(json).problem(&problem);
    problem.exit().code()
}

/// The whole program: what `main` does.
#[must_use]
pub fn entry() -> std::process::ExitCode {
    std::process::ExitCode::from(run(std::env::args_os().collect()))
}
