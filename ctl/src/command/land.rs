//! `land`: brings accepted commits to the target branch now.

use clap::Args;
use harness_proto::exit::Exit;
use serde_json::json;

use super::controlled;
use crate::cli::RunRef;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct LandArgs {
    #[command(flatten)]
    run: RunRef,
}

pub(crate) async fn run(context: &Context<'_>, args: &LandArgs) -> Result<Exit, Failure> {
    controlled(context, &context.client.post("land", &context.target(&args.run)?, &json!({})).await?)
}
