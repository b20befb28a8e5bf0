//! The gate against a decision table that shares no code with it.

use std::collections::BTreeSet;

use harness_proto::plan::Check;
use harness_proto::report::{CriterionResult, Finding};
use harness_proto::vocab::{CriterionOutcome, EvidenceResult, FailureType, RecoverySignal, Severity, Verdict};
use proptest::prelude::*;

use super::*;
use crate::evidence::EvidenceRecord;
use crate::fixtures::{accepts, passed, planned, policy};
use crate::input::TreeFacts;

const TREE: &str = "1111111111111111111111111111111111111111";

fn codes(blockers: &[Blocker]) -> Vec<&'static str> {
    blockers.iter().map(|blocker| blocker.code).collect()
}

/// The gate on one task with one criterion, the suite `make test` and the given evidence.
fn judge(evidence: &[EvidenceRecord], change: impl FnOnce(&mut harness_proto::report::VerifierReport)) -> Vec<Blocker> {
    let (policy, task) = (policy(), planned("T-1", &[]));
    let mut verdict = accepts("T-1", 1);
    change(&mut verdict);
    let expected = expected_checks(&policy, &task);
    gate(&GateInput {
        policy: &policy,
        task: &task,
        evidence,
        expected: &expected,
        tree: TREE,
        verdict: &verdict,
        changed: &["src/a.py".to_owned()],
    })
}

fn failed(command: &str) -> EvidenceRecord {
    let mut record = passed(command, TREE);
    (record.exit_code, record.result, record.failure) = (1, EvidenceResult::Fail, Some(FailureType::TestFailure));
    record.stderr = "1 != 2".into();
    record
}

#[test]
fn a_proven_and_accepted_attempt_passes() {
    assert_eq!(judge(&[passed("make test", TREE)], |_| {}), []);
}

#[test]
fn evidence_must_exist_pass_and_be_of_the_tree() {
    let pass = || passed("make test", TREE);
    assert_eq!(codes(&judge(&[], |_| {})), ["EVIDENCE_MISSING"]);
    assert_eq!(codes(&judge(&[passed("make other", TREE)], |_| {})), ["EVIDENCE_MISSING"]);
    assert_eq!(codes(&judge(&[passed("make test", "2222")], |_| {})), ["EVIDENCE_STALE"]);
    assert_eq!(codes(&judge(&[failed("make test")], |_| {})), ["EVIDENCE_FAILED"]);
    assert_eq!(codes(&judge(&[pass(), failed("make test")], |_| {})), ["EVIDENCE_FAILED"], "the last result counts");
    assert_eq!(codes(&judge(&[failed("make test"), pass()], |_| {})), [] as [&str; 0], "a repeat replaces a fault");
    let mut zero = failed("make test");
    (zero.exit_code, zero.note) = (0, "no test ran".into());
    assert_eq!(codes(&judge(&[zero], |_| {})), ["ZERO_TESTS"]);
    let mut late = failed("make test");
    late.result = EvidenceResult::TimedOut;
    assert_eq!(codes(&judge(&[late], |_| {})), ["EVIDENCE_TIMED_OUT"]);
    let mut setup = failed("make deps");
    setup.setup = true;
    assert_eq!(codes(&judge(&[setup, pass()], |_| {})), ["EVIDENCE_FAILED"]);
    let mut setup = pass();
    setup.setup = true;
    assert_eq!(codes(&judge(&[setup], |_| {})), ["EVIDENCE_MISSING"], "a setup command is no evidence");
    assert_eq!(
        codes(&evidence_blockers(&policy(), &policy().verify, &[passed("make test", "")], "")),
        ["EVIDENCE_STALE"]
    );
}

#[test]
fn two_checks_that_read_alike_need_two_results() {
    let mut other = Check::shell("npm test");
    other.cwd = Some("web".into());
    let expected = [Check::shell("npm test"), other];
    let one = [passed("npm test", TREE)];
    assert_eq!(codes(&evidence_blockers(&policy(), &expected, &one, TREE)), ["EVIDENCE_MISSING"]);
    let two = [failed("npm test"), passed("npm test", TREE)];
    assert_eq!(codes(&evidence_blockers(&policy(), &expected, &two, TREE)), ["EVIDENCE_FAILED"]);
    let two = [passed("npm test", TREE), passed("npm test", TREE)];
    assert_eq!(evidence_blockers(&policy(), &expected, &two, TREE), []);
}

#[test]
fn no_command_at_all_blocks_unless_the_user_said_so() {
    let mut bare = policy();
    bare.verify.clear();
    assert_eq!(codes(&evidence_blockers(&bare, &[], &[], TREE)), ["NO_VERIFICATION"]);
    bare.no_verification = true;
    assert_eq!(evidence_blockers(&bare, &[], &[], TREE), []);
    assert!(unproven(&bare, &[]) && !unproven(&bare, &[Check::shell("x")]) && !unproven(&policy(), &[]));
}

#[test]
fn a_verdict_cannot_pass_over_its_own_findings() {
    let proven = [passed("make test", TREE)];
    let with = |change: fn(&mut harness_proto::report::VerifierReport)| codes(&judge(&proven, change));
    assert_eq!(with(|v| v.verdict = Verdict::Revert), ["VERDICT_REVERT"]);
    assert_eq!(with(|v| v.criteria_results.clear()), ["CRITERION_MISSING"]);
    assert_eq!(with(|v| v.criteria_results[0].result = CriterionOutcome::Fail), ["CRITERION_FAILED"]);
    assert_eq!(with(|v| v.criteria_results[0].result = CriterionOutcome::Skip), ["CRITERION_SKIPPED"]);
    assert_eq!(with(|v| v.recovery_signal = RecoverySignal::EnvironmentBlocked), ["SIGNAL_RAISED"]);
    let twice = with(|v| {
        let mut worse = v.criteria_results[0].clone();
        worse.result = CriterionOutcome::Fail;
        v.criteria_results.insert(0, worse);
    });
    assert_eq!(twice, ["CRITERION_FAILED"], "answered twice, the worse counts");
    for (severity, blocked) in
        [(Severity::Critical, true), (Severity::High, true), (Severity::Medium, false), (Severity::Info, false)]
    {
        let found = judge(&proven, |v| {
            v.findings.push(Finding {
                description: "d".into(),
                severity,
                file: String::new(),
                recommendation: "r".into(),
            });
        });
        assert_eq!(!found.is_empty(), blocked, "{severity}");
    }
}

#[test]
fn a_blocker_carries_command_and_output() {
    let sentence = judge(&[failed("make test")], |_| {})[0].sentence();
    for part in ["EVIDENCE_FAILED", "`make test`", "exit 1", "TEST_FAILURE", "1 != 2"] {
        assert!(sentence.contains(part), "{part} is not in {sentence}");
    }
}

#[test]
fn trees_and_paths_are_judged_before_anything_runs() {
    let mut policy = policy();
    policy.protected_paths = vec!["ci/**".into(), "LICENSE".into(), "*.lock".into()];
    let facts = |changed: &[&str], problems: &[&str]| TreeFacts {
        trial: "c".repeat(40),
        changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        problems: problems.iter().map(|problem| (*problem).to_owned()).collect(),
        ..TreeFacts::default()
    };
    assert_eq!(codes(&tree_blockers(&policy, &facts(&["src/a"], &[]))), [] as [&str; 0]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&[], &[]))), ["NO_CHANGE"]);
    assert_eq!(codes(&tree_blockers(&policy, &TreeFacts::default())), ["NO_CHANGE"]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&["tasks.json"], &[]))), ["HARNESS_FILE_CHANGED"]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&[".harness/x"], &[]))), ["HARNESS_FILE_CHANGED"]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&["sub/tasks.json"], &[]))), [] as [&str; 0]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&["a", "sub/Cargo.lock"], &[]))), ["PROTECTED_PATH"]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&["x"], &["does not descend from its base"]))), ["NOT_DESCENDED"]);
    assert_eq!(codes(&tree_blockers(&policy, &facts(&[], &["HEAD is unreadable"]))), ["TREE_PROBLEM"]);
}

#[test]
fn patterns_match_as_in_ignore_files() {
    for (pattern, path, expected) in [
        ("*.lock", "a/b/Cargo.lock", true),
        ("*.lock", "a/b/Cargo.lock.md", false),
        ("/docs", "docs/x/y.md", true),
        ("docs/", "a/docs/y.md", true),
        ("ci/*.yml", "ci/a.yml", true),
        ("ci/*.yml", "x/ci/a.yml", false),
        ("ci/*.yml", "ci/a/b.yml", false),
        ("ci/**", "ci/a/b.yml", true),
        ("**/secret", "a/b/secret", true),
        ("**/secret", "secret", true),
        ("a/**/z", "a/z", true),
        ("a/**/z", "a/b/c/z", true),
        ("a/**/z", "a/b/c/y", false),
        ("?.txt", "a.txt", true),
        ("?.txt", "ab.txt", false),
        ("", "a", false),
        ("*", "anything/at/all", true),
    ] {
        assert_eq!(glob_matches(pattern, path), expected, "{pattern} on {path}");
    }
}

#[test]
fn criteria_are_met_by_id_or_text() {
    let criteria = ["The file is there.".to_owned(), "It  has\n text.".to_owned()];
    for (given, place) in [
        ("C1", Some(0)),
        ("c2", Some(1)),
        ("C2: It has text.", Some(1)),
        ("C3", None),
        ("C0", None),
        ("The  file is there.", Some(0)),
        ("It has text.", Some(1)),
        ("Something else", None),
        ("", None),
    ] {
        assert_eq!(criterion_place(&criteria, given), place, "{given}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    Nothing,
    Pass,
    Fail,
    Late,
    Zero,
    OtherTree,
}

fn shown() -> impl Strategy<Value = Shown> {
    prop_oneof![
        1 => Just(Shown::Nothing),
        3 => Just(Shown::Pass),
        1 => Just(Shown::Fail),
        1 => Just(Shown::Late),
        1 => Just(Shown::Zero),
        1 => Just(Shown::OtherTree),
    ]
}

proptest! {
    /// Pass exactly when every row of the table says pass, and exactly the codes of the rows that do not.
    #[test]
    fn the_gate_agrees_with_the_table(
        results in proptest::collection::vec(shown(), 0..4),
        answers in proptest::collection::vec(proptest::option::of(0usize..3), 1..4),
        accept in any::<bool>(),
        severity in 0usize..5,
        signal in any::<bool>(),
        changed in any::<bool>(),
        no_verification in any::<bool>(),
    ) {
        let mut policy = policy();
        policy.verify = (0..results.len()).map(|n| Check::shell(format!("check {n}"))).collect();
        policy.no_verification = no_verification;
        let mut task = planned("T-1", &[]);
        task.acceptance_criteria = (0..answers.len()).map(|n| format!("criterion {n}")).collect();
        let mut wanted: BTreeSet<&str> = BTreeSet::new();
        let mut evidence = Vec::new();
        for (n, shown) in results.iter().enumerate() {
            let mut record = passed(&format!("check {n}"), TREE);
            let code = match shown {
                Shown::Nothing => { wanted.insert("EVIDENCE_MISSING"); continue }
                Shown::Pass => None,
                Shown::Fail => { (record.exit_code, record.result) = (1, EvidenceResult::Fail); Some("EVIDENCE_FAILED") }
                Shown::Late => { (record.exit_code, record.result) = (124, EvidenceResult::TimedOut); Some("EVIDENCE_TIMED_OUT") }
                Shown::Zero => { record.result = EvidenceResult::Fail; Some("ZERO_TESTS") }
                Shown::OtherTree => { record.tree = "2222".into(); Some("EVIDENCE_STALE") }
            };
            wanted.extend(code);
            evidence.push(record);
        }
        if results.is_empty() && !no_verification { wanted.insert("NO_VERIFICATION"); }
        let mut verdict = accepts("T-1", 0);
        for (n, answer) in answers.iter().enumerate() {
            let Some(answer) = answer else { wanted.insert("CRITERION_MISSING"); continue };
            let result = CriterionOutcome::ALL[*answer];
            match result {
                CriterionOutcome::Pass => {}
                CriterionOutcome::Fail => { wanted.insert("CRITERION_FAILED"); }
                CriterionOutcome::Skip => { wanted.insert("CRITERION_SKIPPED"); }
            }
            verdict.criteria_results.push(CriterionResult { criterion: format!("C{}", n + 1), result, evidence: String::new() });
        }
        let severity = Severity::ALL[severity];
        verdict.findings.push(Finding { description: "d".into(), severity, file: "f".into(), recommendation: "r".into() });
        if accept {
            if severity <= Severity::High { wanted.insert("FINDING_CRITICAL"); }
        } else {
            verdict.verdict = Verdict::Revert;
            wanted.insert("VERDICT_REVERT");
        }
        if signal {
            verdict.recovery_signal = RecoverySignal::AmbiguousAcceptanceCriteria;
            wanted.insert("SIGNAL_RAISED");
        }
        let paths = if changed { vec!["src/a".to_owned()] } else { wanted.insert("NO_CHANGE"); Vec::new() };
        let expected = expected_checks(&policy, &task);
        let found = gate(&GateInput {
            policy: &policy, task: &task, evidence: &evidence, expected: &expected, tree: TREE, verdict: &verdict, changed: &paths,
        });
        prop_assert!(found.iter().all(|blocker| CODES.contains(&blocker.code) && !blocker.detail.is_empty()));
        prop_assert_eq!(found.iter().map(|blocker| blocker.code).collect::<BTreeSet<_>>(), wanted);
    }
}

#[test]
fn every_code_of_the_gate_is_explained() {
    for code in CODES {
        assert!(harness_proto::explain::explain(code).is_some(), "{code}");
    }
}
