//! `show TASK`: a task with attempts, turns, evidence, verdict, blockers (P5).

use clap::Args;
use harness_proto::api::answer::TaskAnswer;
use harness_proto::exit::Exit;

use crate::cli::RunOption;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The task
    task: String,
    #[command(flatten)]
    run: RunOption,
    /// Print the output of each command too
    #[arg(long)]
    evidence: bool,
}

pub(crate) async fn run(context: &Context<'_>, args: &ShowArgs) -> Result<Exit, Failure> {
    let target = context.target(&args.run.clone().into())?.task(&args.task);
    let answer: TaskAnswer = context.client.get("show_task", &target).await?;
    context.out.answer(&answer, &answer.task.id, || render::task(&answer, context.out.style, args.evidence))?;
    Ok(Exit::Success)
}
