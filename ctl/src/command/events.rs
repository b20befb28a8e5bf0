//! `events`: the history of a run, as TSV or JSON lines, followed on demand (S4-038, ux.md section 1).

use clap::{Args, ValueEnum};
use harness_proto::api::answer::EventPage;
use harness_proto::api::view::{EventView, RunView};
use harness_proto::event::TSV_HEADER;
use harness_proto::exit::Exit;

use crate::cli::RunRef;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::follow::{Follow, Step};

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    run: RunRef,
    /// Go on with what happens until the run ends
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Form of a line
    #[arg(long, value_enum, default_value_t = Form::Tsv)]
    format: Form,
    /// Only events after this one
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    since: i64,
}

/// Form of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// The nine columns of harness-events.tsv
    Tsv,
    /// A JSON object a line
    Jsonl,
}

pub(crate) async fn run(context: &Context<'_>, args: &EventsArgs) -> Result<Exit, Failure> {
    let jsonl = context.out.json || args.format == Form::Jsonl;
    // Pinned to one run: a newer run of the same repository must not mix in.
    let view: RunView = context.client.get("status", &context.target(&args.run)?).await?;
    let target = Target { run: view.run_id, ..Target::default() };
    if !jsonl && args.since == 0 && !context.out.quiet {
        context.out.data(TSV_HEADER)?;
    }
    if args.follow {
        let mut follow = Follow::new(&context.client, "events_stream", target.with("since", args.since.to_string()));
        loop {
            match follow.next().await? {
                Step::Message(message) => {
                    if let Ok(event) = serde_json::from_str::<EventView>(&message.data) {
                        print(context, &event, jsonl)?;
                    }
                }
                Step::Alive => {}
                Step::Ended => return Ok(Exit::Success),
            }
        }
    }
    let mut since = args.since;
    loop {
        let page: EventPage = context.client.get("events", &target.clone().with("since", since.to_string())).await?;
        for event in &page.events {
            print(context, event, jsonl)?;
        }
        match page.events.last() {
            Some(event) => since = event.seq,
            None => return Ok(Exit::Success),
        }
    }
}

fn print(context: &Context<'_>, event: &EventView, jsonl: bool) -> Result<(), Failure> {
    if jsonl { context.out.line(event) } else { context.out.data(&event.event().to_tsv()) }
}
