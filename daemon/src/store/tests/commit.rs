//! `commit_step` and `commit_control`: all or nothing, under the fence.

use harness_core::state::{Attempt, Feedback, Stage, Task};
use harness_core::step::TurnRow;
use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::vocab::{Kind, Role, TaskStatus};

use super::super::{CommitError, QueueState, RequestState};
use super::*;

fn task(id: &str) -> Task {
    Task {
        plan: PlannedTask {
            id: TaskId::parse(id).unwrap(),
            title: "t".into(),
            description: "d".into(),
            acceptance_criteria: vec!["c".into()],
            status: TaskStatus::Pending,
            priority: 100,
            dependencies: vec![],
            verification: vec![],
            setup: vec![],
            requirements: vec![],
            files_touched: vec![],
            repair_target: None,
            extra: serde_json::Map::new(),
        },
        status: TaskStatus::InProgress,
        attempts: 1,
        attempts_max: 3,
        last_attempt_commit: String::new(),
        last_verdict: None,
        integrated_commit: String::new(),
        blocked_reason: String::new(),
        integration_conflict: Value::Null,
        resolved_by: None,
        feedback: Feedback::default(),
        signatures: vec![],
        session: None,
        requeues: 0,
        unproven: false,
    }
}

fn attempt(id: &str, number: u32, outcome: &str) -> Attempt {
    Attempt {
        task: TaskId::parse(id).unwrap(),
        number,
        stage: Stage::Implementing,
        effect: None,
        retry_at: None,
        tree: format!("{id}-a{number}"),
        base: "b".into(),
        trial: String::new(),
        trial_tree: String::new(),
        changed: vec![],
        summary: String::new(),
        claims: (vec![], vec![]),
        evidence: vec![],
        verdict_summary: String::new(),
        candidate: String::new(),
        candidate_tree: String::new(),
        already_applied: false,
        faults: 0,
        lost: 0,
        report_errors: vec![],
        session: None,
        turn: 0,
        outcome: outcome.into(),
        started_at: T0,
    }
}

#[tokio::test]
async fn a_step_is_stored_whole_and_loads_equal() {
    let (dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let (mut state, mut step) = moved(&loaded.state, Lifecycle::Running);
    let t = TaskId::parse("T-1").unwrap();
    state.tasks.insert(t.clone(), task("T-1"));
    state.attempts.insert(t.clone(), attempt("T-1", 2, ""));
    state.pending.insert(EffectId(2), effect(2));
    // The open attempt is named before the closed one: the order must not matter.
    step.changes.push(Change::Task(t.clone()));
    step.changes.push(Change::Attempt(t.clone()));
    step.changes.push(Change::AttemptClosed(Box::new(attempt("T-1", 1, "reverted"))));
    step.effects = vec![effect(1), effect(2)];
    step.finished = vec![EffectId(1)];
    let seq = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await.unwrap();
    assert_eq!(seq, Seq(1));

    store.close().await;
    let store = Store::open(dir.path()).await.unwrap();
    let again = store.load(&lease.run).await.unwrap();
    let expected = RunState::from_rows(
        state.head.clone(),
        state.tasks.into_values(),
        state.attempts.into_values(),
        state.pending.into_values(),
    );
    assert_eq!(again.state, expected);
    assert_eq!(again.inputs, 1);
    assert_eq!(again.fence, lease.fence);
    assert_eq!(store.attempts(&lease.run, &t).await.unwrap().len(), 2);
    assert_eq!(store.events(&lease.run, Seq(0), 10).await.unwrap(), step.events);
    let inputs = store.inputs(&lease.run, 0, 10).await.unwrap();
    assert_eq!((inputs[0].ord, &inputs[0].input), (1, &input()));
    assert_eq!(store.origin(&lease.run).await.unwrap().head, head(&lease.run));
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_late_driver_is_fenced_off_and_changes_nothing() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let taken = store.takeover("daemon-2").await.unwrap();
    assert_eq!(taken, [Claimed { run: lease.run.clone(), fence: Fence(lease.fence.0 + 1) }]);
    let (state, step) = moved(&loaded.state, Lifecycle::Running);
    let late = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await;
    assert!(matches!(late, Err(CommitError::Fenced { .. })), "{late:?}");
    assert!(matches!(store.release(&lease.run, lease.fence, T0).await, Err(CommitError::Fenced { .. })));
    assert_eq!(store.load(&lease.run).await.unwrap().state, loaded.state);
    assert_eq!(store.inputs(&lease.run, 0, 10).await.unwrap(), []);
    // After a release the fence is the same, but nobody may write under it.
    store.release(&lease.run, taken[0].fence, T0).await.unwrap();
    let after = store.commit_step(&lease.run, taken[0].fence, None, &step, &state).await;
    assert!(matches!(after, Err(CommitError::Fenced { .. })), "{after:?}");
}

#[tokio::test]
async fn gaps_and_misfits_are_refused_and_roll_back() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let (mut state, mut step) = moved(&loaded.state, Lifecycle::Running);
    step.events[0].seq = Seq(2);
    state.head.seq = Seq(2);
    let gap = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await;
    assert!(matches!(gap, Err(CommitError::SeqGap { stored: 0, first: 2, last: 2 })), "{gap:?}");
    step.events.clear();
    let silent = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await;
    assert!(matches!(silent, Err(CommitError::SeqGap { .. })), "{silent:?}");
    let (state, mut step) = moved(&loaded.state, Lifecycle::Running);
    step.finished = vec![EffectId(9)];
    let misfit = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await;
    assert!(matches!(misfit, Err(CommitError::Misfit(_))), "{misfit:?}");
    step.finished.clear();
    step.changes.push(Change::Task(TaskId::parse("T-9").unwrap()));
    let absent = store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await;
    assert!(matches!(absent, Err(CommitError::Misfit(_))), "{absent:?}");
    assert_eq!(store.load(&lease.run).await.unwrap().inputs, 0);
    // The writer goes on.
    advance(&store, &lease.run, lease.fence, Lifecycle::Running).await;
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_control_never_races_a_driver() {
    let (_dir, store) = fresh().await;
    let id = run(1);
    store.register(new_run(&id, "r")).await.unwrap();
    let loaded = store.load(&id).await.unwrap();
    let (state, step) = moved(&loaded.state, Lifecycle::Queued);
    store.commit_control(&id, loaded.fence, &input(), &step, &state, None).await.unwrap();
    let row = store.run(&id).await.unwrap().unwrap();
    assert_eq!((row.queue, row.fence), (QueueState::Ready, Fence(loaded.fence.0 + 1)));
    // A second control that was decided on the old state is refused.
    let stale = store.commit_control(&id, loaded.fence, &input(), &step, &state, None).await;
    assert!(matches!(stale, Err(CommitError::Fenced { .. })), "{stale:?}");
    let lease = store.claim(OWNER, T0).await.unwrap().unwrap();
    let loaded = store.load(&id).await.unwrap();
    let (state, step) = moved(&loaded.state, Lifecycle::Stopped);
    let driven = store.commit_control(&id, loaded.fence, &input(), &step, &state, None).await;
    assert!(matches!(driven, Err(CommitError::Driven)), "{driven:?}");
    store.commit_step(&id, lease.fence, Some(&input()), &step, &state).await.unwrap();
    store.release(&id, lease.fence, T0).await.unwrap();
    assert_eq!(store.run(&id).await.unwrap().unwrap().queue, QueueState::Idle);
    assert_eq!(store.claim(OWNER, T0).await.unwrap(), None);
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_request_is_applied_once_and_answered_the_same() {
    let (_dir, store) = fresh().await;
    let key = request("k1");
    assert_eq!(store.begin_request(&key, T0).await.unwrap(), RequestState::New);
    let mut new = new_run(&run(1), "r");
    new.request = Some(key.clone());
    let first = store.register(new.clone()).await.unwrap();
    // The daemon died before it answered; the client repeats with a new run id.
    let unfinished = store.begin_request(&key, T0).await.unwrap();
    assert_eq!(unfinished, RequestState::Unfinished { run: Some(run(1)), applied: true });
    new.head = head(&run(2));
    let second = store.register(new.clone()).await.unwrap();
    assert!(!first.repeated && second.repeated);
    assert_eq!(second.run, first.run);
    store.finish_request(&key, &json!({"run": run(1)})).await.unwrap();
    assert_eq!(store.begin_request(&key, T0).await.unwrap(), RequestState::Repeat(json!({"run": run(1)})));
    let other = RequestKey { body_hash: "other".into(), ..key };
    assert_eq!(store.begin_request(&other, T0).await.unwrap(), RequestState::Conflict);
    new.request = Some(other);
    assert_eq!(store.register(new).await.unwrap_err().code(), "request_conflict");

    let control = request("k2");
    store.begin_request(&control, T0).await.unwrap();
    let loaded = store.load(&run(1)).await.unwrap();
    let (state, step) = moved(&loaded.state, Lifecycle::Queued);
    store.commit_control(&run(1), loaded.fence, &input(), &step, &state, Some(&control)).await.unwrap();
    let known = store.begin_request(&control, T0).await.unwrap();
    assert_eq!(known, RequestState::Unfinished { run: Some(run(1)), applied: true });
    assert_eq!(store.forget_requests(Millis(T0.0 + 1)).await.unwrap(), 2);
}

#[tokio::test]
async fn finished_effects_keep_their_name_and_lose_their_payload() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let (state, mut step) = moved(&loaded.state, Lifecycle::Running);
    step.effects = vec![effect(1)];
    let mut with = state.clone();
    with.pending.insert(EffectId(1), effect(1));
    store.commit_step(&lease.run, lease.fence, None, &step, &with).await.unwrap();
    assert_eq!(store.load(&lease.run).await.unwrap().state.pending.len(), 1);
    let (state, mut step) = moved(&state, Lifecycle::Running);
    step.finished = vec![EffectId(1)];
    store.commit_step(&lease.run, lease.fence, None, &step, &state).await.unwrap();
    assert_eq!(store.load(&lease.run).await.unwrap().state.pending.len(), 0);
    let row: (String, String, String) =
        sqlx::query_as("SELECT name, state, body FROM effects").fetch_one(store.readers()).await.unwrap();
    assert_eq!(row, ("advance_integration".into(), "done".into(), String::new()));
}

#[tokio::test]
async fn a_turn_that_never_began_cannot_end() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let (state, mut step) = moved(&loaded.state, Lifecycle::Running);
    step.changes.push(Change::TurnEnded(Box::new(super::reads::ended(1))));
    let refused = store.commit_step(&lease.run, lease.fence, None, &step, &state).await;
    assert!(matches!(refused, Err(CommitError::Misfit(_))), "{refused:?}");
    let begun = TurnRow {
        turn: 1,
        effect: EffectId(1),
        role: Role::Planner,
        kind: Kind::Plan,
        task: None,
        attempt: 0,
        commit: "c".into(),
        template: "t".into(),
        at: T0,
    };
    step.changes.insert(0, Change::TurnStarted(begun));
    store.commit_step(&lease.run, lease.fence, None, &step, &state).await.unwrap();
}
