//! How a run ends or stands still: completion, failure, and the end of `stop` and `cancel`.

use harness_proto::vocab::{Lifecycle, TaskStatus};

use crate::effect::EffectKind;
use crate::input::Fault;

use super::cx::{Cx, draft};
use super::{integrating, landing};

/// Every task is closed. Waits for a landing in flight, never for a pending one (ux 10).
pub(super) fn complete(cx: &mut Cx<'_>) {
    // A pending one has its time to be tried again; asked for at once it would be in flight for ever.
    if cx.state.head.landing.retry_at.is_none() {
        landing::kick(cx);
    }
    if !landing::settled(cx) {
        return;
    }
    let (accepts, reverts) = (cx.state.head.counts.accepts, cx.state.head.counts.reverts);
    cx.state.head.lifecycle = Lifecycle::Completed;
    cx.state.head.terminal_reason = "all_tasks_done".into();
    cx.close_incident();
    let goal = cx.state.head.brief.goal.clone();
    let summary = format!("Accepted {accepts} tasks and reverted {reverts} trial commits.");
    cx.lesson(
        format!("Run summary: {goal}"),
        "summary",
        "Runtime completion summary".into(),
        "summary",
        summary.clone(),
    );
    cx.event(draft("run", "completed", summary));
    cx.effect(EffectKind::Finish);
}

/// Nothing more can be done and the policy does not ask a planner.
pub(super) fn fail(cx: &mut Cx<'_>, reason: &str) {
    cx.state.head.lifecycle = Lifecycle::Failed;
    cx.state.head.terminal_reason = reason.into();
    let stuck: Vec<String> = cx
        .state
        .tasks
        .values()
        .filter(|t| !t.status.is_closed())
        .take(20)
        .map(|t| format!("{} ({})", t.plan.id, t.status))
        .collect();
    cx.event(draft("run", "failed", format!("{reason}: {}", stuck.join(", "))));
    cx.effect(EffectKind::Finish);
}

/// The run cannot be driven at all; `start` tries again once the cause is gone.
pub(super) fn unavailable(cx: &mut Cx<'_>, fault: &Fault) {
    if !matches!(cx.state.head.lifecycle, Lifecycle::Queued | Lifecycle::Running) {
        return;
    }
    cx.state.head.lifecycle = Lifecycle::Failed;
    cx.state.head.terminal_reason.clone_from(&fault.code);
    cx.state.head.last.error.clone_from(&fault.detail);
    cx.event(draft("run", "failed", format!("{}: {}", fault.code, fault.detail)));
}

/// Ends a stop or a cancel once nothing of the run is in flight.
pub(super) fn settle(cx: &mut Cx<'_>) {
    let (stopping, cancelling) = (cx.state.head.stopping, cx.state.head.cancelling);
    if !(stopping || cancelling) || !cx.state.pending.is_empty() {
        return;
    }
    if cancelling {
        return cancel(cx);
    }
    cx.state.head.stopping = false;
    cx.state.head.lifecycle = Lifecycle::Stopped;
    cx.state.head.terminal_reason = "user_stopped".into();
    cx.event(draft("run", "stopped", "Stopped by the user; the work is kept."));
}

fn cancel(cx: &mut Cx<'_>) {
    cx.state.head.cancelling = false;
    cx.state.head.stopping = false;
    cx.state.head.lifecycle = Lifecycle::Cancelled;
    cx.state.head.terminal_reason = "user_cancelled".into();
    cx.state.head.hold = None;
    let open: Vec<_> = cx.state.attempts.keys().cloned().collect();
    for task in open {
        if let Some(attempt) = cx.state.attempts.remove(&task) {
            let keep = Some(attempt.trial.clone()).filter(|c| !c.is_empty());
            integrating::close(cx, attempt, "cancelled", keep, true);
            cx.set_status(&task, TaskStatus::Cancelled);
        }
    }
    cx.event(draft("run", "cancelled", "Cancelled by the user; kept work stays under refs/harness."));
    cx.effect(EffectKind::Finish);
}
