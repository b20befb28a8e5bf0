//! What goes wrong: reverts, faults, lost and failed turns, blocked tasks (DESIGN 4, 12).
//!
//! Invariant: environment failures never cost an attempt. Invariant: every repeat is counted and bounded.

use harness_proto::ids::TaskId;
use harness_proto::vocab::{FailureKind, HoldKind, Owner, Role, TaskStatus, Verdict};
use serde_json::json;

use crate::effect::{Effect, EffectKind};
use crate::evidence::EvidenceRecord;
use crate::gate::Blocker;
use crate::input::{Fault, TurnEnded, TurnFailure};
use crate::policy::OnExhausted;
use crate::state::{Feedback, Incident};
use crate::step::Change;

use super::cx::{Cx, draft};
use super::integrating::{close, or_text};
use super::planning::{record_turn, request};
use super::step::Holder;
use super::{implementing, planning};

/// Longest wait for a limit whose end is unknown or absurd, in milliseconds (15 minutes, 8 days).
const LIMIT_UNKNOWN_MS: i64 = 900_000;
const LIMIT_MAX_MS: i64 = 691_200_000;

/// Decides an attempt against the task: work kept, feedback to the next attempt, limits applied.
pub(super) fn revert(cx: &mut Cx<'_>, task: &TaskId, feedback: Feedback, failure: &str) {
    let Some(attempt) = cx.state.attempts.remove(task) else { return };
    let signature = crate::signature::signature_of_text(failure);
    cx.state.head.counts.reverts += 1;
    cx.state.head.last.status = "revert".into();
    cx.state.head.last.verdict = "revert".into();
    cx.edit_task(task, |t| {
        t.last_verdict = Some(Verdict::Revert);
        t.feedback = feedback.clone();
        t.signatures.push(signature.clone());
    });
    let row = cx.task(task);
    let same = row.signatures.iter().rev().take_while(|s| **s == signature).count();
    let looping = cx.policy.loop_limit > 0 && same >= cx.policy.loop_limit as usize;
    let exhausted = row.attempts >= row.attempts_max || looping;
    planning::request_for_proposals(cx);
    let decision = if exhausted { "planner_replan_after_revert" } else { "retry_task" };
    cx.state.head.last.decision = decision.into();
    let summary = or_text(&feedback.summary, || feedback.blockers.first().cloned().unwrap_or_else(|| failure.into()));
    let event = draft("revert", decision, summary.clone()).role("verifier").task(task, attempt.number);
    cx.event(event.commit(&attempt.trial).data(json!({"signature": signature, "blockers": feedback.blockers})));
    let strategy = or_text(&attempt.summary, || format!("Attempt {} for {task}", attempt.number));
    cx.lesson(format!("Reverted task {task} attempt {}", attempt.number), "task", strategy, "revert", summary.clone());
    let keep = Some(attempt.trial.clone()).filter(|c| !c.is_empty());
    close(cx, attempt, "reverted", keep, exhausted);
    if exhausted {
        let timed_out = failure.starts_with("turn:timeout") || failure.starts_with("turn:stalled");
        let why = if looping { format!("the same failure {same} times: {summary}") } else { summary };
        let status = if timed_out { TaskStatus::TimedOut } else { TaskStatus::Failed };
        use_up(cx, task, status, &why);
    } else {
        cx.set_status(task, TaskStatus::Ready);
    }
}

/// A task's attempts are used up (profiles field 48).
fn use_up(cx: &mut Cx<'_>, task: &TaskId, status: TaskStatus, why: &str) {
    cx.edit_task(task, |t| why.clone_into(&mut t.blocked_reason));
    cx.set_status(task, status);
    let attempts = cx.task(task).attempts;
    let strategy = cx.task(task).feedback.summary.clone();
    match cx.policy.on_exhausted {
        OnExhausted::Replan => {
            cx.lesson(
                format!("Replan task {task}"),
                "planner",
                or_text(&strategy, || why.to_owned()),
                "replan",
                format!("Task {task} exhausted {attempts} implementation attempts"),
            );
            request(cx, "planner_replan_after_revert", &format!("{task}: {why}"));
        }
        OnExhausted::Block => block_dependants(cx, task),
        OnExhausted::Pause => {
            let next = format!("harnessctl retry {task} --run {}", cx.state.head.brief.run);
            cx.hold(HoldKind::NeedsHuman, Owner::User, "task_failed", &format!("{task}: {why}"), next);
        }
    }
}

fn block_dependants(cx: &mut Cx<'_>, task: &TaskId) {
    let mut queue = cx.state.dependants.get(task).cloned().unwrap_or_default();
    while let Some(next) = queue.pop() {
        let Some(status) = cx.state.tasks.get(&next).map(|t| t.status) else { continue };
        if matches!(status, TaskStatus::Pending | TaskStatus::Ready) {
            cx.edit_task(&next, |t| t.blocked_reason = format!("{task} failed"));
            cx.set_status(&next, TaskStatus::Blocked);
            cx.state.head.counts.blocked += 1;
            queue.extend(cx.state.dependants.get(&next).cloned().unwrap_or_default());
        }
    }
}

/// The gate overruled whatever was said.
pub(super) fn blocked_by_gate(cx: &mut Cx<'_>, task: &TaskId, blockers: &[Blocker]) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    for blocker in blockers {
        let row = draft("gate", &format!("blocked:{}", blocker.code), blocker.detail.clone());
        cx.event(row.task(task, attempt.number).commit(&attempt.trial));
    }
    let signature = attempt
        .evidence
        .iter()
        .find(|r| !r.signature.is_empty())
        .map_or_else(|| blockers.iter().map(|b| b.code).collect::<Vec<_>>().join(","), |r| r.signature.clone());
    let feedback = Feedback {
        summary: blockers.first().map(Blocker::sentence).unwrap_or_default(),
        blockers: blockers.iter().map(Blocker::sentence).collect(),
        ..Feedback::default()
    };
    revert(cx, task, feedback, &format!("gate:{signature}"));
}

/// The machine failed while evidence was collected: again after a while, then the run waits for the user.
pub(super) fn environment(cx: &mut Cx<'_>, task: &TaskId, failed: &EvidenceRecord) {
    let faults = cx.state.attempts.get(task).map_or(0, |a| a.faults) + 1;
    let delay = cx.backoff_ms(faults);
    let at = cx.at;
    if faults <= cx.policy.fault_retries {
        cx.edit_attempt(task, |a| {
            a.faults = faults;
            a.retry_at = Some(at.plus(delay));
        });
        let text = format!("`{}` failed because of the environment; again in {delay} ms", failed.command);
        cx.event(draft("retry", "environment", text).task(task, 0));
        return;
    }
    implementing::environment_not_ready(cx, failed);
}

/// Blocks a task for the planner, with an open incident (S4-057, S4-058).
pub(super) fn block_task(cx: &mut Cx<'_>, task: &TaskId, incident: Incident, why: &str) {
    let reason = incident.reason.clone();
    let row = draft("recovery", &reason, why.to_owned()).role("verifier");
    cx.event(row.task(task, incident.attempt).commit(&incident.commit));
    cx.incident(incident);
    cx.state.head.last.decision.clone_from(&reason);
    cx.state.head.counts.blocked += 1;
    if let Some(attempt) = cx.state.attempts.remove(task) {
        let keep = Some(attempt.trial.clone()).filter(|c| !c.is_empty());
        close(cx, attempt, &format!("failed:{reason}"), keep, true);
    }
    cx.edit_task(task, |t| why.clone_into(&mut t.blocked_reason));
    cx.set_status(task, TaskStatus::Blocked);
    if cx.policy.on_exhausted == OnExhausted::Block {
        block_dependants(cx, task);
    } else {
        request(cx, &reason, &format!("{task}: {why}"));
    }
}

/// The runtime could not carry an effect out: again after a while, then the run is held (S4-061).
pub(super) fn fault(cx: &mut Cx<'_>, holder: &Holder, effect: &Effect, fault: &Fault) {
    let name = effect.kind.name();
    cx.state.head.last.error.clone_from(&fault.detail);
    let count = match holder {
        Holder::Attempt(task) => cx.state.attempts.get(task).map_or(0, |a| a.faults) + 1,
        Holder::Planner => cx.state.head.planner.faults + 1,
        Holder::Landing => cx.state.head.landing.tries + 1,
        Holder::Baseline | Holder::Nobody => 1,
    };
    let retry = fault.retryable && count <= cx.policy.fault_retries;
    let until = cx.at.plus(cx.backoff_ms(count));
    match holder {
        Holder::Attempt(task) => cx.edit_attempt(task, |a| {
            a.effect = None;
            a.faults = count;
            a.retry_at = retry.then_some(until);
        }),
        Holder::Planner => {
            cx.state.head.planner.effect = None;
            cx.state.head.planner.faults = count;
            cx.state.head.planner.retry_at = retry.then_some(until);
        }
        Holder::Landing => {
            cx.state.head.landing.effect = None;
            cx.state.head.landing.tries = count;
            cx.state.head.landing.retry_at = Some(until);
            cx.state.head.landing.why.clone_from(&fault.code);
            cx.state.head.landing.command.clone_from(&fault.next);
        }
        Holder::Baseline => cx.state.head.baseline.effect = None,
        Holder::Nobody => {}
    }
    let text = format!("{name}: {}", fault.detail);
    if retry || matches!(holder, Holder::Landing | Holder::Nobody) {
        cx.event(draft("retry", &fault.code, text));
        return;
    }
    let next = or_text(&fault.next, || cx.start_command());
    cx.hold(HoldKind::Recovery, Owner::Runtime, &fault.code, &text, next);
}

/// A contradiction inside the runtime; this run stops loudly, the others go on.
pub(super) fn internal(cx: &mut Cx<'_>, what: &str) {
    let next = format!("harnessctl doctor --run {}", cx.state.head.brief.run);
    cx.hold(HoldKind::Recovery, Owner::Runtime, "internal", what, next);
}

/// The runtime was killed while an effect ran whose result nobody knows.
pub(super) fn lost(cx: &mut Cx<'_>, holder: &Holder, effect: &Effect) {
    let EffectKind::RunTurn(turn) = &effect.kind else { return };
    let mut row = draft("turn", "lost", format!("Turn {} was lost", turn.turn)).role(turn.role.as_str());
    if let Some(task) = &turn.task {
        row = row.task(task, turn.attempt);
    }
    cx.event(row);
    let ended = TurnEnded {
        result: Err(TurnFailure {
            kind: FailureKind::Interrupted,
            message: "the runtime was killed during the turn".into(),
            until: None,
            errors: Vec::new(),
        }),
        tree: None,
        plan: None,
        plan_md: None,
        session: None,
        resumed: false,
        usage: Default::default(),
        transcript: String::new(),
        agent: String::new(),
    };
    record_turn(cx, turn.turn, &ended, "lost", None);
    match holder {
        Holder::Attempt(task) => {
            cx.edit_attempt(task, |a| {
                a.effect = None;
                a.lost += 1;
            });
            let lost = cx.state.attempts.get(task).map_or(0, |a| a.lost);
            if lost >= cx.policy.lost_turn_limit {
                let summary = format!("{lost} turns of this attempt were lost with the runtime");
                revert(cx, task, Feedback { summary, ..Feedback::default() }, "turn:lost");
            }
        }
        Holder::Planner => {
            cx.state.head.planner.effect = None;
            cx.state.head.planner.lost += 1;
            if cx.state.head.planner.lost >= cx.policy.lost_turn_limit {
                let detail = format!("{} planner turns in a row were lost", cx.state.head.planner.lost);
                let next = cx.start_command();
                cx.hold(HoldKind::Recovery, Owner::Runtime, "turn_lost", &detail, next);
            }
        }
        Holder::Baseline | Holder::Landing | Holder::Nobody => {}
    }
}

/// A report that breaks its schema or contradicts its turn: one repair prompt, then it is a failed turn.
pub(super) fn invalid_report(cx: &mut Cx<'_>, task: &TaskId, ended: &TurnEnded, errors: Vec<String>) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    if attempt.report_errors.is_empty() {
        record_turn(cx, attempt.turn, ended, "failed:invalid_report", None);
        let row = draft("turn", "failed:invalid_report", errors.join("; "));
        cx.event(row.role(cx.state.head.last.role.clone()).task(task, attempt.number));
        cx.edit_attempt(task, |a| a.report_errors = errors);
        return;
    }
    cx.edit_attempt(task, |a| a.report_errors.clear());
    let role = if attempt.stage == crate::state::Stage::Verifying { Role::Verifier } else { Role::Implementer };
    let failure = TurnFailure {
        kind: FailureKind::InvalidReport,
        message: format!("the report is still invalid: {}", errors.join("; ")),
        until: None,
        errors: Vec::new(),
    };
    turn_failed(cx, task, role, ended, &failure);
}

/// A turn of an attempt ended without a usable report.
pub(super) fn turn_failed(cx: &mut Cx<'_>, task: &TaskId, role: Role, ended: &TurnEnded, failure: &TurnFailure) {
    if failure.kind == FailureKind::InvalidReport && !failure.errors.is_empty() {
        return invalid_report(cx, task, ended, failure.errors.clone());
    }
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    let row = report_failure(cx, attempt.turn, ended, failure).role(role.as_str());
    cx.event(row.task(task, attempt.number));
    if stands_still(cx) || limited(cx, failure) {
        return;
    }
    let given_up = matches!(failure.kind, FailureKind::Refused | FailureKind::Budget);
    let faults = attempt.faults + 1;
    if !given_up && faults <= cx.policy.fault_retries {
        let until = cx.at.plus(cx.backoff_ms(faults));
        cx.edit_attempt(task, |a| {
            a.faults = faults;
            a.retry_at = Some(until);
        });
        cx.event(draft("retry", failure.kind.as_str(), failure.message.clone()).task(task, attempt.number));
        return;
    }
    if role == Role::Implementer {
        let summary = format!("the implementer's turn failed ({}): {}", failure.kind, failure.message);
        let feedback = Feedback { summary, ..Feedback::default() };
        return revert(cx, task, feedback, &format!("turn:{}:{}", failure.kind, failure.message));
    }
    let incident = Incident {
        owner: Owner::Planner,
        reason: "verifier_turn_failed".into(),
        task: Some(task.clone()),
        attempt: attempt.number,
        commit: attempt.trial.clone(),
        details: json!({"kind": failure.kind, "message": failure.message}),
        count: faults,
        at: cx.at,
    };
    block_task(cx, task, incident, &format!("the verifier's turn failed ({}): {}", failure.kind, failure.message));
}

/// While a run stops, an interrupted turn is no failure: `start` repeats it.
fn stands_still(cx: &Cx<'_>) -> bool {
    cx.state.head.stopping || cx.state.head.cancelling
}

fn report_failure(cx: &mut Cx<'_>, turn: i64, ended: &TurnEnded, failure: &TurnFailure) -> super::cx::Draft {
    let outcome = format!("failed:{}", failure.kind);
    record_turn(cx, turn, ended, &outcome, None);
    cx.state.head.last.error.clone_from(&failure.message);
    draft("turn", &outcome, failure.message.clone())
}

/// A planner turn ended without a usable report.
pub(super) fn planner_failed(cx: &mut Cx<'_>, ended: &TurnEnded, failure: &TurnFailure) {
    let turn = cx.state.head.planner.turn;
    let row = report_failure(cx, turn, ended, failure).role("planner");
    cx.event(row);
    if stands_still(cx) || limited(cx, failure) {
        return;
    }
    if failure.kind == FailureKind::InvalidReport && cx.state.head.planner.errors.is_empty() {
        cx.state.head.planner.errors =
            if failure.errors.is_empty() { vec![failure.message.clone()] } else { failure.errors.clone() };
        return;
    }
    cx.state.head.planner.errors.clear();
    let next = cx.start_command();
    if matches!(failure.kind, FailureKind::Refused | FailureKind::Budget) {
        cx.hold(HoldKind::NeedsHuman, Owner::User, "agent_refused", &failure.message, next);
        return;
    }
    cx.state.head.planner.faults += 1;
    let faults = cx.state.head.planner.faults;
    if faults <= cx.policy.fault_retries {
        let until = cx.at.plus(cx.backoff_ms(faults));
        cx.state.head.planner.retry_at = Some(until);
        cx.event(draft("retry", failure.kind.as_str(), failure.message.clone()));
        return;
    }
    let detail = format!("the planner's turn failed {faults} times ({}): {}", failure.kind, failure.message);
    cx.hold(HoldKind::Recovery, Owner::Runtime, "planner_turn_failed", &detail, next);
}

/// Limits and logins are nobody's fault: the run waits, no attempt is spent (DESIGN 4, 12).
fn limited(cx: &mut Cx<'_>, failure: &TurnFailure) -> bool {
    let next = cx.start_command();
    match failure.kind {
        FailureKind::UsageLimited | FailureKind::RateLimited => {
            let now = cx.at;
            let unknown = if failure.kind == FailureKind::UsageLimited { LIMIT_UNKNOWN_MS } else { 60_000 };
            let until = failure.until.filter(|u| u.0 > now.0).unwrap_or_else(|| now.plus(unknown));
            let until = until.min(now.plus(LIMIT_MAX_MS));
            let reason = if failure.kind == FailureKind::UsageLimited { "usage_limit" } else { "rate_limit" };
            cx.hold_until(HoldKind::Parked, Owner::Runtime, reason, &failure.message, next, Some(until));
            true
        }
        FailureKind::Auth => {
            let next = format!("log the agent in (for Codex: codex login), then {next}");
            cx.hold(HoldKind::NeedsHuman, Owner::User, "auth_required", &failure.message, next);
            true
        }
        FailureKind::Timeout
        | FailureKind::Stalled
        | FailureKind::Crashed
        | FailureKind::Protocol
        | FailureKind::InvalidReport
        | FailureKind::NoReport
        | FailureKind::Interrupted
        | FailureKind::Refused
        | FailureKind::Budget => false,
    }
}

/// The planner left nothing to do although tasks are open (S4-060); bounded by the planner's progress.
pub(super) fn no_ready_tasks(cx: &mut Cx<'_>) {
    let reason = "planner_left_no_ready_tasks";
    cx.state.head.last.decision = reason.into();
    if cx.state.head.planner.last_topology.is_empty() {
        return;
    }
    cx.event(draft("recovery", reason, "Tasks are open, none is ready.").role("planner"));
    let incident = Incident {
        owner: Owner::Planner,
        reason: reason.into(),
        task: None,
        attempt: 0,
        commit: String::new(),
        details: json!({}),
        count: cx.state.head.planner.idle,
        at: cx.at,
    };
    cx.incident(incident);
    cx.touch(Change::Run);
}
