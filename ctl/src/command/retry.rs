//! `retry`: gives a failed, blocked or timed-out task more attempts.

use clap::Args;
use harness_proto::api::request::Retry;
use harness_proto::exit::Exit;

use super::controlled;
use crate::cli::RunOption;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct RetryArgs {
    /// The task
    task: String,
    #[command(flatten)]
    run: RunOption,
    /// A note for the implementer
    #[arg(long, default_value = "")]
    note: String,
}

pub(crate) async fn run(context: &Context<'_>, args: &RetryArgs) -> Result<Exit, Failure> {
    let target = context.target(&args.run.clone().into())?.task(&args.task);
    controlled(context, &context.client.post("retry", &target, &Retry { note: args.note.clone() }).await?)
}
