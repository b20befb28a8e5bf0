//! `logs`: what runtime and agents said, followed on demand.

use clap::Args;
use harness_proto::api::answer::LogPage;
use harness_proto::api::view::RunView;
use harness_proto::exit::Exit;

use crate::cli::RunOption;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::follow::{Follow, Step};
use crate::render;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogsArgs {
    /// A run or a task: what begins with `run_` or `@`, or names a run, is a run
    #[arg(value_name = "RUN|TASK")]
    about: Option<String>,
    #[command(flatten)]
    run: RunOption,
    /// Go on with what follows until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// The last so many lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 200)]
    tail: u32,
    /// Only this task
    #[arg(long)]
    task: Option<String>,
    /// Only this role: planner implementer verifier runtime
    #[arg(long)]
    role: Option<String>,
    /// Only this attempt
    #[arg(long, value_name = "N")]
    attempt: Option<u32>,
}

pub(crate) async fn run(context: &Context<'_>, args: &LogsArgs) -> Result<Exit, Failure> {
    let (view, task) = about(context, args).await?;
    let mut target = Target { run: view.run_id, ..Target::default() }.with("tail", args.tail.to_string());
    for (name, value) in [("task", task), ("role", args.role.clone()), ("attempt", args.attempt.map(|n| n.to_string()))]
    {
        if let Some(value) = value {
            target = target.with(name, value);
        }
    }
    if !args.follow {
        let page: LogPage = context.client.get("logs", &target).await?;
        print(context, &page)?;
        return Ok(Exit::Success);
    }
    let mut follow = Follow::new(&context.client, "logs_stream", target);
    loop {
        match follow.next().await? {
            Step::Message(message) => {
                if let Ok(page) = serde_json::from_str::<LogPage>(&message.data) {
                    print(context, &page)?;
                }
            }
            Step::Alive => {}
            Step::Ended => return Ok(Exit::Success),
        }
    }
}

/// The run, and the task when one is named.
async fn about(context: &Context<'_>, args: &LogsArgs) -> Result<(RunView, Option<String>), Failure> {
    let named = args.run.run.is_some() || args.run.repo.is_some() || args.task.is_some();
    let Some(about) = &args.about else {
        let view = context.client.get("status", &context.target(&args.run.clone().into())?).await?;
        return Ok((view, args.task.clone()));
    };
    let sure = about.starts_with("run_") || about.starts_with('@');
    if sure || !named {
        let target = Target { run: about.clone(), ..Target::default() };
        match context.client.get("status", &target).await {
            Err(failure) if failure.is("RUN_UNKNOWN") && !sure => {}
            other => return Ok((other?, args.task.clone())),
        }
    }
    let view = context.client.get("status", &context.target(&args.run.clone().into())?).await?;
    Ok((view, Some(about.clone())))
}

fn print(context: &Context<'_>, page: &LogPage) -> Result<(), Failure> {
    for line in &page.lines {
        if context.out.json {
            context.out.line(line)?;
        } else {
            context.out.data(&render::log_line(line, context.out.style))?;
        }
    }
    Ok(())
}
