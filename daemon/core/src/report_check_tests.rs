//! A report may only agree with the turn that was dispatched.

use harness_proto::report::{CriterionResult, TaskChanges};
use harness_proto::vocab::CriterionOutcome;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{accepts, id, planned};

const TRIAL: &str = "0123456789abcdef0123456789abcdef01234567";

fn work(commit: &str) -> ImplementerReport {
    ImplementerReport {
        task_id: "T-1".into(),
        attempt: 2,
        commit: commit.into(),
        summary: String::new(),
        files_changed: Vec::new(),
        checks_run: Vec::new(),
        proposed_tasks: Vec::new(),
    }
}

fn facts(commits: &[&str]) -> TreeFacts {
    TreeFacts { commits: commits.iter().map(|c| (*c).to_owned()).collect(), ..TreeFacts::default() }
}

#[test]
fn commits_agree_in_full_by_prefix_or_not_at_all() {
    let check = |commit: &str, commits: &[&str]| check_implementer(&work(commit), &id("T-1"), 2, &facts(commits));
    for good in ["", " ", TRIAL, "0123456", "0123456789ABCDEF"] {
        assert_eq!(check(good, &[TRIAL]), [] as [String; 0], "{good}");
    }
    assert!(check("012345", &[TRIAL])[0].contains("at least 7 digits"));
    assert!(check("HEAD", &[TRIAL])[0].contains("no commit id"));
    assert!(check("fedcba9", &[TRIAL])[0].contains("is not one of this attempt's commits"));
    assert!(check("0123456", &[TRIAL, "0123456fff"])[0].contains("ambiguous"));
    assert_eq!(check("fedcba9", &[]), [] as [String; 0], "without commits there is nothing to compare with");
}

#[test]
fn task_and_attempt_agree() {
    let found = check_implementer(&work(""), &id("T-9"), 3, &facts(&[]));
    assert_eq!(
        found,
        ["task_id: this turn is about `T-9`, the report says `T-1`", "attempt: this is attempt 3, the report says 2"]
    );
}

#[test]
fn every_criterion_is_answered_exactly_once() {
    let mut task = planned("T-1", &[]);
    task.acceptance_criteria = vec!["One holds.".into(), "Two holds.".into()];
    let check = |change: fn(&mut VerifierReport)| {
        let mut report = accepts("T-1", 2);
        change(&mut report);
        check_verifier(&report, &task, 1, TRIAL)
    };
    assert_eq!(check(|_| {}), [] as [String; 0]);
    assert_eq!(check(|r| r.criteria_results[1].criterion = "Two  holds.".into()), [] as [String; 0]);
    assert_eq!(check(|r| r.commit = TRIAL[..9].into()), [] as [String; 0]);
    assert!(check(|r| r.commit = "fedcba987".into())[0].contains("is not the trial commit"));
    assert_eq!(check(|r| drop(r.criteria_results.pop())), ["criteria_results: criterion C2 is not answered"]);
    assert_eq!(
        check(|r| r.criteria_results[1].criterion = "C1".into()),
        ["criteria_results: criterion C1 is answered 2 times", "criteria_results: criterion C2 is not answered"]
    );
    assert!(
        check(|r| {
            let extra =
                CriterionResult { criterion: "C7".into(), result: CriterionOutcome::Pass, evidence: String::new() };
            r.criteria_results.push(extra);
        })[0]
            .contains("`C7` is no criterion of this task; answer by id, C1 to C2")
    );
}

#[test]
fn a_signal_needs_a_revert() {
    let task = planned("T-1", &[]);
    let mut report = accepts("T-1", 0);
    report.recovery_signal = RecoverySignal::EnvironmentBlocked;
    assert_eq!(check_verifier(&report, &task, 1, TRIAL), ["Verifier recovery_signal requires verdict=revert."]);
    report.verdict = Verdict::Revert;
    assert_eq!(check_verifier(&report, &task, 1, TRIAL), [] as [String; 0]);
}

#[test]
fn a_planner_numbers_the_plan_as_it_was_told() {
    let report = |revision| PlannerReport {
        revision,
        summary: String::new(),
        task_changes: TaskChanges::default(),
        planner_requested_reason: String::new(),
    };
    assert!(check_planner(&report(3), 3, false).is_empty());
    assert_eq!(check_planner(&report(4), 3, false), ["revision: this plan is revision 3, the report says 4"]);
    assert!(check_planner(&report(4), 3, true).is_empty(), "a repair may count its own file");
}

proptest! {
    #[test]
    fn only_a_prefix_of_the_trial_passes(given in "[0-9a-f]{1,41}") {
        let mut report = accepts("T-1", 1);
        report.commit.clone_from(&given);
        let ok = check_verifier(&report, &planned("T-1", &[]), 1, TRIAL).is_empty();
        prop_assert_eq!(ok, given.len() >= 7 && TRIAL.starts_with(&given));
    }
}
