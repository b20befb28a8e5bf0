//! Landing: pending never blocks, a moved target is never overwritten, what was rebuilt is proven again.

use harness_proto::vocab::{LandMode, Lifecycle};

use super::bench::{Bench, commit, plan, ran};
use crate::effect::{EffectKind, Purpose};
use crate::input::{Command, InputKind, LandOutcome, Outcome, PlanFile, RestackOutcome};

fn landing(bench: &mut Bench, answer: impl Fn(u32) -> Option<LandOutcome> + 'static) {
    let count = std::cell::Cell::new(0);
    bench.rule(move |effect, _| match &effect.kind {
        EffectKind::Land { .. } => {
            count.set(count.get() + 1);
            answer(count.get()).map(Outcome::Land)
        }
        _ => None,
    });
}

fn local_changes() -> LandOutcome {
    LandOutcome::Pending { why: "local_changes".into(), paths: vec!["a.py".into()], command: "git stash".into() }
}

/// P3, ux 10: a dirty checkout never blocks a run; it completes, says so, and `start` lands later.
#[test]
fn a_pending_landing_does_not_keep_a_run_from_completing() {
    let mut bench = Bench::dag();
    landing(&mut bench, |n| (n <= 2).then(local_changes));
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &[])])));
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.happened("landed pending:local_changes"), 1, "told once");
    assert_eq!(bench.state.head.unlanded.len(), 2);
    assert!(bench.state.head.landing.retry_at.is_some());
    bench.feed(InputKind::Command(Command::Land));
    bench.go();
    assert!(bench.state.head.unlanded.is_empty());
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// DESIGN 6: where the user committed meanwhile, pending commits are rebuilt on it in order, evidence at the tip.
#[test]
fn a_moved_target_is_rebuilt_on_and_proven() {
    let mut bench = Bench::dag();
    landing(&mut bench, |n| (n == 1).then(|| LandOutcome::TargetMoved { tip: commit(99), descends: true }));
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"])])));
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert_eq!(bench.happened("integrated restacked"), 1);
    let proofs = bench
        .effects
        .iter()
        .filter(|e| matches!(&e.kind, EffectKind::CollectEvidence(r) if r.purpose == Purpose::Restack));
    assert_eq!(proofs.count(), 1);
    let onto: Vec<_> = bench
        .effects
        .iter()
        .filter_map(|e| match &e.kind {
            EffectKind::Restack { onto, .. } => Some(onto.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(onto, [commit(99)]);
    let from_tip =
        bench.effects.iter().any(|e| matches!(&e.kind, EffectKind::Land { from, .. } if *from == commit(99)));
    assert!(from_tip, "the next landing expects the user's tip");
}

/// P1: rebuilt commits whose commands fail never land; the user is told how to get at the work.
#[test]
fn failing_rebuilt_commits_wait_for_the_user() {
    let mut bench = Bench::dag();
    landing(&mut bench, |n| (n == 1).then(|| LandOutcome::TargetMoved { tip: commit(99), descends: true }));
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::CollectEvidence(r) if r.purpose == Purpose::Restack => Some(Outcome::EvidenceCollected {
            tree: "tree-rebuilt".into(),
            setup: Vec::new(),
            runs: vec![ran("make test", 1)],
        }),
        _ => None,
    });
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"])])));
    bench.go();
    assert_eq!(bench.reason(), "restack_evidence_failed");
    assert_eq!(bench.state.head.landed, commit(1));
    assert!(bench.state.head.hold.as_ref().unwrap().next.contains("recover"));
}

/// A rebuild that conflicts names the paths and holds the run; nothing is overwritten.
#[test]
fn a_conflicting_rebuild_waits_for_the_user() {
    let mut bench = Bench::dag();
    landing(&mut bench, |n| (n == 1).then(|| LandOutcome::TargetMoved { tip: commit(99), descends: false }));
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::Restack { commits, .. } => Some(Outcome::Restack(RestackOutcome::Conflicted {
            commit: commits[0].clone(),
            paths: vec!["shared.py".into()],
        })),
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.reason(), "restack_conflict");
    assert!(bench.state.head.hold.as_ref().unwrap().detail.contains("shared.py"));
}

/// The same after the run completed: the user moved the branch while the landing waited.
#[test]
fn a_completed_run_is_rebuilt_and_landed_too() {
    let mut bench = Bench::dag();
    landing(&mut bench, |n| match n {
        1 => Some(local_changes()),
        2 => Some(LandOutcome::TargetMoved { tip: commit(99), descends: true }),
        _ => None,
    });
    bench.start(PlanFile::Missing);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    bench.now = bench.state.next_deadline().unwrap();
    bench.feed(InputKind::Tick);
    bench.go();
    assert_eq!(bench.happened("integrated restacked"), 1);
    assert!(bench.state.head.unlanded.is_empty());
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// DESIGN 6: `land: end` lands once, `land: manual` only on request.
#[test]
fn landing_follows_its_mode() {
    for (mode, landings) in [(LandMode::Each, 2), (LandMode::End, 1), (LandMode::Manual, 0)] {
        let mut bench = Bench::dag();
        bench.policy.land = mode;
        bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"])])));
        bench.go();
        assert_eq!(bench.happened("landed done"), landings, "{mode}");
        assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed, "{mode}");
        bench.feed(InputKind::Command(Command::Land));
        bench.go();
        assert!(bench.state.head.unlanded.is_empty(), "{mode}");
    }
}
