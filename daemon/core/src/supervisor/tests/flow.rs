//! The ordinary course: plan, implement, prove, verify, integrate, land; reverts and their feedback.

use harness_proto::ids::TaskId;
use harness_proto::report::Report;
use harness_proto::vocab::{Lifecycle, RecoverySignal, Role, TaskStatus, Verdict};

use super::bench::{Bench, ended, implemented, plan, verdict};
use crate::effect::EffectKind;
use crate::input::{CandidateOutcome, Command, InputKind, Outcome, PlanFile};
use crate::state::Stage;

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

fn reverting(bench: &mut Bench, attempts: std::ops::RangeInclusive<u32>) {
    bench.turn(Role::Verifier, move |request| {
        attempts.contains(&request.attempt).then(|| {
            let report = verdict(request, Verdict::Revert, RecoverySignal::None);
            Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report)))))
        })
    });
}

/// S4-013, S4-053: one task from the goal to the target branch.
#[test]
fn a_run_goes_from_plan_to_landed() {
    let mut bench = Bench::dag();
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.state.head.terminal_reason, "all_tasks_done");
    assert_eq!(bench.state.head.landed, bench.state.head.head);
    let wanted = [
        "init initialize",
        "run registered",
        "evidence pass",
        "turn started",
        "plan dispatch_implementer",
        "plan_import imported",
        "turn started",
        "submit_trial dispatch_verifier",
        "evidence pass",
        "turn started",
        "verdict accept",
        "gate pass",
        "candidate built",
        "integrated advanced",
        "accept all_tasks_done",
        "landed done",
        "run completed",
    ];
    let words = bench.words();
    let mut rest = words.iter();
    for word in wanted {
        assert!(rest.any(|w| w == word), "{word} is missing or out of order in {words:?}");
    }
}

/// S4-014: ready tasks in tasks.json make the first planner turn unnecessary.
#[test]
fn a_found_plan_skips_the_planner() {
    let mut bench = Bench::dag();
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"])])));
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert!(bench.turns.iter().all(|t| t.role != Role::Planner));
    let order: Vec<_> = bench.turns.iter().filter(|t| t.role == Role::Implementer).map(|t| t.task.clone()).collect();
    assert_eq!(order, [Some(id("T-1")), Some(id("T-2"))]);
}

/// S4-054, S4-056: a revert leaves the head alone; the next attempt has the findings and continues the session in a new tree.
#[test]
fn a_revert_gives_feedback_to_the_next_attempt() {
    let mut bench = Bench::dag();
    reverting(&mut bench, 1..=1);
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.happened("revert retry_task"), 1);
    let attempts = bench.turns_of(Role::Implementer, "T-1");
    assert_eq!(attempts.len(), 2);
    assert!(attempts[1].prompt.contains("[VERIFIER FEEDBACK FROM PREVIOUS ATTEMPT]"));
    assert!(attempts[1].prompt.contains("Says revert of attempt 1."));
    assert!(attempts[1].prompt.contains("C1"));
    assert_eq!(attempts[1].session.as_deref(), Some("thread-1"));
    assert_ne!(attempts[0].tree, attempts[1].tree);
}

/// S4-055: attempts used up, then the planner; the kept work has a name.
#[test]
fn used_up_attempts_ask_the_planner() {
    let mut bench = Bench::dag();
    bench.policy.loop_limit = 0;
    reverting(&mut bench, 1..=3);
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.until("run_turn", "");
    assert_eq!(bench.state.tasks[&id("T-1")].status, TaskStatus::Failed);
    assert_eq!(bench.happened("revert planner_replan_after_revert"), 1);
    assert_eq!(bench.turns_of(Role::Implementer, "T-1").len(), 3);
    assert!(bench.turns_of(Role::Planner, "")[0].prompt.contains("T-1"));
    let kept = bench.effects.iter().filter(|e| matches!(&e.kind, EffectKind::RemoveTree { keep: Some(_), .. })).count();
    assert_eq!(kept, 3);
}

/// DESIGN 4: the same failure signature three times stops early, whatever the number of attempts.
#[test]
fn the_same_failure_three_times_stops_early() {
    let mut bench = Bench::dag();
    bench.policy.max_attempts = 9;
    bench.evidence("T-1", 1..=9, 1);
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.until("run_turn", "");
    assert_eq!(bench.turns_of(Role::Implementer, "T-1").len(), 3);
    assert_eq!(bench.state.tasks[&id("T-1")].status, TaskStatus::Failed);
}

/// P1: no verifier is paid for a commit whose commands failed, and nothing is integrated.
#[test]
fn failed_evidence_reverts_without_a_verifier_turn() {
    let mut bench = Bench::dag();
    bench.evidence("T-1", 1..=1, 1);
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.happened("gate blocked:EVIDENCE_FAILED"), 1);
    assert_eq!(bench.turns_of(Role::Verifier, "T-1").len(), 1);
    assert!(bench.turns_of(Role::Implementer, "T-1")[1].prompt.contains("assertion failed"));
    assert_eq!(bench.happened("accept all_tasks_done"), 1);
}

/// P1: a candidate with another tree than the verified one is proven again; failing there is a revert.
#[test]
fn a_changed_tree_is_proven_again() {
    let mut bench = Bench::dag();
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::BuildCandidate(_) => Some(Outcome::Candidate(CandidateOutcome::Built {
            commit: super::bench::commit(77),
            tree: "another-tree".into(),
        })),
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.until("build_candidate", "");
    let build = bench.state.pending.values().next().cloned().unwrap();
    bench.answer(&build);
    assert_eq!(bench.state.attempts[&id("T-1")].stage, Stage::Reproving);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    let proofs = bench.effects.iter().filter(|e| matches!(&e.kind, EffectKind::CollectEvidence(_))).count();
    assert_eq!(proofs, 3, "baseline, trial, candidate");
}

/// Readings 004-4: a change that the head has already is done only with evidence there; an empty one is a revert.
#[test]
fn already_applied_needs_evidence_and_no_change_is_a_revert() {
    let mut bench = Bench::dag();
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::BuildCandidate(r) if r.attempt == 1 => Some(Outcome::Candidate(CandidateOutcome::NoChange)),
        EffectKind::BuildCandidate(_) => Some(Outcome::Candidate(CandidateOutcome::AlreadyApplied)),
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.happened("candidate no_change"), 1);
    assert_eq!(bench.happened("candidate already_applied"), 1);
    assert_eq!(bench.happened("integrated advanced"), 0);
    let task = &bench.state.tasks[&id("T-1")];
    assert_eq!(task.status, TaskStatus::Done);
    assert_eq!(task.integrated_commit, bench.state.head.head);
    let on_head = bench.effects.iter().any(|e| {
        matches!(&e.kind, EffectKind::CollectEvidence(r) if r.commit == super::bench::commit(1) && r.task.is_some())
    });
    assert!(on_head, "the head was proven");
}

/// Weaknesses 14, 15, 17: role, task, attempt and commit come from the turn; a report that disagrees is repaired once, then fails.
#[test]
fn a_report_that_disagrees_with_its_turn_is_invalid() {
    let mut bench = Bench::dag();
    bench.policy.fault_retries = 0;
    bench.turn(Role::Implementer, |request| {
        let (mut report, facts) = implemented(request);
        report.attempt = 7;
        let mut turn = ended(Ok(Report::Implementer(report)));
        turn.tree = Some(facts);
        (request.attempt == 1).then(|| Outcome::TurnEnded(Box::new(turn)))
    });
    bench.start(PlanFile::Missing);
    bench.go();
    let turns = bench.turns_of(Role::Implementer, "T-1");
    assert!(turns[1].repair && turns[1].prompt.contains("attempt"), "{}", turns[1].prompt);
    assert_eq!(bench.happened("revert retry_task"), 1);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// S4-023, weaknesses 15: an implementer that claims to be the verifier accepts nothing.
#[test]
fn a_report_of_another_role_is_invalid() {
    let mut bench = Bench::dag();
    bench.turn(Role::Implementer, |request| {
        let report = verdict(request, Verdict::Accept, RecoverySignal::None);
        (request.attempt == 1).then(|| Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report))))))
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert!(bench.happened("turn failed:invalid_report") >= 2);
    assert_eq!(bench.state.tasks[&id("T-1")].attempts, 2);
}

/// S4-015 and the verbs of DESIGN 4: stop interrupts, keeps the stage, and start goes on from there.
#[test]
fn stop_keeps_the_stage_and_start_goes_on() {
    let mut bench = Bench::dag();
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    let turn = bench.until("run_turn", "T-1");
    let result = bench.feed(InputKind::Command(Command::Stop { now: false }));
    assert_eq!(result.cancel.len(), 1);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Running, "something is in flight");
    bench.feed(InputKind::Effect { id: turn.id, outcome: Box::new(Outcome::Interrupted) });
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Stopped);
    assert!(bench.state.pending.is_empty());
    assert_eq!(bench.state.attempts[&id("T-1")].stage, Stage::Implementing);
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.state.tasks[&id("T-1")].attempts, 1, "an interrupted turn costs no attempt");
}

/// DESIGN 4: pause starts nothing new and lets live turns end; cancel is final and keeps the work.
#[test]
fn pause_lets_turns_end_and_cancel_is_final() {
    let mut bench = Bench::dag();
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    let turn = bench.until("run_turn", "T-1");
    bench.feed(InputKind::Command(Command::Pause));
    bench.answer(&turn);
    assert!(bench.state.pending.is_empty(), "the live turn ended and nothing began");
    assert_eq!(bench.reason(), "user_paused");
    bench.feed(InputKind::Command(Command::Cancel));
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Cancelled);
    assert!(bench.effects.iter().any(|e| matches!(&e.kind, EffectKind::RemoveTree { keep: Some(_), .. })));
    bench.start(PlanFile::Missing);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Cancelled);
}
