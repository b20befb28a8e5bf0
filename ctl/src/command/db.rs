//! `db check`: asks the daemon to check its database; the client never opens it.

use clap::Subcommand;
use harness_proto::api::answer::DbCheckAnswer;
use harness_proto::exit::Exit;

use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum DbVerb {
    /// Check the database
    Check,
}

pub(crate) async fn run(context: &Context<'_>, verb: &DbVerb) -> Result<Exit, Failure> {
    let DbVerb::Check = verb;
    let answer: DbCheckAnswer = context.client.get("db_check", &Target::default()).await?;
    let words = if answer.ok { "ok".to_owned() } else { answer.problems.join("\n") };
    context.out.answer(&answer, &words, || words.clone())?;
    Ok(if answer.ok { Exit::Success } else { Exit::Config })
}
