//! `skip`: leaves a task out; its dependants may go on.

use clap::Args;
use harness_proto::api::request::Skip;
use harness_proto::exit::Exit;

use super::controlled;
use crate::cli::RunOption;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct SkipArgs {
    /// The task
    task: String,
    #[command(flatten)]
    run: RunOption,
    /// Why
    #[arg(long, default_value = "")]
    reason: String,
}

pub(crate) async fn run(context: &Context<'_>, args: &SkipArgs) -> Result<Exit, Failure> {
    let target = context.target(&args.run.clone().into())?.task(&args.task);
    controlled(context, &context.client.post("skip", &target, &Skip { reason: args.reason.clone() }).await?)
}
