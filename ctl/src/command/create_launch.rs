//! `create-launch`: registers a run; flags of the predecessor and ours (artifacts.md 2, S4-004, S4-005).

use std::path::PathBuf;

use clap::Args;
use harness_proto::api::answer::CreateLaunchAnswer;
use harness_proto::api::request::CreateLaunch;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;
use harness_proto::policy::{PolicyError, PolicyValues, check_from_value, check_to_value};
use serde_json::Value;

use super::start::role_agent;
use crate::autostart;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::{clean, short};
use crate::repo;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct CreateLaunchArgs {
    /// Repository [default: the current folder]
    #[arg(long, value_name = "R")]
    pub(crate) repo: Option<PathBuf>,
    /// What you asked for, in your words
    #[arg(long)]
    original_goal: String,
    /// Text for prompts [default: the original goal]
    #[arg(long, default_value = "")]
    prompt_text: String,
    /// The confirmed goal
    #[arg(long)]
    goal: String,
    /// What is in scope
    #[arg(long)]
    scope: String,
    /// `workspace_write` or `danger_full_access`
    #[arg(long, value_name = "POLICY")]
    execution_policy: Option<String>,
    /// When the run may stop early, in words
    #[arg(long, value_name = "TEXT")]
    stop_condition: Option<String>,
    /// Whether the planner may add tasks: enabled or disabled
    #[arg(long, value_name = "SWITCH")]
    allow_task_expansion: Option<String>,
    /// Attempts of a task in all
    #[arg(long, value_name = "N")]
    max_task_attempts: Option<i64>,
    /// A note for the manifest
    #[arg(long = "note", value_name = "TEXT")]
    notes: Vec<String>,
    /// Preset of the policy: dag
    #[arg(long, default_value = "dag")]
    profile: String,
    /// Agent of every role: codex, offline, command:PROGRAM
    #[arg(long)]
    agent: Option<String>,
    /// Agent of one role
    #[arg(long, value_name = "ROLE=AGENT")]
    agent_for: Vec<String>,
    /// Name of a variable that agents and checks get too
    #[arg(long, value_name = "NAME")]
    agent_env: Vec<String>,
    /// Program of agent codex
    #[arg(long, value_name = "PATH")]
    pub(crate) codex_bin: Option<String>,
    /// Command that every accepted commit must pass
    #[arg(long = "verify", value_name = "CMD")]
    verify: Vec<String>,
    /// Command that prepares every fresh tree
    #[arg(long = "setup", value_name = "CMD")]
    setup: Vec<String>,
    /// Accept tasks that no command can prove
    #[arg(long)]
    no_verification: bool,
    /// Branch to land on [default: the one that is checked out]
    #[arg(long)]
    branch: Option<String>,
    /// Place in the queue; larger goes first
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Any field of the policy; see docs/policy.md
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Make a repository of a folder that is none
    #[arg(long)]
    init_git: bool,
    /// Check everything, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The refusal of a policy.
pub(crate) fn refused(error: &PolicyError) -> Problem {
    let why = match error {
        PolicyError::NotAvailable { .. } => "this version does not do it yet, and does not ignore what you ask for",
        _ => "the policy table has every key with its values",
    };
    Problem::new(error.code(), error.to_string()).why(why).next("harnessctl config show")
}

impl CreateLaunchArgs {
    /// The policy: preset, then flags, then `--set` in the order given.
    fn policy(&self) -> Result<PolicyValues, Problem> {
        let mut values = PolicyValues::preset(&self.profile).map_err(|e| refused(&e))?;
        let mut put = |key: &str, value: Value| values.put(key, value).map_err(|e| refused(&e));
        for (key, text) in [
            ("execution_policy", &self.execution_policy),
            ("stop_condition", &self.stop_condition),
            ("plan.expansion", &self.allow_task_expansion),
            ("agent", &self.agent),
        ] {
            if let Some(text) = text {
                put(key, Value::from(text.as_str()))?;
            }
        }
        for (key, number) in [("retry.max_attempts", self.max_task_attempts), ("priority", self.priority)] {
            if let Some(number) = number {
                put(key, Value::from(number))?;
            }
        }
        for pair in &self.agent_for {
            let (role, agent) = role_agent(pair)?;
            put(&format!("agent.{role}"), Value::from(agent))?;
        }
        for (key, commands) in [("verify", &self.verify), ("setup", &self.setup)] {
            if !commands.is_empty() {
                put(key, commands.iter().map(|command| command_value(command)).collect())?;
            }
        }
        if !self.agent_env.is_empty() {
            put("agent.env", Value::from(self.agent_env.clone()))?;
        }
        if self.no_verification {
            put("no_verification", Value::Bool(true))?;
        }
        if let Some(name) = &self.codex_bin {
            put("agent.codex_bin", Value::from(repo::codex(name)?))?;
        }
        for assignment in &self.set {
            values.set(assignment).map_err(|e| refused(&e))?;
        }
        values.validate().map_err(|e| refused(&e))?;
        Ok(values)
    }

    /// The request.
    pub(crate) fn body(&self) -> Result<CreateLaunch, Problem> {
        let policy = self.policy()?;
        for (flag, text) in [("--goal", &self.goal), ("--original-goal", &self.original_goal), ("--scope", &self.scope)]
        {
            if text.trim().is_empty() {
                return Err(Problem::new("USAGE", format!("{flag} is empty")).why("agents are told goal and scope"));
            }
        }
        Ok(CreateLaunch {
            repo: repo::absolute(self.repo.as_deref())?,
            original_goal: self.original_goal.clone(),
            prompt_text: self.prompt_text.clone(),
            goal: self.goal.clone(),
            scope: self.scope.clone(),
            notes: self.notes.clone(),
            branch: self.branch.clone(),
            policy: policy.iter().map(|(key, value)| (key.to_owned(), value.clone())).collect(),
            init_git: self.init_git,
            dry_run: self.dry_run,
        })
    }
}

/// A command of the command line: text, or an object as in a plan.
fn command_value(text: &str) -> Value {
    let object = text.starts_with('{').then(|| serde_json::from_str::<Value>(text).ok()).flatten();
    object
        .and_then(|value| check_from_value(&value).ok())
        .map_or_else(|| Value::from(text), |check| check_to_value(&check))
}

/// What a registered run prints.
pub(crate) fn words(answer: &CreateLaunchAnswer) -> String {
    let verb = if answer.dry_run { "would be registered" } else { "registered" };
    let run = if answer.dry_run { "a run".to_owned() } else { format!("run {}", answer.run_id) };
    let mut text = format!("{run} {verb}: {}\n", clean(&answer.goal));
    if !answer.branch.is_empty() {
        text.push_str(&format!("  lands on {} (now {})\n", clean(&answer.branch), short(&answer.base)));
    }
    for check in &answer.checks {
        text.push_str(&format!("  will run: {}\n", clean(check)));
    }
    if answer.dry_run {
        text.push_str("nothing was written\n");
    } else {
        text.push_str(&format!(
            "Plan saved in {}. Run `harnessctl start {}` to start.\n",
            answer.launch_path, answer.run_id
        ));
    }
    text
}

/// Registers.
pub(crate) async fn register(context: &Context<'_>, args: &CreateLaunchArgs) -> Result<CreateLaunchAnswer, Failure> {
    let body = args.body()?;
    autostart::ensure(context).await?;
    let answer: CreateLaunchAnswer = context.client.post("create_launch", &Target::default(), &body).await?;
    for note in &answer.notes {
        context.out.note(&format!("note: {note}"));
    }
    Ok(answer)
}

pub(crate) async fn run(context: &Context<'_>, args: CreateLaunchArgs) -> Result<Exit, Failure> {
    let answer = register(context, &args).await?;
    context.out.answer(&answer, &answer.run_id, || words(&answer))?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: CreateLaunchArgs,
    }

    fn body(more: &[&str]) -> Result<CreateLaunch, Problem> {
        let base = ["x", "--original-goal", "o", "--goal", "g", "--scope", "s", "--repo", "/"];
        Only::try_parse_from(base.iter().chain(more)).unwrap().args.body()
    }

    #[test]
    fn flags_become_policy() {
        let body = body(&[
            "--verify",
            "make test",
            "--verify",
            r#"{"argv": ["cargo", "test"], "timeout_s": 5}"#,
            "--max-task-attempts",
            "5",
            "--agent-for",
            "verifier=offline",
            "--no-verification",
            "--priority",
            "-3",
            "--set",
            "evidence.timeout_s=60",
        ])
        .unwrap();
        assert_eq!(body.policy["verify"][0], "make test");
        assert_eq!(body.policy["verify"][1]["timeout_s"], 5);
        assert_eq!((&body.policy["retry.max_attempts"], &body.policy["priority"]), (&Value::from(5), &Value::from(-3)));
        assert_eq!(
            (&body.policy["agent.verifier"], &body.policy["no_verification"]),
            (&Value::from("offline"), &Value::from(true))
        );
        assert_eq!(body.policy["evidence.timeout_s"], 60);
        assert_eq!(body.repo, "/");
    }

    #[test]
    fn what_is_not_built_is_refused_with_exit_2() {
        for (more, code) in [
            (["--profile", "scored"], "NOT_AVAILABLE"),
            (["--set", "max_parallel=4"], "NOT_AVAILABLE"),
            (["--set", "nonsense=1"], "POLICY_INVALID"),
            (["--max-task-attempts", "0"], "POLICY_INVALID"),
            (["--execution-policy", "none"], "POLICY_INVALID"),
            (["--agent-for", "boss=codex"], "USAGE"),
            (["--codex-bin", "/no/such/codex"], "AGENT_MISSING"),
        ] {
            let problem = body(&more).unwrap_err();
            assert_eq!((problem.code.as_str(), problem.exit()), (code, Exit::Usage), "{more:?}");
        }
    }
}
