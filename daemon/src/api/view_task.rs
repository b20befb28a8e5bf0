//! A task as people and programs read it (ux.md section 2).

use harness_core::state::{Attempt, RunState, Stage, Task};
use harness_proto::api::view::{HoldView, TaskView};
use harness_proto::event::timestamp;
use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::{HoldKind, Owner, TaskStatus};

use super::view::ViewFacts;

/// The view of a task.
#[must_use]
pub fn task_view(state: &RunState, task: &Task, facts: &ViewFacts<'_>) -> TaskView {
    let id = &task.plan.id;
    let attempt = state.attempts.get(id);
    let (word, note) = task_word(state, task, attempt, facts.now);
    let role = attempt.and_then(|a| match a.stage {
        Stage::Implementing => Some("implementer"),
        Stage::Verifying => Some("verifier"),
        Stage::Preparing | Stage::Setup | Stage::Proving | Stage::Building | Stage::Reproving | Stage::Advancing => {
            None
        }
    });
    TaskView {
        id: id.to_string(),
        title: task.plan.title.clone(),
        status: task.status.to_string(),
        state: word.into(),
        attempt: attempt.map_or(task.attempts, |a| a.number),
        attempts_max: task.attempts_max,
        priority: task.plan.priority,
        dependencies: task.plan.dependencies.iter().map(ToString::to_string).collect(),
        hold: task_hold(state, task, attempt, facts.now),
        note,
        agent: role.and_then(|role| facts.agents.get(role)).cloned().unwrap_or_default(),
        since: facts
            .since
            .get(id)
            .copied()
            .or_else(|| attempt.map(|a| a.started_at))
            .map(timestamp)
            .unwrap_or_default(),
        integrated_commit: task.integrated_commit.clone(),
        unproven: task.unproven,
    }
}

/// People's word for the task and a few words about it.
fn task_word(state: &RunState, task: &Task, attempt: Option<&Attempt>, now: Millis) -> (&'static str, String) {
    if let Some(attempt) = attempt {
        if let Some(at) = attempt.retry_at.filter(|at| *at > now) {
            return ("parked", format!("tried again at {}", timestamp(at)));
        }
        let word = match attempt.stage {
            Stage::Preparing | Stage::Setup | Stage::Implementing => "implementing",
            Stage::Proving | Stage::Verifying => "verifying",
            Stage::Building | Stage::Reproving | Stage::Advancing => "integrating",
        };
        return (word, stage_note(attempt.stage).to_owned());
    }
    match task.status {
        TaskStatus::Pending => {
            let open = |id: &&TaskId| !state.tasks.get(*id).is_some_and(|t| t.status.satisfies_dependants());
            let ids: Vec<&str> = task.plan.dependencies.iter().filter(open).map(TaskId::as_str).collect();
            ("waiting", format!("waits for {}", ids.join(", ")))
        }
        TaskStatus::Ready if task.attempts > 0 => ("ready", task.feedback.summary.clone()),
        TaskStatus::Ready => ("ready", String::new()),
        // Without an open attempt it is between two steps.
        TaskStatus::InProgress => ("implementing", String::new()),
        TaskStatus::InReview => ("verifying", String::new()),
        TaskStatus::Done => {
            ("accepted", if task.unproven { "accepted without evidence".into() } else { String::new() })
        }
        TaskStatus::Blocked => ("blocked", task.blocked_reason.clone()),
        TaskStatus::Failed | TaskStatus::TimedOut => ("refused", task.blocked_reason.clone()),
        TaskStatus::Skipped => ("skipped", task.blocked_reason.clone()),
        TaskStatus::Superseded => {
            ("superseded", task.resolved_by.as_ref().map(|id| format!("by {id}")).unwrap_or_default())
        }
        TaskStatus::Cancelled => ("cancelled", task.blocked_reason.clone()),
    }
}

const fn stage_note(stage: Stage) -> &'static str {
    match stage {
        Stage::Preparing => "its tree is being made",
        Stage::Setup => "setup runs",
        Stage::Implementing | Stage::Verifying => "",
        Stage::Proving => "its commands run",
        Stage::Building => "the candidate is built",
        Stage::Reproving => "its commands run on the candidate",
        Stage::Advancing => "the head is moved",
    }
}

/// Why a task does not move now, with owner and next command (P5).
fn task_hold(state: &RunState, task: &Task, attempt: Option<&Attempt>, now: Millis) -> Option<HoldView> {
    if let Some(at) = attempt.and_then(|a| a.retry_at).filter(|at| *at > now) {
        return Some(HoldView {
            kind: HoldKind::Parked.to_string(),
            owner: Owner::Runtime.to_string(),
            reason: "retry_later".into(),
            detail: state.head.last.error.clone(),
            until: timestamp(at),
            ..HoldView::default()
        });
    }
    let stuck = matches!(task.status, TaskStatus::Blocked | TaskStatus::Failed | TaskStatus::TimedOut);
    if attempt.is_some() || !stuck {
        return None;
    }
    // While the planner has work to do, it comes first; else only a person can put the task back.
    let planner = !state.head.planner.pending.is_empty() || state.head.planner.effect.is_some();
    Some(HoldView {
        kind: if planner { HoldKind::Recovery.to_string() } else { HoldKind::NeedsHuman.to_string() },
        owner: if planner { Owner::Planner.to_string() } else { Owner::User.to_string() },
        reason: task.status.to_string(),
        detail: task.blocked_reason.clone(),
        next: format!("harnessctl retry {} --run {}", task.plan.id, state.head.brief.run),
        ..HoldView::default()
    })
}
