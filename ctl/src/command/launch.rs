//! `launch`: `create-launch` and `start` in one (artifacts.md 2).

use clap::Args;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;

use super::create_launch::{self, CreateLaunchArgs};
use super::start::{self, AgentArgs};
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct LaunchArgs {
    #[command(flatten)]
    create: CreateLaunchArgs,
    /// Taken for the predecessor's scripts; without effect
    #[arg(long, value_name = "N", hide = true)]
    sleep_seconds: Option<String>,
}

pub(crate) async fn run(context: &Context<'_>, args: LaunchArgs) -> Result<Exit, Failure> {
    if args.create.dry_run {
        return create_launch::run(context, args.create).await;
    }
    let created = create_launch::register(context, &args.create).await?;
    let target = Target { run: created.run_id.clone(), ..Target::default() };
    let agents = AgentArgs { sleep_seconds: args.sleep_seconds, ..AgentArgs::default() };
    let started = start::begin(context, &target, &agents).await?;
    // The predecessor's launch has the members of both.
    let both = [serde_json::to_value(&created), serde_json::to_value(&started)];
    let mut answer = serde_json::Map::new();
    for part in both {
        let part = part.map_err(|e| Problem::new("INTERNAL", "the answer cannot be written").why(e.to_string()))?;
        answer.extend(part.as_object().cloned().unwrap_or_default());
    }
    answer.insert("schema".into(), "harness.launch/1".into());
    context
        .out
        .answer(&answer, &created.run_id, || format!("{}{}", create_launch::words(&created), start::words(&started)))?;
    Ok(Exit::Success)
}
