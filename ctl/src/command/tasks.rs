//! `tasks validate`: whether a run would take a `tasks.json`, with the exact messages.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use harness_proto::api::MAX_PLAN_BYTES;
use harness_proto::api::answer::PlanCheckAnswer;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;

use crate::context::Context;
use crate::failure::Failure;
use crate::render::clean;

/// See the module.
#[derive(Debug, Subcommand)]
pub(crate) enum TasksVerb {
    /// Check a tasks.json
    Validate(ValidateArgs),
}

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ValidateArgs {
    /// The file [default: tasks.json of the repository]
    file: Option<PathBuf>,
    /// Repository [default: the current folder]
    #[arg(long, value_name = "R", conflicts_with = "file")]
    repo: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context<'_>, verb: &TasksVerb) -> Result<Exit, Failure> {
    let TasksVerb::Validate(args) = verb;
    let folder = args.repo.clone().unwrap_or_else(|| PathBuf::from("."));
    let path = args.file.clone().unwrap_or_else(|| folder.join("tasks.json"));
    let answer: PlanCheckAnswer = context.client.check("tasks_validate", read(&path)?).await?;
    context.out.answer(&answer, if answer.ok { "ok" } else { "" }, || {
        let mut text = String::new();
        for error in &answer.errors {
            text.push_str(&format!("{}\n", clean(error)));
        }
        if answer.ok {
            text.push_str(&format!("{} tasks, valid\n", answer.tasks));
        }
        text
    })?;
    Ok(if answer.ok { Exit::Success } else { Exit::Usage })
}

/// The file, never more of it than a plan may have.
fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    let shown = path.display();
    let failed = |e: std::io::Error| {
        let code = if e.kind() == std::io::ErrorKind::NotFound { "USAGE" } else { "IO" };
        Problem::new(code, format!("{shown} cannot be read")).why(e.to_string()).next("harnessctl tasks validate FILE")
    };
    // Looked at before it is opened: a pipe would block for ever, and Ctrl-C with it.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(Problem::new("USAGE", format!("{shown} is no file"))
            .why("a plan is read whole, from a regular file")
            .next("harnessctl tasks validate FILE"));
    }
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_PLAN_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() > MAX_PLAN_BYTES {
        return Err(Problem::new("PLAN_TOO_LARGE", format!("{shown} is too large"))
            .why("a plan must be smaller than 16 MiB")
            .next("split the goal into several runs; harnessctl explain PLAN_TOO_LARGE"));
    }
    Ok(bytes)
}
