//! `cancel TASK` gives a task up, `cancel RUN` or `cancel --run RUN` a run; final, kept work stays (ux.md section 10).

use clap::Args;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;
use serde_json::json;

use super::controlled;
use crate::cli::{RunOption, RunRef};
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct CancelArgs {
    /// A task, or a run: what begins with `run_` or `@` is a run
    #[arg(value_name = "TASK|RUN")]
    about: Option<String>,
    #[command(flatten)]
    run: RunOption,
}

/// What is to be cancelled.
#[derive(Debug, PartialEq, Eq)]
enum Meant<'a> {
    Task(&'a str),
    Run(&'a str),
}

/// Only what surely names a run is one: cancelling a run cannot be undone.
fn meant(args: &CancelArgs) -> Result<Meant<'_>, Problem> {
    match (args.about.as_deref(), args.run.run.as_deref()) {
        (Some(about), None) if about.starts_with("run_") || about.starts_with('@') => Ok(Meant::Run(about)),
        (Some(task), _) => Ok(Meant::Task(task)),
        (None, Some(run)) => Ok(Meant::Run(run)),
        (None, None) => Err(Problem::new("USAGE", "nothing to cancel is named")
            .why("cancel takes a task or a run, and neither is guessed")
            .next("harnessctl cancel TASK, or harnessctl cancel --run RUN")),
    }
}

pub(crate) async fn run(context: &Context<'_>, args: &CancelArgs) -> Result<Exit, Failure> {
    match meant(args)? {
        Meant::Task(task) => {
            let target = context.target(&args.run.clone().into())?.task(task);
            controlled(context, &context.client.post("cancel_task", &target, &json!({})).await?)
        }
        Meant::Run(run) => {
            if !context.global.yes && !context.out.terminal {
                return Err(Problem::new("USAGE", format!("run {run} was not cancelled: --yes is missing"))
                    .why("a cancelled run cannot be started again")
                    .next(format!("harnessctl cancel {run} --yes, or harnessctl stop {run}"))
                    .into());
            }
            let target = context.target(&RunRef { run: Some(run.to_owned()), repo: None })?;
            controlled(context, &context.client.post("cancel_run", &target, &json!({})).await?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_surely_names_a_run_is_a_run() {
        let args = |about: Option<&str>, run: Option<&str>| CancelArgs {
            about: about.map(str::to_owned),
            run: RunOption { run: run.map(str::to_owned), repo: None },
        };
        assert_eq!(meant(&args(Some("run_a"), None)), Ok(Meant::Run("run_a")));
        assert_eq!(meant(&args(Some("@last"), None)), Ok(Meant::Run("@last")));
        assert_eq!(meant(&args(Some("T-1"), Some("run_a"))), Ok(Meant::Task("T-1")));
        assert_eq!(meant(&args(None, Some("7f"))), Ok(Meant::Run("7f")));
        assert!(meant(&args(None, None)).is_err());
    }
}
