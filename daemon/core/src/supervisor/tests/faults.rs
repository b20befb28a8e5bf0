//! Faults: limits, lost turns, environments, budgets, faults of the runtime. None is unbounded, none costs what it should not.

use harness_proto::ids::{Millis, TaskId};
use harness_proto::plan::Check;
use harness_proto::vocab::{FailureKind, HoldKind, Lifecycle, Role, TaskStatus};

use super::bench::{Bench, failed, plan, ran};
use crate::effect::{EffectKind, Purpose};
use crate::input::{Fault, InputKind, Outcome, PlanFile};

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// DESIGN 12: a usage limit parks the run until its reset, costs no attempt, and goes on by itself.
#[test]
fn a_usage_limit_parks_until_its_reset() {
    let mut bench = Bench::dag();
    let reset = Millis(bench.now.0 + 5 * 3_600_000);
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    let turn = bench.until("run_turn", "T-1");
    let limited = failed(FailureKind::UsageLimited, Some(reset));
    bench.feed(InputKind::Effect { id: turn.id, outcome: Box::new(limited) });
    let hold = bench.state.head.hold.clone().unwrap();
    assert_eq!((hold.kind, hold.until), (HoldKind::Parked, Some(reset)));
    assert_eq!(bench.state.next_deadline(), Some(reset));
    bench.feed(InputKind::Tick);
    assert!(bench.state.head.hold.is_some(), "it is not time yet");
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.state.tasks[&id("T-1")].attempts, 1);
}

/// DESIGN 12: without a login nothing is tried again; the hold names the command.
#[test]
fn a_missing_login_waits_for_the_user() {
    let mut bench = Bench::dag();
    bench.turn(Role::Planner, |_| Some(failed(FailureKind::Auth, None)));
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.reason(), "auth_required");
    assert!(bench.state.head.hold.as_ref().unwrap().next.contains("codex login"));
    assert_eq!(bench.turns.len(), 1);
}

/// S4-061: a turn that fails is repeated with a delay; after that the attempt is lost, not the run (weaknesses 4, 5).
#[test]
fn a_failing_turn_costs_its_attempt_and_nothing_else() {
    let mut bench = Bench::dag();
    bench.policy.fault_retries = 1;
    bench.turn(Role::Implementer, |r| (r.attempt == 1).then(|| failed(FailureKind::Crashed, None)));
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.happened("turn failed:crashed"), 2);
    assert_eq!(bench.happened("retry crashed"), 1);
    assert_eq!(bench.happened("revert retry_task"), 1);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// A verifier that cannot be run is the planner's to solve; the implementer's attempt is not blamed.
#[test]
fn a_failing_verifier_blocks_its_task_for_the_planner() {
    let mut bench = Bench::dag();
    bench.policy.fault_retries = 0;
    bench.turn(Role::Verifier, |r| (r.attempt == 1).then(|| failed(FailureKind::Protocol, None)));
    let again = plan(&[("T-1", &[])]).replace("\"pending\"", "\"ready\"");
    bench.turn(Role::Planner, move |_| Some(super::bench::planned(&again, 2)));
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.go();
    assert_eq!(bench.happened("recovery verifier_turn_failed"), 1);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// DESIGN 4: a lost turn is repeated in the same attempt; the third loss costs the attempt.
#[test]
fn the_third_lost_turn_costs_the_attempt() {
    let mut bench = Bench::dag();
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    for lost in 1..=2 {
        bench.until("run_turn", "T-1");
        bench.crash();
        assert_eq!(bench.state.attempts[&id("T-1")].number, 1, "after {lost}");
    }
    bench.until("run_turn", "T-1");
    bench.crash();
    assert_eq!(bench.happened("turn lost"), 3);
    assert_eq!(bench.happened("revert retry_task"), 1);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.state.tasks[&id("T-1")].attempts, 2);
}

/// DESIGN 8: a setup that fails on the base parks the run before any agent is paid.
#[test]
fn a_failing_baseline_parks_before_any_turn() {
    let mut bench = Bench::dag();
    bench.policy.setup = vec![Check::shell("npm ci")];
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::CollectEvidence(r) if r.purpose == Purpose::Baseline => {
            Some(Outcome::EvidenceCollected { tree: "t".into(), setup: vec![ran("npm ci", 1)], runs: Vec::new() })
        }
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.reason(), "environment_not_ready");
    assert!(bench.turns.is_empty());
}

/// DESIGN 8: a suite that fails on the base is noted; the work may mend it.
#[test]
fn a_red_suite_on_the_base_is_noted_and_the_run_goes_on() {
    let mut bench = Bench::dag();
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::CollectEvidence(r) if r.purpose == Purpose::Baseline => {
            Some(Outcome::EvidenceCollected { tree: "t".into(), setup: Vec::new(), runs: vec![ran("make test", 2)] })
        }
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.baseline.failing, ["make test"]);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// DESIGN 4: an environment failure in evidence is tried again, then the run waits; no attempt is spent, no code rewritten.
#[test]
fn an_environment_failure_costs_no_attempt() {
    let mut bench = Bench::dag();
    bench.policy.fault_retries = 1;
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::CollectEvidence(r) if r.purpose == Purpose::Trial => {
            let mut run = ran("make test", 1);
            run.stderr = "npm ERR! getaddrinfo EAI_AGAIN registry.npmjs.org".into();
            Some(Outcome::EvidenceCollected { tree: String::new(), setup: Vec::new(), runs: vec![run] })
        }
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.reason(), "environment_not_ready");
    assert_eq!(bench.turns_of(Role::Implementer, "T-1").len(), 1);
    assert_eq!(bench.state.tasks[&id("T-1")].attempts, 1);
    assert_eq!(bench.happened("evidence environment"), 2);
}

/// S4-061: what the runtime cannot do is tried again, then the run is held with owner, reason and command.
#[test]
fn a_fault_of_the_runtime_holds_the_run() {
    let mut bench = Bench::dag();
    bench.policy.fault_retries = 1;
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::PrepareTree { .. } => Some(Outcome::Fault(Fault {
            code: "disk_full".into(),
            detail: "no space left".into(),
            next: "free space".into(),
            retryable: true,
        })),
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    let hold = bench.state.head.hold.clone().unwrap();
    assert_eq!((hold.kind, hold.reason.as_str(), hold.next.as_str()), (HoldKind::Recovery, "disk_full", "free space"));
    assert_eq!(bench.happened("retry disk_full"), 1);
}

/// P6: turns are bounded; `start` grants the same number again.
#[test]
fn a_used_up_budget_is_granted_again_by_start() {
    let mut bench = Bench::dag();
    bench.policy.max_turns = 2;
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.reason(), "budget_exhausted");
    assert_eq!(bench.turns.len(), 2);
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// Profiles field 48: `block` ends the run as failed with its dependants blocked, no planner turn.
#[test]
fn on_exhausted_block_fails_the_run() {
    let mut bench = Bench::dag();
    bench.policy.on_exhausted = crate::policy::OnExhausted::Block;
    bench.policy.max_attempts = 1;
    bench.evidence("T-1", 1..=9, 1);
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"]), ("T-3", &[])])));
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Failed);
    assert_eq!(bench.state.tasks[&id("T-2")].status, TaskStatus::Blocked);
    assert_eq!(bench.state.tasks[&id("T-3")].status, TaskStatus::Done);
    assert!(bench.turns.iter().all(|t| t.role != Role::Planner));
}
