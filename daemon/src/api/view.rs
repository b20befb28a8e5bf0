//! A run as people and programs read it: a pure function of its state and a few facts (ux.md section 2, artifacts.md 1.2, 1.4).

use std::collections::BTreeMap;

use harness_core::policy::Policy;
use harness_core::state::{Hold, RunHead, RunState, Stage, Task};
use harness_proto::api::answer::DaemonView;
use harness_proto::api::view::{HoldView, LandingView, RunView, TaskView, UsageView, WallsView};
use harness_proto::event::timestamp;
use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, Phase, TaskStatus};
use serde_json::{Value, json};

use super::view_task::task_view;

/// Where the files of a run stand; lossy text for people and the predecessor's members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Paths {
    /// The repository.
    pub repo: String,
    /// `harness-events.tsv`.
    pub events: String,
    /// `harness-launch.json`.
    pub launch: String,
    /// `harness-runtime.log`.
    pub log: String,
    /// `harness-runtime.json`.
    pub runtime: String,
    /// `harness-state.json`.
    pub state: String,
    /// `tasks.json`.
    pub tasks: String,
}

/// What a view needs besides the state.
#[derive(Debug, Clone)]
pub struct ViewFacts<'a> {
    /// Now, by the wall clock.
    pub now: Millis,
    /// The daemon; not alive in facts that nobody drives.
    pub daemon: &'a DaemonView,
    /// Its command line.
    pub command: &'a [String],
    /// When the run was registered.
    pub created_at: Millis,
    /// Where its files stand.
    pub paths: &'a Paths,
    /// Its policy.
    pub policy: &'a Policy,
    /// Branch that was asked for at `create-launch`; counts until the first start names one.
    pub branch: &'a str,
    /// Agents by role.
    pub agents: &'a BTreeMap<String, String>,
    /// What walls whom.
    pub walls: &'a WallsView,
    /// Since when each task is in its state, as far as known.
    pub since: &'a BTreeMap<TaskId, Millis>,
    /// Whether to list the tasks.
    pub tasks: bool,
}

/// The view of a run.
#[must_use]
pub fn run_view(state: &RunState, facts: &ViewFacts<'_>) -> RunView {
    let head = &state.head;
    let driven = facts.daemon.alive && matches!(head.lifecycle, Lifecycle::Queued | Lifecycle::Running);
    let tasks: Vec<TaskView> =
        if facts.tasks { ordered(state).map(|task| task_view(state, task, facts)).collect() } else { Vec::new() };
    RunView {
        schema: "harness.status/1".into(),
        status: predecessor_status(head).into(),
        terminal_reason: terminal_reason(head),
        last_decision: last_decision(state).into(),
        last_reason: head.last.decision.clone(),
        last_error: head.last.error.clone(),
        last_role: head.last.role.clone(),
        last_task_id: head.last.task.clone(),
        pid: driven.then_some(facts.daemon.pid),
        pgid: driven.then_some(facts.daemon.pid),
        command: if driven { facts.command.to_vec() } else { Vec::new() },
        runtime_running: driven,
        recovery: recovery_object(head),
        repo: facts.paths.repo.clone(),
        events_path: facts.paths.events.clone(),
        launch_path: facts.paths.launch.clone(),
        log_path: facts.paths.log.clone(),
        runtime_path: facts.paths.runtime.clone(),
        state_path: facts.paths.state.clone(),
        tasks_path: facts.paths.tasks.clone(),
        created_at: timestamp(facts.created_at),
        updated_at: timestamp(head.updated_at),
        version: 1,
        run_id: head.brief.run.to_string(),
        goal: head.brief.goal.clone(),
        state: run_word(state).into(),
        lifecycle: head.lifecycle.to_string(),
        phase: head.phase.to_string(),
        hold: head.hold.as_ref().map(hold_view),
        started_at: head.started_at.map(timestamp).unwrap_or_default(),
        branch: if head.target_branch.is_empty() { facts.branch.to_owned() } else { head.target_branch.clone() },
        base: head.base.clone(),
        integration_head: head.head.clone(),
        landing: landing_view(head),
        tasks,
        task_counts: task_counts(state),
        counts: counts(head),
        usage: UsageView {
            turns: i64::from(head.counts.turns),
            tokens: head.counts.tokens,
            max_tokens: facts.policy.max_tokens,
            agent_ms: head.counts.agent_ms,
        },
        walls: facts.walls.clone(),
        agents: facts.agents.clone(),
        no_verification: facts.policy.no_verification,
        seq: head.seq.0,
        next: next_command(head),
        daemon: facts.daemon.clone(),
    }
}

/// Tasks in the order in which they would be dispatched.
fn ordered(state: &RunState) -> impl Iterator<Item = &Task> {
    let mut tasks: Vec<&Task> = state.tasks.values().collect();
    tasks.sort_by(|a, b| (a.plan.priority, &a.plan.id).cmp(&(b.plan.priority, &b.plan.id)));
    tasks.into_iter()
}

/// The predecessor's word for the run (profiles 1.1).
fn predecessor_status(head: &RunHead) -> &'static str {
    match (head.lifecycle, head.hold.as_ref().map(|h| h.kind)) {
        (Lifecycle::Stopped | Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled, _) => "terminal",
        (Lifecycle::Registered | Lifecycle::Queued, None) | (_, Some(HoldKind::Paused)) => "idle",
        (_, Some(HoldKind::NeedsHuman | HoldKind::Recovery)) => "recovery",
        (Lifecycle::Running, None) | (_, Some(HoldKind::Parked)) => "running",
    }
}

fn terminal_reason(head: &RunHead) -> String {
    if !head.terminal_reason.is_empty() {
        return head.terminal_reason.clone();
    }
    match head.lifecycle {
        Lifecycle::Completed => "all_tasks_done".into(),
        Lifecycle::Stopped => "user_stopped".into(),
        Lifecycle::Cancelled => "user_cancelled".into(),
        Lifecycle::Failed => head.hold.as_ref().map_or_else(|| "failed".into(), |hold| hold.reason.clone()),
        Lifecycle::Registered | Lifecycle::Queued | Lifecycle::Running => "none".into(),
    }
}

/// The last high-level decision, in the documented set (S4-066, readings 004-2).
fn last_decision(state: &RunState) -> &'static str {
    let head = &state.head;
    let ended =
        matches!(head.lifecycle, Lifecycle::Stopped | Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled);
    if ended || head.stopping || head.cancelling {
        return "stop";
    }
    if head.hold.as_ref().is_some_and(|h| matches!(h.kind, HoldKind::NeedsHuman | HoldKind::Recovery)) {
        return "recovery";
    }
    if head.planner.effect.is_some() {
        return "run_planner";
    }
    let stages = || state.attempts.values().map(|a| a.stage);
    if stages().any(|s| matches!(s, Stage::Building | Stage::Reproving | Stage::Advancing)) {
        return "apply_accept";
    }
    if stages().any(|s| matches!(s, Stage::Proving | Stage::Verifying)) {
        return "run_verifier";
    }
    if stages().next().is_some() {
        return "run_implementer";
    }
    match head.last.status.as_str() {
        "accept" => "apply_accept",
        "revert" => "apply_revert",
        "recovery" => "recovery",
        _ => "",
    }
}

/// People's word for the run.
fn run_word(state: &RunState) -> &'static str {
    let head = &state.head;
    match head.lifecycle {
        Lifecycle::Completed => {
            let refused = |t: &Task| {
                matches!(
                    t.status,
                    TaskStatus::Failed | TaskStatus::Blocked | TaskStatus::TimedOut | TaskStatus::Cancelled
                )
            };
            if state.tasks.values().any(refused) { "done-with-refusals" } else { "done" }
        }
        Lifecycle::Failed => "failed",
        Lifecycle::Cancelled => "cancelled",
        Lifecycle::Stopped => "stopped",
        Lifecycle::Registered => "registered",
        Lifecycle::Queued | Lifecycle::Running if head.stopping || head.cancelling => "stopping",
        Lifecycle::Queued | Lifecycle::Running => match head.hold.as_ref().map(|h| h.kind) {
            Some(HoldKind::Parked) => "parked",
            Some(HoldKind::Paused) => "paused",
            Some(HoldKind::NeedsHuman | HoldKind::Recovery) => "needs-human",
            None if head.lifecycle == Lifecycle::Queued => "queued",
            None if matches!(head.phase, Phase::Planning | Phase::Specifying) => "planning",
            None => "running",
        },
    }
}

/// What continues the run, when somebody has to act.
fn next_command(head: &RunHead) -> String {
    if let Some(hold) = &head.hold {
        return hold.next.clone();
    }
    let run = head.brief.run.as_str();
    match head.lifecycle {
        Lifecycle::Registered | Lifecycle::Stopped | Lifecycle::Failed => format!("harnessctl start {run}"),
        Lifecycle::Completed if !head.unlanded.is_empty() => {
            if head.landing.command.is_empty() {
                format!("harnessctl start {run}")
            } else {
                head.landing.command.clone()
            }
        }
        Lifecycle::Queued | Lifecycle::Running | Lifecycle::Completed | Lifecycle::Cancelled => String::new(),
    }
}

fn hold_view(hold: &Hold) -> HoldView {
    HoldView {
        kind: hold.kind.to_string(),
        owner: hold.owner.to_string(),
        reason: hold.reason.clone(),
        detail: hold.detail.clone(),
        until: hold.until.map(timestamp).unwrap_or_default(),
        next: hold.next.clone(),
        since: timestamp(hold.since),
    }
}

fn landing_view(head: &RunHead) -> LandingView {
    let status = if !head.unlanded.is_empty() {
        "pending"
    } else if head.counts.accepts > 0 {
        "landed"
    } else {
        "none"
    };
    LandingView {
        status: status.into(),
        why: head.landing.why.clone(),
        paths: head.landing.paths.clone(),
        command: head.landing.command.clone(),
        landed: head.landed.clone(),
        unlanded: u32::try_from(head.unlanded.len()).unwrap_or(u32::MAX),
    }
}

fn task_counts(state: &RunState) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for task in state.tasks.values() {
        *counts.entry(task.status.to_string()).or_default() += 1;
    }
    counts
}

fn counts(head: &RunHead) -> BTreeMap<String, i64> {
    let c = &head.counts;
    [
        ("planner_runs", c.planner_runs),
        ("implementer_runs", c.implementer_runs),
        ("verifier_runs", c.verifier_runs),
        ("accepts", c.accepts),
        ("reverts", c.reverts),
        ("replans", c.replans),
        ("blocked", c.blocked),
        ("recovery_requests", c.recovery_requests),
    ]
    .map(|(name, n)| (name.to_owned(), i64::from(n)))
    .into()
}

/// The predecessor's recovery object (artifacts.md 1.4); all defaults when nothing is pending.
#[must_use]
pub fn recovery_object(head: &RunHead) -> Value {
    let no_retry = json!({"count": 0, "reason": "", "resume_role": "", "resume_task_id": "", "resume_attempt": 0});
    let Some(open) = &head.incident else {
        let hold = head.hold.as_ref().filter(|h| matches!(h.kind, HoldKind::NeedsHuman | HoldKind::Recovery));
        return json!({
            "status": if hold.is_some() { "pending" } else { "clear" },
            "owner": hold.map(|h| h.owner.to_string()).unwrap_or_default(),
            "reason": hold.map(|h| h.reason.clone()).unwrap_or_default(),
            "resume_role": "", "resume_task_id": "", "resume_attempt": 0,
            "incident": {}, "retry": no_retry,
        });
    };
    let task = open.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let role = match open.owner {
        Owner::Planner => "planner",
        Owner::Runtime => "runtime",
        Owner::User => "",
    };
    let target = json!({"resume_role": role, "resume_task_id": task, "resume_attempt": open.attempt});
    let with = |mut object: Value| {
        for (name, value) in target.as_object().into_iter().flatten() {
            object[name.as_str()] = value.clone();
        }
        object
    };
    let runtime = open.owner == Owner::Runtime;
    let retry = if runtime { with(json!({"count": open.count, "reason": open.reason})) } else { no_retry };
    let incident = if runtime {
        json!({})
    } else {
        with(json!({"owner": open.owner, "reason": open.reason, "commit": open.commit, "details": open.details}))
    };
    with(json!({"status": "pending", "owner": open.owner, "reason": open.reason, "incident": incident, "retry": retry}))
}
