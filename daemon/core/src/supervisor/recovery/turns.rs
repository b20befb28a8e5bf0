//! Turns that ended without a usable report, were lost, or met a limit.

use harness_proto::ids::TaskId;
use harness_proto::vocab::{FailureKind, HoldKind, Owner, Role};
use serde_json::json;

use super::{block_task, revert};
use crate::effect::{Effect, EffectKind};
use crate::input::{TurnEnded, TurnFailure};
use crate::state::{Feedback, Incident};
use crate::supervisor::cx::{Cx, Draft, draft};
use crate::supervisor::planning::record_turn;
use crate::supervisor::step::Holder;

/// Longest wait for a limit whose end is unknown or absurd, in milliseconds (15 minutes, 8 days).
const LIMIT_UNKNOWN_MS: i64 = 900_000;
const LIMIT_MAX_MS: i64 = 691_200_000;

/// The runtime was killed while an effect ran whose result nobody knows.
pub(in crate::supervisor) fn lost(cx: &mut Cx<'_>, holder: &Holder, effect: &Effect) {
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
pub(in crate::supervisor) fn invalid_report(cx: &mut Cx<'_>, task: &TaskId, ended: &TurnEnded, errors: Vec<String>) {
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
pub(in crate::supervisor) fn turn_failed(
    cx: &mut Cx<'_>,
    task: &TaskId,
    role: Role,
    ended: &TurnEnded,
    failure: &TurnFailure,
) {
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

fn report_failure(cx: &mut Cx<'_>, turn: i64, ended: &TurnEnded, failure: &TurnFailure) -> Draft {
    let outcome = format!("failed:{}", failure.kind);
    record_turn(cx, turn, ended, &outcome, None);
    cx.state.head.last.error.clone_from(&failure.message);
    draft("turn", &outcome, failure.message.clone())
}

/// A planner turn ended without a usable report.
pub(in crate::supervisor) fn planner_failed(cx: &mut Cx<'_>, ended: &TurnEnded, failure: &TurnFailure) {
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
