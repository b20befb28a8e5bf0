//! What each file holds, as a pure function of a run's state (artifacts.md 1; DESIGN 10).

use std::path::PathBuf;

use harness_core::dag::render_tasks_json;
use harness_core::state::{Attempt, RunHead, RunState, Stage};
use harness_proto::doc::runtime::RuntimeStatus;
use harness_proto::doc::servers::ServerDoc;
use harness_proto::doc::state::IncidentDoc;
use harness_proto::doc::{
    ActiveTaskDoc, DOC_MODE, DOC_VERSION, LaunchDoc, RecoveryDoc, RuntimeDoc, ServersDoc, StateBodyDoc, StateDoc,
    render, render_value,
};
use harness_proto::event::timestamp;
use harness_proto::ids::Millis;
use harness_proto::report::Report;
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, Role};
use serde_json::{Map, Value, json};

use super::paths::{FileName, Layout, ReportName};

/// How the text of a `plan.md` begins that no planner wrote (artifacts.md 1.7); the goal follows.
pub(super) const FIRST_PLAN: &str = "# Plan\n\nGoal: ";

/// The process that drives a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaemonIdentity {
    /// Its pid (corrections 40).
    pub pid: u32,
    /// Its process group.
    pub pgid: i32,
    /// Its command line.
    pub command: Vec<String>,
}

/// What the files hold besides the state.
#[derive(Debug, Clone)]
pub struct ProjectContext {
    /// Where the files lie.
    pub layout: Layout,
    /// The launch manifest.
    pub launch: LaunchDoc,
    /// The daemon; none when nobody drives the run.
    pub daemon: Option<DaemonIdentity>,
    /// When the run was registered.
    pub created_at: Millis,
    /// Folder of the run's trees, for `worktree_path`.
    pub trees: PathBuf,
    /// The planner's prose; without it `plan.md` gets the predecessor's first text, unless one is there already.
    pub prose: Option<String>,
    /// Agent processes that live now.
    pub servers: Vec<ServerDoc>,
    /// Reports since the last projection, by the name that `step` gave them.
    pub reports: Vec<(ReportName, Report)>,
}

/// Every file that is replaced as a whole, except the launch manifest; none as bytes means that the file is not to be there.
/// Same state and context, same bytes.
#[must_use]
pub fn project(state: &RunState, context: &ProjectContext) -> Vec<(FileName, Option<Vec<u8>>)> {
    let mut files: Vec<(FileName, Option<Vec<u8>>)> = context
        .reports
        .iter()
        .map(|(name, report)| (FileName::Report(name.clone()), Some(report_bytes(report))))
        .collect();
    let servers = (!context.servers.is_empty()).then(|| render(&ServersDoc::of(context.servers.clone())).into_bytes());
    let prose = context.prose.clone().unwrap_or_else(|| format!("{FIRST_PLAN}{}\n", state.head.brief.goal));
    files.extend([
        (FileName::Tasks, Some(render_value(&tasks_value(state, context.created_at)).into_bytes())),
        (FileName::Plan, Some(prose.into_bytes())),
        (FileName::State, Some(render(&state_doc(state, context)).into_bytes())),
        (FileName::Runtime, Some(render(&runtime_doc(state, context)).into_bytes())),
        (FileName::Servers, servers),
    ]);
    files
}

/// `tasks.json`: the planner's topology with the store's status.
#[must_use]
pub fn tasks_value(state: &RunState, created_at: Millis) -> Value {
    let head = &state.head;
    render_tasks_json(&head.brief.goal, head.plan_revision, &state.tasks, created_at, head.updated_at)
}

/// The bytes of a report file: the report as it counts (S4-039).
#[must_use]
pub fn report_bytes(report: &Report) -> Vec<u8> {
    render(report).into_bytes()
}

/// The predecessor's word for where a run is (DESIGN 4, ux.md 10). A parked run goes on by itself and so is running.
#[must_use]
pub fn runtime_status(head: &RunHead) -> RuntimeStatus {
    match head.lifecycle {
        Lifecycle::Registered => RuntimeStatus::Idle,
        Lifecycle::Stopped | Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled => RuntimeStatus::Terminal,
        Lifecycle::Queued | Lifecycle::Running => match head.hold.as_ref().map(|hold| hold.kind) {
            None | Some(HoldKind::Parked) => RuntimeStatus::Running,
            Some(HoldKind::Paused | HoldKind::NeedsHuman | HoldKind::Recovery) => RuntimeStatus::Recovery,
        },
    }
}

fn state_doc(state: &RunState, context: &ProjectContext) -> StateDoc {
    let (head, counts) = (&state.head, &state.head.counts);
    StateDoc {
        config: context.launch.config.clone(),
        mode: DOC_MODE.to_owned(),
        run_tag: head.brief.run.to_string(),
        state: StateBodyDoc {
            accepted_commit: head.last.accepted_commit.clone(),
            accepts: counts.accepts.into(),
            active_tasks: state.attempts.values().map(|a| (a.task.to_string(), active(state, context, a))).collect(),
            blocked: counts.blocked.into(),
            completed: head.lifecycle == Lifecycle::Completed,
            implementer_runs: counts.implementer_runs.into(),
            last_decision: head.last.decision.clone(),
            last_status: head.last.status.clone(),
            last_verdict: head.last.verdict.clone(),
            planner_pending_reason: head.planner.pending.clone(),
            planner_revision: head.plan_revision,
            planner_runs: counts.planner_runs.into(),
            recovery: recovery(state),
            recovery_requests: counts.recovery_requests.into(),
            replans: counts.replans.into(),
            reverts: counts.reverts.into(),
            seq: head.seq.0,
            verifier_runs: counts.verifier_runs.into(),
        },
        updated_at: timestamp(head.updated_at),
        version: DOC_VERSION,
    }
}

fn active(state: &RunState, context: &ProjectContext, attempt: &Attempt) -> ActiveTaskDoc {
    let feedback = state.tasks.get(&attempt.task).map(|task| task.feedback.summary.clone());
    ActiveTaskDoc {
        attempt: attempt.number.into(),
        base_commit: attempt.base.clone(),
        // Trees have a detached HEAD (DESIGN 6): there is no branch to name.
        branch_name: String::new(),
        role: stage_role(attempt.stage).to_string(),
        thread_id: attempt.session.clone().unwrap_or_default(),
        trial_commit: attempt.trial.clone(),
        verifier_feedback: feedback.unwrap_or_default(),
        worktree_path: context.trees.join(&attempt.tree).to_string_lossy().into_owned(),
    }
}

/// Whose work an attempt waits for, in the predecessor's two words.
fn stage_role(stage: Stage) -> Role {
    match stage {
        Stage::Preparing | Stage::Setup | Stage::Implementing => Role::Implementer,
        Stage::Proving | Stage::Verifying | Stage::Building | Stage::Reproving | Stage::Advancing => Role::Verifier,
    }
}

fn recovery(state: &RunState) -> RecoveryDoc {
    if let Some(incident) = &state.head.incident {
        let active = incident.task.as_ref().and_then(|task| state.attempts.get(task));
        let resume_role = match incident.owner {
            Owner::Planner => Role::Planner.to_string(),
            Owner::Runtime | Owner::User => active.map_or("runtime".to_owned(), |a| stage_role(a.stage).to_string()),
        };
        let details = match &incident.details {
            Value::Object(members) => members.clone(),
            Value::Null => Map::new(),
            other => Map::from_iter([("detail".to_owned(), other.clone())]),
        };
        let doc = IncidentDoc {
            commit: incident.commit.clone(),
            details,
            owner: incident.owner.to_string(),
            reason: incident.reason.clone(),
            resume_attempt: incident.attempt.into(),
            resume_role,
            resume_task_id: incident.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        };
        return RecoveryDoc::pending(doc, incident.count.into());
    }
    match &state.head.hold {
        Some(hold) if hold.kind != HoldKind::Parked => RecoveryDoc::pending(
            IncidentDoc {
                owner: hold.owner.to_string(),
                reason: hold.reason.clone(),
                resume_role: if hold.owner == Owner::Planner { "planner" } else { "runtime" }.to_owned(),
                details: Map::from_iter([
                    ("detail".to_owned(), json!(hold.detail)),
                    ("next".to_owned(), json!(hold.next)),
                ]),
                ..IncidentDoc::default()
            },
            0,
        ),
        _ => RecoveryDoc::default(),
    }
}

fn runtime_doc(state: &RunState, context: &ProjectContext) -> RuntimeDoc {
    let head = &state.head;
    let path = |name: &FileName| context.layout.path(name).to_string_lossy().into_owned();
    let daemon = context.daemon.as_ref().filter(|_| matches!(head.lifecycle, Lifecycle::Queued | Lifecycle::Running));
    RuntimeDoc {
        command: daemon.map(|daemon| daemon.command.clone()).unwrap_or_default(),
        created_at: timestamp(context.created_at),
        events_path: path(&FileName::Events),
        hold: head.hold.as_ref().map_or(Value::Null, |hold| {
            json!({
                "kind": hold.kind, "owner": hold.owner, "reason": hold.reason, "detail": hold.detail, "next": hold.next,
                "since": timestamp(hold.since), "until": hold.until.map(timestamp),
            })
        }),
        last_decision: last_decision(state).to_owned(),
        last_error: head.last.error.clone(),
        last_reason: head.last.decision.clone(),
        last_role: head.last.role.clone(),
        last_task_id: head.last.task.clone(),
        launch_path: path(&FileName::Launch),
        lifecycle: head.lifecycle.to_string(),
        log_path: path(&FileName::RuntimeLog),
        pgid: daemon.map(|daemon| daemon.pgid.into()),
        phase: head.phase.to_string(),
        pid: daemon.map(|daemon| daemon.pid.into()),
        recovery: recovery(state),
        repo: context.layout.repo().to_string_lossy().into_owned(),
        run_id: head.brief.run.to_string(),
        runtime_path: path(&FileName::Runtime),
        state_path: path(&FileName::State),
        status: runtime_status(head),
        tasks_path: path(&FileName::Tasks),
        terminal_reason: if head.terminal_reason.is_empty() { "none".to_owned() } else { head.terminal_reason.clone() },
        updated_at: timestamp(head.updated_at),
        version: DOC_VERSION,
    }
}

/// The predecessor's word for what the runtime did last; derived, so that it can never disagree with the state.
fn last_decision(state: &RunState) -> &'static str {
    let head = &state.head;
    match runtime_status(head) {
        RuntimeStatus::Idle => "",
        RuntimeStatus::Terminal => "stop",
        RuntimeStatus::Recovery => "recovery",
        RuntimeStatus::Running if !head.planner.pending.is_empty() || head.planner.effect.is_some() => "run_planner",
        RuntimeStatus::Running if state.attempts.values().any(|attempt| attempt.retry_at.is_some()) => "runtime_retry",
        RuntimeStatus::Running if head.started_at.is_none() => "",
        RuntimeStatus::Running => "relaunch",
    }
}
