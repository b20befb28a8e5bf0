//! Reverted attempts, used-up tasks and blocked tasks.

use harness_proto::ids::TaskId;
use harness_proto::vocab::{HoldKind, Owner, TaskStatus, Verdict};
use serde_json::json;

use crate::gate::Blocker;
use crate::policy::OnExhausted;
use crate::state::{Feedback, Incident};
use crate::supervisor::cx::{Cx, draft};
use crate::supervisor::integrating::{close, or_text};
use crate::supervisor::planning::{self, request};

/// Decides an attempt against the task: work kept, feedback to the next attempt, limits applied.
pub(in crate::supervisor) fn revert(cx: &mut Cx<'_>, task: &TaskId, feedback: Feedback, failure: &str) {
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
pub(in crate::supervisor) fn blocked_by_gate(cx: &mut Cx<'_>, task: &TaskId, blockers: &[Blocker]) {
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

/// Blocks a task for the planner, with an open incident (S4-057, S4-058).
pub(in crate::supervisor) fn block_task(cx: &mut Cx<'_>, task: &TaskId, incident: Incident, why: &str) {
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
