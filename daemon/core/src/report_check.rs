//! Does a well-formed report make sense for the turn that was dispatched?
//!
//! Invariant: role, task, attempt and commit come from the dispatched turn; a report may only agree (DESIGN 4, weaknesses 15).
//! What is wrong here goes into the one repair prompt; what a sound report says about the work is the gate's business.

use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::report::{ImplementerReport, PlannerReport, VerifierReport};
use harness_proto::vocab::{RecoverySignal, Verdict};

use crate::gate::criterion_place;
use crate::input::TreeFacts;
use crate::output::head;

/// Shortest abbreviation of a commit that is taken.
const SHORT_COMMIT_MIN: usize = 7;

/// Errors of an implementer's report. Its commit may be empty, or name, in full or by a unique prefix of at least 7 digits, one of the
/// attempt's commits; where the attempt made none, the runtime has nothing to compare it with and ignores it (readings 004-12).
#[must_use]
pub fn check_implementer(report: &ImplementerReport, task: &TaskId, attempt: u32, facts: &TreeFacts) -> Vec<String> {
    let mut errors = Vec::new();
    turn(&report.task_id, report.attempt, task, attempt, &mut errors);
    let mut commits: Vec<&str> = facts.commits.iter().map(String::as_str).collect();
    for more in [&facts.head, &facts.trial] {
        if !more.is_empty() && !commits.contains(&more.as_str()) {
            commits.push(more);
        }
    }
    if !facts.commits.is_empty() {
        commit(&report.commit, &commits, "one of this attempt's commits", &mut errors);
    }
    errors
}

/// Errors of a verifier's report: it must be about the trial commit and answer every criterion exactly once (DESIGN 4). One that
/// raises a recovery signal could not judge, so it may leave criteria out, but must revert (S4-047).
#[must_use]
pub fn check_verifier(report: &VerifierReport, task: &PlannedTask, attempt: u32, trial: &str) -> Vec<String> {
    let mut errors = Vec::new();
    turn(&report.task_id, report.attempt, &task.id, attempt, &mut errors);
    commit(&report.commit, &[trial], "the trial commit", &mut errors);
    let signalled = report.recovery_signal != RecoverySignal::None;
    if signalled && report.verdict != Verdict::Revert {
        errors.push("Verifier recovery_signal requires verdict=revert.".to_owned());
    }
    let criteria = &task.acceptance_criteria;
    let mut answers = vec![0_usize; criteria.len()];
    for (place, result) in report.criteria_results.iter().enumerate() {
        match criterion_place(criteria, &result.criterion) {
            Some(criterion) => answers[criterion] += 1,
            None => errors.push(format!(
                "criteria_results[{place}].criterion: `{}` is no criterion of this task; answer by id, C1 to C{}",
                head(&result.criterion, 80),
                criteria.len()
            )),
        }
    }
    for (place, count) in answers.iter().enumerate() {
        match count {
            1 => {}
            0 if signalled => {}
            0 => errors.push(format!("criteria_results: criterion C{} is not answered", place + 1)),
            _ => errors.push(format!("criteria_results: criterion C{} is answered {count} times", place + 1)),
        }
    }
    errors
}

/// Errors of a planner's report: its revision must be `expected`, or the one after it when the turn repairs a plan that it wrote already.
#[must_use]
pub fn check_planner(report: &PlannerReport, expected: i64, repair: bool) -> Vec<String> {
    let last = expected.saturating_add(i64::from(repair));
    if (expected..=last).contains(&report.revision) {
        return Vec::new();
    }
    vec![format!("revision: this plan is revision {expected}, the report says {}", report.revision)]
}

fn turn(given_task: &str, given_attempt: i64, task: &TaskId, attempt: u32, errors: &mut Vec<String>) {
    if given_task != task.as_str() {
        errors.push(format!("task_id: this turn is about `{task}`, the report says `{}`", head(given_task, 80)));
    }
    if given_attempt != i64::from(attempt) {
        errors.push(format!("attempt: this is attempt {attempt}, the report says {given_attempt}"));
    }
}

fn commit(given: &str, known: &[&str], what: &str, errors: &mut Vec<String>) {
    let given = given.trim().to_ascii_lowercase();
    if given.is_empty() {
        return;
    }
    let hex = given.bytes().all(|b| b.is_ascii_hexdigit());
    let found = known.iter().filter(|commit| commit.starts_with(&given)).count();
    let shown = head(&given, 70);
    if !hex || given.len() < SHORT_COMMIT_MIN {
        errors.push(format!(
            "commit: `{shown}` is no commit id: give the full id, at least {SHORT_COMMIT_MIN} digits, or nothing"
        ));
    } else if found == 0 {
        errors.push(format!("commit: `{shown}` is not {what}"));
    } else if found > 1 {
        errors.push(format!("commit: `{shown}` is ambiguous; give the full id"));
    }
}

#[cfg(test)]
#[path = "report_check_tests.rs"]
mod tests;
