//! No verb: status if there are runs, else the next steps (ux.md section 9).

use harness_proto::api::answer::RunList;
use harness_proto::exit::Exit;

use super::status::{self, StatusArgs};
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;

const STEPS: &str = "harness runs coding agents unattended and lands only proven commits. Next steps:\n  \
    1. harnessctl doctor                    is this machine ready?\n  \
    2. harnessctl create-launch --help      register a run in a git repository\n  \
    3. harnessctl start                     start it, then: harnessctl status\n";

pub(crate) async fn run(context: &Context<'_>) -> Result<Exit, Failure> {
    let list = context.client.get::<RunList>("list", &Target::default().with("all", "true").with("limit", "1")).await;
    match list {
        Ok(list) if list.runs.is_empty() => {}
        Err(failure)
            if failure.is("DAEMON_DOWN") && !context.state_dir.join(harness_proto::place::STATUS_FILE).exists() => {}
        // Whatever else there is to tell, status tells it.
        _ => return status::run(context, &StatusArgs::default()).await,
    }
    if context.out.json {
        return status::run(context, &StatusArgs::default()).await;
    }
    context.out.data(STEPS)?;
    Ok(Exit::Success)
}
