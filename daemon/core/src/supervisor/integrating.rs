//! From an accepted trial commit to the moved integration head.

use harness_proto::ids::TaskId;
use harness_proto::vocab::{HoldKind, Owner, TaskStatus, Verdict};
use serde_json::{Value, json};

use crate::effect::{EffectKind, Purpose};
use crate::evidence::CommandRun;
use crate::input::CandidateOutcome;
use crate::state::{Attempt, Feedback, Incident, Stage};
use crate::step::Change;

use super::cx::{Cx, draft};
use super::verifying::{Proof, judge, record_runs};
use super::{landing, planning, recovery};

pub(super) fn candidate(cx: &mut Cx<'_>, task: &TaskId, outcome: &CandidateOutcome) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| a.effect = None);
    let row = |decision: &str, text: String| draft("candidate", decision, text).task(task, attempt.number);
    match outcome {
        CandidateOutcome::Built { commit, tree } => {
            cx.event(row("built", "Built on the integration head.".into()).commit(commit));
            cx.edit_attempt(task, |a| {
                a.candidate.clone_from(commit);
                a.candidate_tree.clone_from(tree);
            });
            prove_or_advance(cx, &attempt, tree);
        }
        CandidateOutcome::AlreadyApplied => {
            let (head, tree) = (cx.state.head.head.clone(), cx.state.head.head_tree.clone());
            cx.event(row("already_applied", "The head already has the change.".into()).commit(&head));
            cx.edit_attempt(task, |a| {
                a.candidate.clone_from(&head);
                a.candidate_tree.clone_from(&tree);
                a.already_applied = true;
            });
            prove_or_advance(cx, &attempt, &tree);
        }
        CandidateOutcome::NoChange => {
            cx.event(row("no_change", "The attempt changes nothing.".into()).commit(&attempt.trial));
            let feedback = Feedback { summary: "The attempt changes nothing.".into(), ..Feedback::default() };
            recovery::revert(cx, task, feedback, "no_change");
        }
        CandidateOutcome::Conflicted { paths, submodule } => {
            let text = format!("Conflicts with integrated work in {}", paths.join(", "));
            cx.event(row("conflict", text.clone()).commit(&attempt.trial).data(json!({"paths": paths})));
            if *submodule {
                let next = cx.start_command();
                cx.hold(HoldKind::NeedsHuman, Owner::User, "submodule_conflict", &text, next);
                return;
            }
            conflict(cx, &attempt, paths, &text);
        }
    }
}

/// Evidence counts for a tree: the same tree needs no second run (P1).
fn prove_or_advance(cx: &mut Cx<'_>, attempt: &Attempt, tree: &str) {
    let same = attempt.trial_tree == tree;
    cx.stage(&attempt.task, if same { Stage::Advancing } else { Stage::Reproving });
    let nothing_to_run = super::pump::checks_of(cx, &attempt.task).is_empty();
    if !same && nothing_to_run {
        cx.stage(&attempt.task, Stage::Advancing);
    }
    skip_advance_when_applied(cx, &attempt.task);
}

/// An `already_applied` candidate is the head: there is nothing to move.
fn skip_advance_when_applied(cx: &mut Cx<'_>, task: &TaskId) {
    let applied = cx.state.attempts.get(task).is_some_and(|a| a.already_applied && a.stage == Stage::Advancing);
    if applied {
        accept(cx, task);
    }
}

pub(super) fn candidate_proved(cx: &mut Cx<'_>, task: &TaskId, tree: &str, setup: &[CommandRun], runs: &[CommandRun]) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| a.effect = None);
    let records = record_runs(cx, Purpose::Candidate, Some(&attempt), &attempt.candidate, tree, (setup, runs));
    cx.edit_attempt(task, |a| a.evidence.clone_from(&records));
    match judge(cx, task, &attempt.candidate_tree, &records) {
        Proof::Passed => {
            cx.stage(task, Stage::Advancing);
            skip_advance_when_applied(cx, task);
        }
        Proof::Environment(failed) => recovery::environment(cx, task, &failed),
        Proof::Failed(blockers) => recovery::blocked_by_gate(cx, task, &blockers),
    }
}

pub(super) fn advanced(cx: &mut Cx<'_>, task: &TaskId, to: &str, head: &str, moved: bool) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| a.effect = None);
    if !moved && head != to {
        let detail = format!("the integration head is {head}, expected was {}", cx.state.head.head);
        let next = format!("harnessctl doctor --run {}", cx.state.head.brief.run);
        cx.hold(HoldKind::Recovery, Owner::Runtime, "integration_head_moved", &detail, next);
        return;
    }
    to.clone_into(&mut cx.state.head.head);
    cx.state.head.head_tree.clone_from(&attempt.candidate_tree);
    cx.state.head.unlanded.push(to.to_owned());
    let row = draft("integrated", "advanced", "The integration head moved.").task(task, attempt.number);
    cx.event(row.commit(to));
    accept(cx, task);
}

/// The task is proven and on the integration head.
fn accept(cx: &mut Cx<'_>, task: &TaskId) {
    let Some(attempt) = cx.state.attempts.remove(task) else { return };
    let unproven = attempt.evidence.is_empty();
    cx.state.head.counts.accepts += 1;
    cx.state.head.last.status = "accept".into();
    cx.state.head.last.accepted_commit.clone_from(&attempt.candidate);
    cx.edit_task(task, |t| {
        t.integrated_commit.clone_from(&attempt.candidate);
        t.last_verdict = Some(Verdict::Accept);
        t.blocked_reason.clear();
        t.integration_conflict = Value::Null;
        t.feedback = Feedback::default();
        t.session = None;
        t.unproven = unproven;
        t.requeues = 0;
    });
    cx.set_status(task, TaskStatus::Done);
    resolve_repaired(cx, task, &attempt.candidate);
    planning::request_for_proposals(cx);
    let decision = if cx.state.open_count == 0 { "all_tasks_done" } else { "continue_after_accept" };
    cx.state.head.last.decision = decision.into();
    let row = draft("accept", decision, attempt.verdict_summary.clone()).role("verifier");
    cx.event(row.task(task, attempt.number).commit(&attempt.candidate));
    cx.lesson(
        format!("Accepted task {task}"),
        "task",
        or_text(&attempt.summary, || format!("Completed {task}")),
        "accept",
        or_text(&attempt.verdict_summary, || "Accepted.".into()),
    );
    close(cx, attempt, "accepted", None, true);
    landing::kick(cx);
}

/// Closes what a repair task was made for, through chains of repairs of repairs (S4-059, weaknesses 22).
fn resolve_repaired(cx: &mut Cx<'_>, repair: &TaskId, commit: &str) {
    let mut current = repair.clone();
    let mut seen = vec![current.clone()];
    while let Some(target) = cx.state.tasks.get(&current).and_then(|t| t.plan.repair_target.clone()) {
        let open = cx.state.tasks.get(&target).is_some_and(|t| !t.status.is_closed());
        if !open || seen.contains(&target) || cx.state.attempts.contains_key(&target) {
            return;
        }
        cx.edit_task(&target, |t| {
            t.resolved_by = Some(repair.clone());
            t.integrated_commit = commit.into();
            t.last_verdict = Some(Verdict::Accept);
            t.blocked_reason.clear();
            t.integration_conflict = Value::Null;
        });
        cx.set_status(&target, TaskStatus::Done);
        cx.event(
            draft("incident", "closed", format!("{target} is resolved by {repair}")).task(&target, 0).commit(commit),
        );
        if cx.state.head.incident.as_ref().is_some_and(|i| i.task.as_ref() == Some(&target)) {
            cx.close_incident();
        }
        seen.push(target.clone());
        current = target;
    }
}

fn conflict(cx: &mut Cx<'_>, attempt: &Attempt, paths: &[String], text: &str) {
    let details = json!({
        "attempt": attempt.number, "commit": attempt.trial, "outcome": "conflict", "returncode": 1,
        "detail": text, "paths": paths, "base_commit": attempt.base,
        "branch_name": kept_name(attempt), "worktree_path": attempt.tree,
    });
    cx.edit_task(&attempt.task, |t| {
        t.integration_conflict = details.clone();
        t.last_verdict = Some(Verdict::Accept);
    });
    let incident = Incident {
        owner: Owner::Planner,
        reason: "integration_conflict".into(),
        task: Some(attempt.task.clone()),
        attempt: attempt.number,
        commit: attempt.trial.clone(),
        details,
        count: 0,
        at: cx.at,
    };
    recovery::block_task(cx, &attempt.task, incident, "Accepted task could not be integrated (integration_conflict).");
}

/// Name of an attempt's kept commit under `refs/harness/<run>/`.
pub(super) fn kept_name(attempt: &Attempt) -> String {
    format!("attempts/{}/{}", attempt.task, attempt.number)
}

/// Writes an attempt's last row and lets its tree go.
pub(super) fn close(cx: &mut Cx<'_>, mut attempt: Attempt, outcome: &str, keep: Option<String>, close_session: bool) {
    attempt.outcome = outcome.into();
    attempt.effect = None;
    attempt.retry_at = None;
    let keep = keep.map(|commit| (kept_name(&attempt), commit));
    cx.effect(EffectKind::RemoveTree { tree: attempt.tree.clone(), keep, close_session });
    cx.touch(Change::AttemptClosed(Box::new(attempt)));
}

pub(super) fn or_text(text: &str, other: impl FnOnce() -> String) -> String {
    if text.trim().is_empty() { other() } else { text.to_owned() }
}
