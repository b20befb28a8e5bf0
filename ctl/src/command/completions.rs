//! `completions SHELL`: a script for a shell.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use harness_proto::exit::Exit;

use crate::cli::Cli;
use crate::failure::Failure;
use crate::render::Out;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, out: &Out) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "harnessctl", &mut script);
    out.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Success)
}
