//! What a person or a client asks of a run (DESIGN 4, verbs).

use harness_proto::ids::TaskId;
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, TaskStatus};

use crate::input::{Command, StartFacts};
use crate::state::Feedback;
use crate::step::{Cancel, Change};

use super::cx::{Cx, draft};
use super::{integrating, landing, planning};

pub(super) fn apply(cx: &mut Cx<'_>, command: &Command) {
    match command {
        Command::Start(facts) => start(cx, facts),
        Command::Pause => pause(cx),
        Command::Stop { now } => stop(cx, *now),
        Command::Retry { task, note } => retry(cx, task, note),
        Command::Skip { task, reason } => leave_out(cx, task, TaskStatus::Skipped, reason),
        Command::CancelTask { task } => leave_out(cx, task, TaskStatus::Cancelled, "cancelled by the user"),
        Command::Cancel => cancel(cx),
        Command::Land => land(cx),
    }
}

fn control(cx: &mut Cx<'_>, verb: &str, text: impl Into<String>) {
    cx.event(draft("control", verb, text).role("user"));
}

fn start(cx: &mut Cx<'_>, facts: &StartFacts) {
    let lifecycle = cx.state.head.lifecycle;
    match lifecycle {
        Lifecycle::Cancelled => return,
        Lifecycle::Completed => {
            release_hold(cx);
            return land(cx);
        }
        Lifecycle::Queued => return,
        Lifecycle::Running if cx.state.head.hold.is_none() && !cx.state.head.stopping => return,
        Lifecycle::Registered | Lifecycle::Running | Lifecycle::Stopped | Lifecycle::Failed => {}
    }
    control(cx, "start", "Start was asked for.");
    release_hold(cx);
    cx.state.head.terminal_reason.clear();
    cx.state.head.last.error.clear();
    cx.state.head.agent.clone_from(&facts.agent);
    cx.state.head.walls.clone_from(&facts.walls);
    if cx.state.head.base.is_empty() {
        first_start(cx, facts);
    }
    if lifecycle != Lifecycle::Running {
        cx.state.head.lifecycle = Lifecycle::Queued;
        cx.event(draft("run", "queued", "Waiting for a driver."));
    }
    cx.state.head.landing.retry_at = None;
}

fn first_start(cx: &mut Cx<'_>, facts: &StartFacts) {
    let head = &mut cx.state.head;
    head.started_at = Some(cx.at);
    head.target_branch.clone_from(&facts.target_branch);
    head.base.clone_from(&facts.target_tip);
    head.head.clone_from(&facts.target_tip);
    head.head_tree.clone_from(&facts.target_tree);
    head.landed.clone_from(&facts.target_tip);
    planning::found(cx, &facts.plan);
}

/// Ends a hold by the user's word; budgets are granted again, counters of faults begin anew.
fn release_hold(cx: &mut Cx<'_>) {
    cx.state.head.stopping = false;
    let Some(hold) = cx.state.head.hold.take() else { return };
    if hold.reason == "budget_exhausted" {
        cx.state.head.grants += 1;
    }
    let planner = &mut cx.state.head.planner;
    planner.idle = 0;
    planner.faults = 0;
    planner.lost = 0;
    planner.retry_at = None;
    planner.errors.clear();
    let waiting: Vec<TaskId> = cx.state.attempts.keys().cloned().collect();
    for task in waiting {
        cx.edit_attempt(&task, |a| {
            a.retry_at = None;
            a.faults = 0;
        });
    }
    cx.event(draft("run", "resumed", format!("The hold `{}` was ended by the user.", hold.reason)));
}

fn pause(cx: &mut Cx<'_>) {
    if !matches!(cx.state.head.lifecycle, Lifecycle::Running | Lifecycle::Queued) {
        return;
    }
    control(cx, "pause", "Pause was asked for; live turns end.");
    let next = cx.start_command();
    cx.hold(HoldKind::Paused, Owner::User, "user_paused", "paused by the user", next);
}

fn stop(cx: &mut Cx<'_>, now: bool) {
    match cx.state.head.lifecycle {
        Lifecycle::Running => {
            if !cx.state.head.stopping {
                control(cx, "stop", "Stop was asked for.");
            }
            cx.state.head.stopping = true;
            cx.touch(Change::Run);
            cx.cancel_all(now);
        }
        Lifecycle::Queued | Lifecycle::Registered => {
            control(cx, "stop", "Stop was asked for.");
            cx.state.head.lifecycle = Lifecycle::Stopped;
            cx.state.head.terminal_reason = "user_stopped".into();
            cx.event(draft("run", "stopped", "Stopped by the user before it ran."));
        }
        Lifecycle::Completed if !landing::settled(cx) || cx.state.head.landing.retry_at.is_some() => {
            cx.state.head.landing.retry_at = None;
            cx.touch(Change::Run);
        }
        Lifecycle::Stopped | Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled => {}
    }
}

fn cancel(cx: &mut Cx<'_>) {
    if matches!(cx.state.head.lifecycle, Lifecycle::Cancelled | Lifecycle::Completed) || cx.state.head.cancelling {
        return;
    }
    control(cx, "cancel", "Cancel was asked for.");
    cx.state.head.cancelling = true;
    cx.cancel_all(true);
}

fn retry(cx: &mut Cx<'_>, task: &TaskId, note: &str) {
    let Some(status) = cx.state.tasks.get(task).map(|t| t.status) else { return };
    if !matches!(status, TaskStatus::Failed | TaskStatus::Blocked | TaskStatus::TimedOut) {
        return;
    }
    control(cx, "retry", format!("{task} gets {} attempts more.", cx.policy.max_attempts));
    planning::requeue(cx, task);
    if !note.is_empty() {
        cx.edit_task(task, |t| t.feedback.summary = format!("{}\n{note}", t.feedback.summary).trim().to_owned());
    }
    let stands =
        cx.state.head.hold.as_ref().is_some_and(|h| {
            matches!(h.kind, HoldKind::NeedsHuman | HoldKind::Recovery) && h.reason != "budget_exhausted"
        });
    if stands {
        release_hold(cx);
    }
    // The user answered what the planner was to be asked.
    if cx.state.head.planner.effect.is_none() {
        cx.state.head.planner.pending.clear();
    }
}

/// Leaves a task out; an open attempt of it is interrupted and its work kept.
fn leave_out(cx: &mut Cx<'_>, task: &TaskId, status: TaskStatus, reason: &str) {
    let Some(before) = cx.state.tasks.get(task).map(|t| t.status) else { return };
    if before.is_closed() {
        return;
    }
    let verb = if status == TaskStatus::Skipped { "skip" } else { "cancel_task" };
    cx.event(draft("control", verb, format!("{task}: {reason}")).role("user").task(task, 0));
    if let Some(attempt) = cx.state.attempts.remove(task) {
        if let Some(effect) = attempt.effect {
            cx.out.cancel.push(Cancel { effect, now: true });
        }
        let keep = Some(attempt.trial.clone()).filter(|c| !c.is_empty());
        integrating::close(cx, attempt, "cancelled", keep, true);
    }
    cx.edit_task(task, |t| {
        reason.clone_into(&mut t.blocked_reason);
        t.feedback = Feedback::default();
    });
    cx.set_status(task, status);
}

/// A landing by the user's word, also for `land: manual` and for a completed run.
fn land(cx: &mut Cx<'_>) {
    if cx.state.head.head == cx.state.head.landed {
        return;
    }
    control(cx, "land", "A landing was asked for.");
    cx.state.head.landing.requested = true;
    cx.state.head.landing.retry_at = None;
    landing::kick(cx);
}
