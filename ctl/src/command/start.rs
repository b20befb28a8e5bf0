//! `start`: begins or continues a run in the background (S4-008, S4-009).

use std::collections::BTreeMap;

use clap::Args;
use harness_proto::api::answer::StartAnswer;
use harness_proto::api::request::Start;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;

use crate::autostart;
use crate::cli::RunRef;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::repo;

/// See the module.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) run: RunRef,
    #[command(flatten)]
    pub(crate) agents: AgentArgs,
}

/// Agents of a run that was never started.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct AgentArgs {
    /// Agent of every role: codex, offline, command:PROGRAM
    #[arg(long)]
    pub(crate) agent: Option<String>,
    /// Agent of one role
    #[arg(long, value_name = "ROLE=AGENT")]
    pub(crate) agent_for: Vec<String>,
    /// Program of agent codex
    #[arg(long, value_name = "PATH")]
    pub(crate) codex_bin: Option<String>,
    /// Taken for the predecessor's scripts; without effect
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) sleep_seconds: Option<String>,
}

impl AgentArgs {
    /// The request.
    pub(crate) fn body(&self, context: &Context<'_>) -> Result<Start, Problem> {
        if self.sleep_seconds.is_some() {
            context.out.note("note: --sleep-seconds has no effect: nothing sleeps between steps");
        }
        let mut agent_for = BTreeMap::new();
        for pair in &self.agent_for {
            let (role, agent) = role_agent(pair)?;
            agent_for.insert(role.to_owned(), agent.to_owned());
        }
        let codex_bin = self.codex_bin.as_deref().map(repo::codex).transpose()?;
        Ok(Start { agent: self.agent.clone(), agent_for, codex_bin, path: std::env::var("PATH").ok() })
    }
}

/// Reads ROLE=AGENT.
pub(crate) fn role_agent(pair: &str) -> Result<(&str, &str), Problem> {
    pair.split_once('=').filter(|(role, _)| ["planner", "implementer", "verifier"].contains(role)).ok_or_else(|| {
        Problem::new("USAGE", format!("`{pair}` is no ROLE=AGENT")).why("roles are planner, implementer, verifier")
    })
}

/// Starts the run of a target.
pub(crate) async fn begin(context: &Context<'_>, target: &Target, agents: &AgentArgs) -> Result<StartAnswer, Failure> {
    let body = agents.body(context)?;
    autostart::ensure(context).await?;
    context.client.post("start", target, &body).await
}

/// What a started run prints.
pub(crate) fn words(answer: &StartAnswer) -> String {
    let run = &answer.run_id;
    if !answer.note.is_empty() {
        return format!("run {run}: {}\n", answer.note);
    }
    format!(
        "run {run} started (pid {}), log {}\nThe runtime is now running in the background.\n\
         follow: harnessctl logs -f {run} - status: harnessctl status {run} - stop: harnessctl stop {run}\n",
        answer.pid, answer.log_path
    )
}

pub(crate) async fn run(context: &Context<'_>, args: &StartArgs) -> Result<Exit, Failure> {
    let answer = begin(context, &context.target(&args.run)?, &args.agents).await?;
    context.out.answer(&answer, &answer.run_id, || words(&answer))?;
    Ok(Exit::Success)
}
