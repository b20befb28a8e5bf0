//! From a prepared tree to a trial commit.

use harness_proto::ids::TaskId;
use harness_proto::report::Report;
use harness_proto::vocab::{HoldKind, Owner, Role, TaskStatus};

use crate::effect::Purpose;
use crate::evidence::{CommandRun, RecordContext, record};
use crate::input::TurnEnded;
use crate::output::head;
use crate::report_check::check_implementer;
use crate::state::Stage;
use crate::step::Change;

use super::cx::{Cx, WORDS_MAX, draft};
use super::{planning, pump, recovery};

pub(super) fn tree_prepared(cx: &mut Cx<'_>, task: &TaskId) {
    let stage = if pump::setup_of(cx, task).is_empty() { Stage::Implementing } else { Stage::Setup };
    cx.stage(task, stage);
}

pub(super) fn setup_done(cx: &mut Cx<'_>, task: &TaskId, runs: &[CommandRun]) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    let context = |_: &CommandRun| RecordContext {
        purpose: Purpose::Trial,
        setup: true,
        task: Some(task.clone()),
        attempt: attempt.number,
        commit: attempt.base.clone(),
        tree: String::new(),
        at: cx.at,
    };
    let records: Vec<_> = runs.iter().map(|run| record(run, context(run))).collect();
    let failed = records.iter().find(|r| r.failure.is_some()).cloned();
    for record in records {
        cx.touch(Change::Evidence(Box::new(record)));
    }
    if let Some(failed) = failed {
        let row = draft("setup", "fail", format!("`{}` exited with {}", failed.command, failed.exit_code));
        cx.event(row.task(task, attempt.number).commit(&attempt.base));
        cx.edit_attempt(task, |a| a.effect = None);
        environment_not_ready(cx, &failed);
        return;
    }
    cx.event(draft("setup", "pass", format!("{} setup commands passed", runs.len())).task(task, attempt.number));
    cx.stage(task, Stage::Implementing);
}

/// A failing setup never costs an attempt and never makes anybody rewrite code (DESIGN 4, 8).
pub(super) fn environment_not_ready(cx: &mut Cx<'_>, failed: &crate::evidence::EvidenceRecord) {
    let detail = format!("`{}` exited with {}: {}", failed.command, failed.exit_code, last_line(failed));
    let next = cx.start_command();
    cx.hold(HoldKind::Parked, Owner::User, "environment_not_ready", &detail, next);
}

/// The last line that a failing command printed, for one-line reasons.
pub(super) fn last_line(record: &crate::evidence::EvidenceRecord) -> String {
    let text = if record.stderr.trim().is_empty() { &record.stdout } else { &record.stderr };
    text.trim().lines().next_back().unwrap_or("no output").chars().take(300).collect()
}

pub(super) fn turn_ended(cx: &mut Cx<'_>, task: &TaskId, ended: &TurnEnded) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| {
        a.effect = None;
        if ended.session.is_some() {
            a.session.clone_from(&ended.session);
        }
    });
    if ended.session.is_some() {
        cx.edit_task(task, |t| t.session.clone_from(&ended.session));
    }
    let report = match &ended.result {
        Ok(Report::Implementer(report)) => report,
        Ok(_) => return recovery::invalid_report(cx, task, ended, vec!["the report is of another role".into()]),
        Err(failure) => return recovery::turn_failed(cx, task, Role::Implementer, ended, failure),
    };
    let facts = ended.tree.clone().unwrap_or_default();
    let errors = check_implementer(report, task, attempt.number, &facts);
    if !errors.is_empty() {
        return recovery::invalid_report(cx, task, ended, errors);
    }
    let file = format!("impl-{task}-a{}.json", attempt.number);
    planning::record_turn(cx, attempt.turn, ended, "report", Some(file));
    cx.state.head.counts.implementer_runs += 1;
    planning::take_proposals(cx, &report.proposed_tasks);
    cx.edit_attempt(task, |a| {
        a.trial.clone_from(&facts.trial);
        a.trial_tree.clone_from(&facts.trial_tree);
        a.changed.clone_from(&facts.changed);
        a.summary = head(&report.summary, WORDS_MAX);
        a.claims = (report.files_changed.clone(), report.checks_run.clone());
    });
    cx.edit_task(task, |t| t.last_attempt_commit.clone_from(&facts.trial));
    let blockers = crate::gate::tree_blockers(cx.policy, &facts);
    if !blockers.is_empty() {
        return recovery::blocked_by_gate(cx, task, &blockers);
    }
    cx.state.head.last.status = "submit_trial".into();
    cx.state.head.last.decision = "dispatch_verifier".into();
    let row = draft("submit_trial", "dispatch_verifier", report.summary.clone()).role("implementer");
    cx.event(row.task(task, attempt.number).commit(&facts.trial));
    cx.set_status(task, TaskStatus::InProgress);
    let prove = !pump::checks_of(cx, task).is_empty();
    cx.stage(task, if prove { Stage::Proving } else { Stage::Verifying });
    cx.edit_attempt(task, |a| a.session = None);
}
