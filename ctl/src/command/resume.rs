//! `resume`: the same as `start` (DESIGN 4), for a run that is paused, stopped or held.

use clap::Args;
use harness_proto::exit::Exit;

use super::start::{self, StartArgs};
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    start: StartArgs,
}

pub(crate) async fn run(context: &Context<'_>, args: &ResumeArgs) -> Result<Exit, Failure> {
    start::run(context, &args.start).await
}
