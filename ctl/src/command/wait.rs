//! `wait`: until a condition holds, the time is over, or it cannot hold any more (ux.md sections 1, 3 and 10).

use clap::Args;
use harness_proto::api::view::RunView;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;
use tokio::time::{Instant, timeout_at};

use crate::cli::RunRef;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::follow::Follow;
use crate::judge::{Condition, judge};
use crate::render::{self, clean};

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct WaitArgs {
    #[command(flatten)]
    run: RunRef,
    /// What to wait for
    #[arg(long = "for", value_enum, default_value_t = Condition::Done)]
    condition: Condition,
    /// Give up after this long: 60s, 90m, 8h; 0s asks without waiting [default: never]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// Fail with 6 unless the run's head begins with this at the end
    #[arg(long, value_name = "SHA")]
    expect_head: Option<String>,
}

pub(crate) async fn run(context: &Context<'_>, args: &WaitArgs) -> Result<Exit, Failure> {
    let limit = args.timeout.as_deref().map(render::span).transpose()?;
    let begin: RunView = context.client.get("status", &context.target(&args.run)?).await?;
    // Pinned to this run: a newer one of the same repository is not what was asked about.
    let target = Target { run: begin.run_id.clone(), ..Target::default() };
    let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    let mut follow = Follow::new(&context.client, "events_stream", target.clone().with("since", begin.seq.to_string()));
    let mut now = begin.clone();
    loop {
        if let Some(exit) = judge(args.condition, &begin, &now) {
            return end(context, args, &now, exit);
        }
        if limit.is_some_and(|limit| limit.is_zero()) {
            show(context, &now)?;
            return Ok(Exit::Pending);
        }
        let step = async {
            follow.next().await?;
            context.client.get::<RunView>("status", &target).await
        };
        now = match deadline {
            None => step.await?,
            Some(at) => match timeout_at(at, step).await {
                Ok(view) => view?,
                Err(_) => {
                    return Err(Problem::new(
                        "WAIT_TIMEOUT",
                        format!("run {} is {} after the time given", now.run_id, now.state),
                    )
                    .why(now.hold.as_ref().map_or_else(|| "it goes on".to_owned(), |hold| hold.detail.clone()))
                    .next(format!("harnessctl status {}", now.run_id))
                    .into());
                }
            },
        };
    }
}

fn end(context: &Context<'_>, args: &WaitArgs, run: &RunView, exit: Exit) -> Result<Exit, Failure> {
    if let Some(expected) = &args.expect_head
        && (expected.is_empty() || !run.integration_head.starts_with(expected.as_str()))
    {
        return Err(Problem::new(
            "HEAD_MISMATCH",
            format!("the head of run {} is {}, not {expected}", run.run_id, run.integration_head),
        )
        .why("something else was integrated than you expect")
        .next(format!("harnessctl events {}", run.run_id))
        .into());
    }
    show(context, run)?;
    Ok(exit)
}

fn show(context: &Context<'_>, run: &RunView) -> Result<(), Failure> {
    context.out.answer(run, &run.run_id, || {
        let next = if run.next.is_empty() { String::new() } else { format!("next: {}\n", run.next) };
        let reason = match &run.hold {
            Some(hold) if !hold.detail.is_empty() => format!(": {}", clean(&hold.detail)),
            _ if run.terminal_reason != "none" && !run.terminal_reason.is_empty() => {
                format!(" ({})", clean(&run.terminal_reason))
            }
            _ => String::new(),
        };
        format!("run {} is {}{reason}\n{next}", run.run_id, run.state)
    })
}
