//! `recover`: lists kept work, or makes a branch of it.

use clap::Args;
use harness_proto::api::answer::RecoverAnswer;
use harness_proto::api::request::Recover;
use harness_proto::exit::Exit;

use crate::cli::RunOption;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{clean, columns, short};

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecoverArgs {
    /// Only work of this task
    task: Option<String>,
    #[command(flatten)]
    run: RunOption,
    /// List what is kept (also without any option)
    #[arg(long, conflicts_with = "branch")]
    list: bool,
    /// Make this branch at the newest kept commit
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
}

pub(crate) async fn run(context: &Context<'_>, args: &RecoverArgs) -> Result<Exit, Failure> {
    let body = Recover { task: args.task.clone(), branch: args.branch.clone() };
    let answer: RecoverAnswer =
        context.client.post("recover", &context.target(&args.run.clone().into())?, &body).await?;
    let names: Vec<&str> = answer.kept.iter().map(|k| k.name.as_str()).collect();
    context.out.answer(&answer, &names.join("\n"), || {
        if !answer.branch.is_empty() {
            return format!("branch {} made at {}\n", clean(&answer.branch), short(&answer.commit));
        }
        if answer.kept.is_empty() {
            return "nothing is kept\n".to_owned();
        }
        let mut rows = vec![["NAME", "COMMIT", "WHEN", "SUBJECT"].map(str::to_owned).to_vec()];
        for kept in &answer.kept {
            rows.push(vec![clean(&kept.name), short(&kept.commit), kept.at.clone(), clean(&kept.subject)]);
        }
        columns(&rows).join("\n")
    })?;
    Ok(Exit::Success)
}
