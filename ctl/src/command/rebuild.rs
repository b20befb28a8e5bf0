//! `rebuild`: writes the files of a run anew from the store (DESIGN 5).

use clap::Args;
use harness_proto::api::answer::RebuildAnswer;
use harness_proto::exit::Exit;
use serde_json::json;

use crate::cli::RunRef;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct RebuildArgs {
    #[command(flatten)]
    run: RunRef,
}

pub(crate) async fn run(context: &Context<'_>, args: &RebuildArgs) -> Result<Exit, Failure> {
    let answer: RebuildAnswer = context.client.post("rebuild", &context.target(&args.run)?, &json!({})).await?;
    context.out.answer(&answer, &answer.run_id, || format!("written anew:\n  {}\n", answer.files.join("\n  ")))?;
    Ok(Exit::Success)
}
