//! What the machine or the runtime could not do: waits, retry budgets, holds.

use harness_proto::ids::TaskId;
use harness_proto::vocab::{HoldKind, Owner};
use serde_json::json;

use crate::effect::Effect;
use crate::evidence::EvidenceRecord;
use crate::input::Fault;
use crate::state::Incident;
use crate::step::Change;
use crate::supervisor::cx::{Cx, draft};
use crate::supervisor::implementing;
use crate::supervisor::integrating::or_text;
use crate::supervisor::step::Holder;

/// The machine failed while evidence was collected: again after a while, then the run waits for the user.
pub(in crate::supervisor) fn environment(cx: &mut Cx<'_>, task: &TaskId, failed: &EvidenceRecord) {
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

/// The runtime could not carry an effect out: again after a while, then the run is held (S4-061).
pub(in crate::supervisor) fn fault(cx: &mut Cx<'_>, holder: &Holder, effect: &Effect, fault: &Fault) {
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
            // A landing is tried again for as long as the run lives: never faster than one that is pending.
            cx.state.head.landing.retry_at = Some(cx.at.plus(super::super::landing::retry_delay(count)));
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
pub(in crate::supervisor) fn internal(cx: &mut Cx<'_>, what: &str) {
    let next = format!("harnessctl doctor --run {}", cx.state.head.brief.run);
    cx.hold(HoldKind::Recovery, Owner::Runtime, "internal", what, next);
}

/// The planner left nothing to do although tasks are open (S4-060); bounded by the planner's progress.
pub(in crate::supervisor) fn no_ready_tasks(cx: &mut Cx<'_>) {
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
