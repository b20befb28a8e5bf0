//! From a trial commit to a decision: evidence, the verifier's turn, the gate.

use harness_proto::ids::TaskId;
use harness_proto::report::{Report, VerifierReport};
use harness_proto::vocab::{CriterionOutcome, EvidenceResult, Owner, RecoverySignal, Role, Verdict};
use serde_json::json;

use crate::effect::Purpose;
use crate::evidence::{CommandRun, EvidenceRecord, RecordContext, is_environment, record};
use crate::gate::{Blocker, GateInput, evidence_blockers, gate};
use crate::input::TurnEnded;
use crate::output::head;
use crate::report_check::check_verifier;
use crate::state::{Attempt, Feedback, Incident, Stage};
use crate::step::Change;

use super::cx::{Cx, WORDS_MAX, draft};
use super::{implementing, planning, pump, recovery};

/// Turns raw runs into records, stores them and writes one row of history each.
pub(super) fn record_runs(
    cx: &mut Cx<'_>,
    purpose: Purpose,
    attempt: Option<&Attempt>,
    commit: &str,
    tree: &str,
    runs: (&[CommandRun], &[CommandRun]),
) -> Vec<EvidenceRecord> {
    let both = runs.0.iter().map(|r| (true, r)).chain(runs.1.iter().map(|r| (false, r)));
    let mut records = Vec::new();
    for (setup, run) in both {
        let context = RecordContext {
            purpose,
            setup,
            task: attempt.map(|a| a.task.clone()),
            attempt: attempt.map_or(0, |a| a.number),
            commit: commit.into(),
            tree: tree.into(),
            at: cx.at,
        };
        let record = record(run, context);
        let decision = match record.result {
            EvidenceResult::Pass => "pass",
            EvidenceResult::TimedOut => "timed_out",
            EvidenceResult::Fail if is_environment(&record) => "environment",
            EvidenceResult::Fail => "fail",
        };
        let sentence = match record.note.as_str() {
            "" => format!("`{}` exited with {}", record.command, record.exit_code),
            note => format!("`{}` exited with {}: {note}", record.command, record.exit_code),
        };
        let status = if setup { "setup" } else { "evidence" };
        let mut row = draft(status, decision, sentence).commit(commit);
        if let Some(attempt) = attempt {
            row = row.task(&attempt.task, attempt.number);
        }
        let data = json!({"purpose": purpose, "tree": tree, "exit_code": record.exit_code, "tests": record.tests,
            "failure": record.failure, "duration_ms": record.duration_ms, "output": record.output});
        cx.event(row.data(data));
        cx.touch(Change::Evidence(Box::new(record.clone())));
        records.push(record);
    }
    records
}

pub(super) fn baseline(cx: &mut Cx<'_>, tree: &str, setup: &[CommandRun], runs: &[CommandRun]) {
    let commit = cx.state.head.base.clone();
    cx.state.head.baseline.effect = None;
    let records = record_runs(cx, Purpose::Baseline, None, &commit, tree, (setup, runs));
    if let Some(failed) = records.iter().find(|r| r.setup && r.failure.is_some()) {
        return implementing::environment_not_ready(cx, failed);
    }
    cx.state.head.baseline.done = true;
    cx.state.head.baseline.failing =
        records.iter().filter(|r| r.failure.is_some()).map(|r| r.command.clone()).collect();
    cx.touch(Change::Run);
}

/// What a collection of evidence means for an attempt.
pub(super) enum Proof {
    /// Everything passed.
    Passed,
    /// The machine failed, not the code.
    Environment(Box<EvidenceRecord>),
    /// The code failed.
    Failed(Vec<Blocker>),
}

pub(super) fn judge(cx: &Cx<'_>, task: &TaskId, tree: &str, records: &[EvidenceRecord]) -> Proof {
    let failing = || records.iter().filter(|r| r.failure.is_some());
    if let Some(first) = failing().next()
        && failing().all(is_environment)
    {
        return Proof::Environment(Box::new(first.clone()));
    }
    let checks = pump::checks_of(cx, task);
    let blockers = evidence_blockers(cx.policy, &checks, records, tree);
    if blockers.is_empty() { Proof::Passed } else { Proof::Failed(blockers) }
}

pub(super) fn trial_proved(cx: &mut Cx<'_>, task: &TaskId, tree: &str, setup: &[CommandRun], runs: &[CommandRun]) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| a.effect = None);
    let records = record_runs(cx, Purpose::Trial, Some(&attempt), &attempt.trial, tree, (setup, runs));
    cx.edit_attempt(task, |a| a.evidence.clone_from(&records));
    match judge(cx, task, &attempt.trial_tree, &records) {
        Proof::Passed => cx.stage(task, Stage::Verifying),
        Proof::Environment(failed) => recovery::environment(cx, task, &failed),
        // A verifier is not paid for a commit that cannot pass.
        Proof::Failed(blockers) => recovery::blocked_by_gate(cx, task, &blockers),
    }
}

pub(super) fn turn_ended(cx: &mut Cx<'_>, task: &TaskId, ended: &TurnEnded) {
    let Some(attempt) = cx.state.attempts.get(task).cloned() else { return };
    cx.edit_attempt(task, |a| {
        a.effect = None;
        a.session.clone_from(&ended.session);
    });
    let report = match &ended.result {
        Ok(Report::Verifier(report)) => report,
        Ok(_) => return recovery::invalid_report(cx, task, ended, vec!["the report is of another role".into()]),
        Err(failure) => return recovery::turn_failed(cx, task, Role::Verifier, ended, failure),
    };
    let errors = check_verifier(report, &cx.task(task).plan, attempt.number, &attempt.trial);
    if !errors.is_empty() {
        return recovery::invalid_report(cx, task, ended, errors);
    }
    let file = format!("verdict-{task}-a{}.json", attempt.number);
    planning::record_turn(cx, attempt.turn, ended, "report", Some(file));
    cx.state.head.counts.verifier_runs += 1;
    cx.state.head.last.verdict = report.verdict.to_string();
    planning::take_proposals(cx, &report.proposed_tasks);
    cx.edit_attempt(task, |a| a.verdict_summary = head(&report.summary, WORDS_MAX));
    cx.edit_task(task, |t| t.last_verdict = Some(report.verdict));
    let row = draft("verdict", report.verdict.as_str(), report.summary.clone()).role("verifier");
    cx.event(row.task(task, attempt.number).commit(&attempt.trial));
    if report.recovery_signal != RecoverySignal::None {
        return signal(cx, &attempt, report);
    }
    if report.verdict == Verdict::Revert {
        let feedback = feedback_of(cx, task, report, &[]);
        return recovery::revert(cx, task, feedback, &format!("verdict:{}", report.summary));
    }
    let checks = pump::checks_of(cx, task);
    let blockers = gate(&GateInput {
        policy: cx.policy,
        task: &cx.task(task).plan,
        evidence: &attempt.evidence,
        expected: &checks,
        tree: &attempt.trial_tree,
        verdict: report,
        changed: &attempt.changed,
    });
    if blockers.is_empty() {
        cx.event(draft("gate", "pass", "Every command passed and the verifier accepted.").task(task, attempt.number));
        cx.stage(task, Stage::Building);
        return;
    }
    for blocker in &blockers {
        let row = draft("gate", &format!("blocked:{}", blocker.code), blocker.detail.clone());
        cx.event(row.task(task, attempt.number).commit(&attempt.trial));
    }
    let feedback = feedback_of(cx, task, report, &blockers);
    let signature = blockers.iter().map(|b| b.code).collect::<Vec<_>>().join(",");
    recovery::revert(cx, task, feedback, &format!("gate:{signature}"));
}

/// The verifier cannot judge: the planner has to change the task (S4-057).
fn signal(cx: &mut Cx<'_>, attempt: &Attempt, report: &VerifierReport) {
    let reason = report.recovery_signal.as_str();
    let incident = Incident {
        owner: Owner::Planner,
        reason: reason.into(),
        task: Some(attempt.task.clone()),
        attempt: attempt.number,
        commit: attempt.trial.clone(),
        details: json!({"summary": head(&report.summary, WORDS_MAX)}),
        count: 0,
        at: cx.at,
    };
    recovery::block_task(cx, &attempt.task, incident, &head(&report.summary, WORDS_MAX));
}

/// What the next attempt must know of a verdict that was not an accept, or that the gate overruled.
pub(super) fn feedback_of(cx: &Cx<'_>, task: &TaskId, report: &VerifierReport, blockers: &[Blocker]) -> Feedback {
    let criteria = &cx.task(task).plan.acceptance_criteria;
    let text_of = |id: &str| {
        let index = id.strip_prefix('C').and_then(|n| n.parse::<usize>().ok());
        index.and_then(|n| criteria.get(n.wrapping_sub(1))).cloned().unwrap_or_default()
    };
    Feedback {
        summary: head(&report.summary, WORDS_MAX),
        findings: report.findings.clone(),
        criteria: report
            .criteria_results
            .iter()
            .filter(|r| r.result != CriterionOutcome::Pass)
            .map(|r| format!("{}: {} ({}): {}", r.criterion, text_of(&r.criterion), r.result, r.evidence))
            .collect(),
        blockers: blockers.iter().map(Blocker::sentence).collect(),
    }
}
