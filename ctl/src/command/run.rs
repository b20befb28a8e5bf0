//! `run`: starts a run and follows it until it ends or needs somebody.

use clap::Args;
use harness_proto::api::answer::LogLine;
use harness_proto::api::view::{EventView, RunView};
use harness_proto::exit::Exit;

use super::start::{self, StartArgs};
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::follow::{Follow, Step};
use crate::judge;
use crate::render;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    start: StartArgs,
}

pub(crate) async fn run(context: &Context<'_>, args: &RunArgs) -> Result<Exit, Failure> {
    let out = context.out;
    let begun = start::begin(context, &context.target(&args.start.run)?, &args.start.agents).await?;
    out.note(start::words(&begun).lines().next().unwrap_or_default());
    let target = Target { run: begun.run_id.clone(), ..Target::default() };
    let before: RunView = context.client.get("status", &target).await?;
    let mut follow =
        Follow::new(&context.client, "events_stream", target.clone().with("since", before.seq.to_string()));
    let mut last = before;
    // Only a run at rest ends this: a hold of before the start is gone by then.
    while judge::rest(&last).is_none() {
        match follow.next().await? {
            Step::Message(message) if out.json => {
                if let Ok(event) = serde_json::from_str::<EventView>(&message.data) {
                    out.line(&event)?;
                }
            }
            Step::Message(message) => {
                if let Ok(event) = serde_json::from_str::<EventView>(&message.data).map(as_line)
                    && !out.quiet
                {
                    out.data(&render::log_line(&event, out.style))?;
                }
            }
            Step::Alive | Step::Ended => {}
        }
        last = context.client.get("status", &target).await?;
    }
    let reason = match &last.hold {
        Some(hold) => &hold.detail,
        None => &last.terminal_reason,
    };
    out.note(&format!("run {} is {}: {reason}", last.run_id, last.state));
    if !last.next.is_empty() {
        out.note(&format!("next: {}", last.next));
    }
    Ok(judge::standing(&last))
}

/// An event as a line for people.
pub(crate) fn as_line(event: EventView) -> LogLine {
    LogLine {
        text: format!("{} {}: {}", event.status, event.decision, event.description),
        at: event.timestamp,
        seq: event.seq,
        role: event.role,
        task: if event.task_id == "-" { String::new() } else { event.task_id },
        attempt: event.attempt,
    }
}
