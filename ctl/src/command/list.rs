//! `list`: runs, newest first.

use std::path::PathBuf;

use clap::Args;
use harness_proto::api::answer::RunList;
use harness_proto::exit::Exit;
use jiff::Timestamp;

use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render;
use crate::repo;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Ended runs too
    #[arg(long, short)]
    all: bool,
    /// Only runs in this lifecycle: registered queued running stopped completed failed cancelled
    #[arg(long, value_name = "LIFECYCLE")]
    state: Option<String>,
    /// Only runs of this repository
    #[arg(long, value_name = "R")]
    repo: Option<PathBuf>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
}

pub(crate) async fn run(context: &Context<'_>, args: &ListArgs) -> Result<Exit, Failure> {
    let mut target = Target::default().with("all", args.all.to_string()).with("limit", args.limit.to_string());
    if let Some(state) = &args.state {
        target = target.with("state", state.as_str());
    }
    if let Some(path) = &args.repo {
        target = target.with("repo", repo::absolute(Some(path))?);
    }
    let list: RunList = context.client.get("list", &target).await?;
    let ids: Vec<&str> = list.runs.iter().map(|r| r.run_id.as_str()).collect();
    context.out.answer(&list, &ids.join("\n"), || render::runs(&list.runs, context.out.style, Timestamp::now()))?;
    Ok(Exit::Success)
}
