//! Sound states pass; each broken invariant is found.

use harness_proto::ids::Millis;
use harness_proto::vocab::{HoldKind, Owner};

use super::*;
use crate::effect::Effect;
use crate::fixtures::{attempt, id, policy, state, task};
use crate::state::Hold;

fn sound() -> RunState {
    let mut done = task("A", &[], TaskStatus::Done);
    done.attempts = 1;
    done.integrated_commit = "f".repeat(40);
    let mut open = attempt("B", 1, Stage::Preparing);
    open.effect = Some(EffectId(9));
    let mut working = task("B", &["A"], TaskStatus::InProgress);
    working.attempts = 1;
    let rows = vec![done, working, task("C", &["B"], TaskStatus::Pending), task("D", &["A"], TaskStatus::Ready)];
    let mut state = state(rows, vec![open]);
    put(&mut state, 9, EffectKind::PrepareTree { tree: "B-a1".into(), commit: "b".repeat(40) });
    state
}

fn put(state: &mut RunState, number: i64, kind: EffectKind) {
    state.pending.insert(EffectId(number), Effect { id: EffectId(number), at: Millis(0), kind });
}

#[test]
fn a_sound_state_passes() {
    assert_eq!(audit(&sound(), &policy()), [] as [String; 0]);
}

#[test]
fn every_broken_invariant_is_found() {
    type Break = fn(&mut RunState);
    let cases: &[(&str, Break)] = &[
        ("waits for effect 9, which is not pending", |s| s.pending.clear()),
        ("is outside 1 to 9", |s| put(s, 12, EffectKind::Finish)),
        ("nobody waits for effect 8: land", |s| {
            put(s, 8, EffectKind::Land { from: String::new(), to: String::new() });
        }),
        ("wait for the same effect", |s| s.head.landing.effect = Some(EffectId(9))),
        ("its status is ready", |s| task_of(s, "B").status = TaskStatus::Ready),
        ("in_progress without an open attempt", |s| task_of(s, "D").status = TaskStatus::InProgress),
        ("is outside 1 to 3", |s| s.attempts.get_mut(&id("B")).expect("there").number = 4),
        ("made 9 attempts, allowed are 3", |s| task_of(s, "C").attempts = 9),
        ("before its dependency A is done", |s| task_of(s, "A").status = TaskStatus::Failed),
        ("done without an integrated commit", |s| task_of(s, "A").integrated_commit.clear()),
        ("resolved by C, which is not done", |s| task_of(s, "A").resolved_by = Some(id("C"))),
        ("the index has []", |s| s.ready.clear()),
        ("by its dependencies it is not", |s| task_of(s, "C").status = TaskStatus::Ready),
        ("tasks are open, the counter says 7", |s| s.open_count = 7),
        ("tasks are done, the counter says 7", |s| s.done_count = 7),
        ("the index of dependants differs", |s| s.dependants.clear()),
        ("waits for prepare_tree", |s| s.attempts.get_mut(&id("B")).expect("there").stage = Stage::Proving),
        ("open and decided", |s| s.attempts.get_mut(&id("B")).expect("there").outcome = "accepted".into()),
        ("runs beside an open attempt", |s| {
            s.head.planner.effect = Some(EffectId(9));
        }),
        ("completed with open attempts", |s| s.head.lifecycle = Lifecycle::Completed),
        ("without a reason", |s| s.head.lifecycle = Lifecycle::Cancelled),
        ("the last commit to land is x", |s| s.head.unlanded = vec!["x".into()]),
        ("lacks a reason, a sentence or a next command", |s| {
            s.head.hold = Some(Hold {
                kind: HoldKind::NeedsHuman,
                owner: Owner::User,
                reason: "plan_invalid".into(),
                detail: "d".into(),
                until: None,
                next: String::new(),
                since: Millis(0),
            });
        }),
    ];
    for (part, change) in cases {
        let mut state = sound();
        change(&mut state);
        let found = audit(&state, &policy());
        assert!(found.iter().any(|problem| problem.contains(part)), "{part} is not in {found:?}");
    }
}

fn task_of<'a>(state: &'a mut RunState, name: &str) -> &'a mut Task {
    state.tasks.get_mut(&id(name)).expect("there")
}

#[test]
fn more_attempts_than_allowed_are_found() {
    let rows = vec![task("A", &[], TaskStatus::InProgress), task("B", &[], TaskStatus::InProgress)];
    let open = vec![attempt("A", 1, Stage::Implementing), attempt("B", 1, Stage::Implementing)];
    let state = state(rows, open);
    assert_eq!(audit(&state, &policy()), ["2 attempts are open, max_parallel is 1"]);
    let mut wide = policy();
    wide.max_parallel = 2;
    assert_eq!(audit(&state, &wide), [] as [String; 0]);
}
