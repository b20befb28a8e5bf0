//! The one place that asks for work: given the state after an input, what starts now.
//!
//! Order (DESIGN 4): baseline, attempts in flight, a planner turn that is due, new attempts, a planner turn because nothing is
//! left to do, completion. Cost does not grow with the number of tasks: only open attempts and the head of the ready index
//! are looked at.

use harness_proto::ids::TaskId;
use harness_proto::plan::Check;
use harness_proto::vocab::{HoldKind, Kind, Lifecycle, Owner, Phase, Role, TaskStatus};

use crate::effect::{CandidateRequest, EffectKind, EvidenceRequest, Purpose, TurnLimits, TurnRequest};
use crate::policy::OnExhausted;
use crate::prompt;
use crate::state::{Attempt, Stage};
use crate::step::{Change, TurnRow};

use super::cx::{Cx, draft};
use super::{finishing, landing, planning, recovery};

/// Starts what may start.
pub(super) fn pump(cx: &mut Cx<'_>) {
    if !moving(cx) || !budget_left(cx) {
        return;
    }
    if !baseline_done(cx) {
        return;
    }
    landing::pump(cx);
    resume_attempts(cx);
    if !moving(cx) || cx.state.head.planner.effect.is_some() {
        return;
    }
    if !cx.state.head.planner.pending.is_empty() {
        if cx.state.attempts.is_empty() && cx.state.head.planner.retry_at.is_none() {
            planning::dispatch(cx);
        }
        return;
    }
    while moving(cx) && cx.state.attempts.len() < cx.policy.max_parallel as usize {
        let Some((_, task)) = cx.state.ready.first().cloned() else { break };
        begin_attempt(cx, &task);
    }
    if cx.state.attempts.is_empty() && cx.state.ready.is_empty() && moving(cx) {
        nothing_left(cx);
    }
}

fn moving(cx: &Cx<'_>) -> bool {
    let head = &cx.state.head;
    head.lifecycle == Lifecycle::Running && head.hold.is_none() && !head.stopping && !head.cancelling
}

/// Every run ends (P6): turns, planner turns, tokens and wall time are bounded.
fn budget_left(cx: &mut Cx<'_>) -> bool {
    let times = i64::from(cx.state.head.grants) + 1;
    let policy = cx.policy;
    let counts = &cx.state.head.counts;
    let tasks = i64::try_from(cx.state.tasks.len()).unwrap_or(i64::MAX);
    let or = |limit: i64, default: i64| if limit == 0 { default } else { limit };
    let turns = or(i64::from(policy.max_turns), tasks.saturating_mul(10).saturating_add(50));
    let planner_turns = or(i64::from(policy.max_planner_turns), tasks.saturating_mul(2).saturating_add(20));
    let wall_s = cx.state.head.started_at.map_or(0, |start| (cx.at.0 - start.0) / 1000);
    let used = [
        ("run.max_turns", turns, i64::from(counts.turns)),
        ("run.max_planner_turns", planner_turns, i64::from(counts.planner_runs)),
        ("run.max_tokens", policy.max_tokens, counts.tokens),
        ("run.max_wall_s", policy.max_wall_s, wall_s),
    ];
    let over = used.into_iter().find(|(_, limit, used)| *limit > 0 && *used >= limit.saturating_mul(times));
    let Some((key, limit, used)) = over else { return true };
    let detail = format!("{key} is {}, used are {used}; `start` grants the same again", limit.saturating_mul(times));
    let next = cx.start_command();
    cx.hold(HoldKind::NeedsHuman, Owner::User, "budget_exhausted", &detail, next);
    false
}

/// Setup and suite on the base commit, before any agent is paid (DESIGN 8).
fn baseline_done(cx: &mut Cx<'_>) -> bool {
    let baseline = &mut cx.state.head.baseline;
    if baseline.done {
        return true;
    }
    if baseline.effect.is_some() {
        return false;
    }
    if cx.policy.setup.is_empty() && cx.policy.verify.is_empty() {
        baseline.done = true;
        cx.touch(Change::Run);
        return true;
    }
    let request = EvidenceRequest {
        purpose: Purpose::Baseline,
        task: None,
        attempt: 0,
        commit: cx.state.head.base.clone(),
        setup: cx.policy.setup.clone(),
        checks: cx.policy.verify.clone(),
        timeout_s: cx.policy.evidence_timeout_s,
    };
    let id = cx.effect(EffectKind::CollectEvidence(Box::new(request)));
    cx.state.head.baseline.effect = Some(id);
    false
}

/// Asks for the stage's effect of each attempt that waits for nothing. Building to Advancing is one attempt's at a time.
fn resume_attempts(cx: &mut Cx<'_>) {
    let idle: Vec<(Stage, TaskId)> = cx
        .state
        .attempts
        .values()
        .filter(|a| a.effect.is_none() && a.retry_at.is_none())
        .map(|a| (a.stage, a.task.clone()))
        .collect();
    // Later stages first: what is nearly done frees the head soonest.
    for (stage, task) in idle.into_iter().rev() {
        if !moving(cx) {
            return;
        }
        // An attempt past Building has the head in hand already and must be let through, else a rebuild waits for it for ever.
        if stage == Stage::Building && integration_busy(cx, &task) {
            continue;
        }
        dispatch_stage(cx, &task, stage);
    }
}

/// Whether somebody else has the integration head in hand.
pub(super) fn integration_busy(cx: &Cx<'_>, except: &TaskId) -> bool {
    let head = &cx.state.head.landing;
    let rebuilding = !head.moved_to.is_empty() || head.restacked.is_some();
    let other = |a: &Attempt| {
        a.task != *except && a.stage >= Stage::Building && (a.effect.is_some() || a.stage > Stage::Building)
    };
    rebuilding || cx.state.attempts.values().any(other)
}

fn dispatch_stage(cx: &mut Cx<'_>, task: &TaskId, stage: Stage) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    let kind = match stage {
        Stage::Preparing => EffectKind::PrepareTree { tree: attempt.tree.clone(), commit: attempt.base.clone() },
        Stage::Setup => EffectKind::RunSetup {
            tree: attempt.tree.clone(),
            commands: setup_of(cx, task),
            timeout_s: cx.policy.evidence_timeout_s,
        },
        Stage::Implementing => return turn(cx, &attempt, Role::Implementer),
        Stage::Verifying => return turn(cx, &attempt, Role::Verifier),
        Stage::Proving => evidence(cx, &attempt, Purpose::Trial, &attempt.trial),
        Stage::Reproving => evidence(cx, &attempt, Purpose::Candidate, &attempt.candidate),
        Stage::Building => EffectKind::BuildCandidate(Box::new(CandidateRequest {
            task: task.clone(),
            attempt: attempt.number,
            head: cx.state.head.head.clone(),
            base: attempt.base.clone(),
            trial: attempt.trial.clone(),
            message: crate::commit_message::commit_message(cx.state, cx.policy, &attempt),
        })),
        Stage::Advancing => {
            EffectKind::AdvanceIntegration { from: cx.state.head.head.clone(), to: attempt.candidate.clone() }
        }
    };
    let id = cx.effect(kind);
    cx.edit_attempt(task, |a| a.effect = Some(id));
}

/// Launch's setup commands, then the task's.
pub(super) fn setup_of(cx: &Cx<'_>, task: &TaskId) -> Vec<Check> {
    let own = &cx.task(task).plan.setup;
    cx.policy.setup.iter().chain(own).cloned().collect()
}

/// Every command that plan and launch name for a task (P1): its own, then the suite.
pub(super) fn checks_of(cx: &Cx<'_>, task: &TaskId) -> Vec<Check> {
    let own = &cx.task(task).plan.verification;
    let mut all: Vec<Check> = Vec::new();
    for check in own.iter().chain(&cx.policy.verify) {
        if !all.contains(check) {
            all.push(check.clone());
        }
    }
    all
}

fn evidence(cx: &Cx<'_>, attempt: &Attempt, purpose: Purpose, commit: &str) -> EffectKind {
    EffectKind::CollectEvidence(Box::new(EvidenceRequest {
        purpose,
        task: Some(attempt.task.clone()),
        attempt: attempt.number,
        commit: commit.into(),
        setup: setup_of(cx, &attempt.task),
        checks: checks_of(cx, &attempt.task),
        timeout_s: cx.policy.evidence_timeout_s,
    }))
}

/// Limits of every turn.
pub(super) fn limits(cx: &Cx<'_>) -> TurnLimits {
    TurnLimits {
        start_s: cx.policy.turn_start_s,
        silence_s: cx.policy.turn_silence_s,
        max_s: cx.policy.turn_max_s,
        tokens: cx.policy.turn_max_tokens,
    }
}

fn turn(cx: &mut Cx<'_>, attempt: &Attempt, role: Role) {
    let repair = !attempt.report_errors.is_empty();
    let ask = match role {
        Role::Verifier => prompt::verifier_prompt(cx.state, cx.policy, attempt),
        Role::Implementer | Role::Planner => prompt::implementer_prompt(cx.state, cx.policy, attempt),
    };
    let text = if repair { prompt::repair_prompt(role, &attempt.report_errors).text } else { ask.text.clone() };
    // A retry of the same stage continues its own session; a new attempt continues the task's last one.
    let task_session = cx.task(&attempt.task).session.clone();
    let session = match role {
        Role::Verifier => attempt.session.clone().filter(|_| repair),
        Role::Implementer | Role::Planner => attempt.session.clone().or(task_session),
    };
    let implementing = role == Role::Implementer;
    let request = TurnRequest {
        turn: 0,
        role,
        kind: if implementing { Kind::Implement } else { Kind::Verify },
        task: Some(attempt.task.clone()),
        attempt: attempt.number,
        tree: implementing.then(|| attempt.tree.clone()),
        commit: if implementing { attempt.base.clone() } else { attempt.trial.clone() },
        base: attempt.base.clone(),
        handover: if repair { ask.text } else { prompt::handover(cx.state, attempt) },
        prompt: text,
        template: ask.template,
        session,
        context: prompt::attempt_context(cx.state, cx.policy, attempt, role),
        repair,
        limits: limits(cx),
    };
    let (turn, id) = start_turn(cx, request);
    let status = if implementing { TaskStatus::InProgress } else { TaskStatus::InReview };
    cx.set_status(&attempt.task, status);
    cx.edit_attempt(&attempt.task, |a| {
        a.effect = Some(id);
        a.turn = turn;
    });
}

/// Numbers a turn, asks for it and writes its rows.
pub(super) fn start_turn(cx: &mut Cx<'_>, mut request: TurnRequest) -> (i64, harness_proto::ids::EffectId) {
    cx.state.head.last_turn += 1;
    cx.state.head.counts.turns += 1;
    let turn = cx.state.head.last_turn;
    request.turn = turn;
    let (role, kind, task, attempt) = (request.role, request.kind, request.task.clone(), request.attempt);
    let (commit, template) = (request.commit.clone(), request.template.clone());
    cx.state.head.last.role = role.to_string();
    cx.state.head.last.task = task.as_ref().map(ToString::to_string).unwrap_or_default();
    let effect = cx.effect(EffectKind::RunTurn(Box::new(request)));
    let mut row = draft("turn", "started", format!("{role} turn {turn} ({kind}) began")).role(role.as_str());
    if let Some(task) = &task {
        row = row.task(task, attempt);
    }
    cx.event(row.commit(&commit));
    cx.touch(Change::TurnStarted(TurnRow { turn, effect, role, kind, task, attempt, commit, template, at: cx.at }));
    (turn, effect)
}

fn begin_attempt(cx: &mut Cx<'_>, id: &TaskId) {
    let number = cx.task(id).attempts + 1;
    let attempt = Attempt {
        task: id.clone(),
        number,
        stage: Stage::Preparing,
        effect: None,
        retry_at: None,
        tree: format!("{id}-a{number}"),
        base: cx.state.head.head.clone(),
        trial: String::new(),
        trial_tree: String::new(),
        changed: Vec::new(),
        summary: String::new(),
        claims: (Vec::new(), Vec::new()),
        evidence: Vec::new(),
        verdict_summary: String::new(),
        candidate: String::new(),
        candidate_tree: String::new(),
        already_applied: false,
        faults: 0,
        lost: 0,
        report_errors: Vec::new(),
        session: None,
        turn: 0,
        outcome: String::new(),
        started_at: cx.at,
    };
    cx.state.head.phase = Phase::Executing;
    cx.state.attempts.insert(id.clone(), attempt);
    cx.touch(Change::Attempt(id.clone()));
    cx.edit_task(id, |t| t.attempts = number);
    cx.set_status(id, TaskStatus::InProgress);
    dispatch_stage(cx, id, Stage::Preparing);
}

/// Nothing runs and nothing is ready: the run is complete, or somebody has to unblock it.
fn nothing_left(cx: &mut Cx<'_>) {
    if cx.state.open_count == 0 && !cx.state.tasks.is_empty() {
        finishing::complete(cx);
        return;
    }
    if cx.policy.on_exhausted == OnExhausted::Block && !cx.state.tasks.is_empty() {
        finishing::fail(cx, "tasks_failed");
        return;
    }
    let reason = if cx.state.tasks.is_empty() { "initial_plan" } else { "planner_left_no_ready_tasks" };
    if reason != "initial_plan" {
        recovery::no_ready_tasks(cx);
    }
    if moving(cx) {
        cx.state.head.planner.pending = reason.into();
        cx.touch(Change::Run);
        planning::dispatch(cx);
    }
}
