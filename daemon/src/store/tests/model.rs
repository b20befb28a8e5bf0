//! The queue against a reference model: random submit, claim, crash, takeover, cancel, finish (T12).

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::super::{CommitError, QueueState};
use super::*;

const REPOS: u32 = 3;

#[derive(Debug, Clone, Copy)]
enum Action {
    /// Register in a repository with a priority, and start.
    Submit(u32, i64),
    /// Claim the next.
    Claim,
    /// A driver commits a step; an old driver (the fence before) tries too.
    Work(usize),
    /// A driver ends its run.
    Finish(usize),
    /// A driver gives its run back unfinished.
    Release(usize),
    /// The user gives a run up that nobody drives.
    Cancel(usize),
    /// The daemon dies and the next takes over.
    Crash,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..REPOS, 0..3i64).prop_map(|(r, p)| Action::Submit(r, p)),
        4 => Just(Action::Claim),
        3 => any::<usize>().prop_map(Action::Work),
        2 => any::<usize>().prop_map(Action::Finish),
        1 => any::<usize>().prop_map(Action::Release),
        1 => any::<usize>().prop_map(Action::Cancel),
        1 => Just(Action::Crash),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct ModelRun {
    repo: u32,
    priority: i64,
    queued_at: i64,
    /// queued, driven, over.
    at: Place,
    fence: i64,
    seq: i64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Queued,
    Driven,
    Over,
}

#[derive(Default)]
struct Model {
    runs: BTreeMap<u32, ModelRun>,
    clock: i64,
}

impl Model {
    fn pick(&self, place: Place, n: usize) -> Option<u32> {
        let found: Vec<u32> = self.runs.iter().filter(|(_, r)| r.at == place).map(|(n, _)| *n).collect();
        if found.is_empty() { None } else { Some(found[n % found.len()]) }
    }

    /// The best queued run of each repository that nobody works in, and of those the best.
    fn next(&self) -> Option<u32> {
        let busy = |repo| self.runs.values().any(|r| r.repo == repo && r.at == Place::Driven);
        let queued = self.runs.iter().filter(|(_, r)| r.at == Place::Queued && !busy(r.repo));
        queued.min_by_key(|(n, r)| (-r.priority, r.queued_at, **n)).map(|(n, _)| *n)
    }
}

async fn apply(dir: &TempDir, store: &mut Store, model: &mut Model, action: Action) {
    model.clock += 1;
    let now = Millis(T0.0 + model.clock);
    match action {
        Action::Submit(repo, priority) => submit(store, model, repo, priority, now).await,
        Action::Claim => {
            let expected = model.next();
            let claimed = store.claim(OWNER, now).await.unwrap();
            assert_eq!(claimed.as_ref().map(|c| c.run.clone()), expected.map(run));
            if let (Some(claimed), Some(n)) = (claimed, expected) {
                let row = model.runs.get_mut(&n).unwrap();
                row.fence += 1;
                row.at = Place::Driven;
                assert_eq!(claimed.fence.0, row.fence);
            }
        }
        Action::Work(pick) | Action::Finish(pick) => {
            let Some(n) = model.pick(Place::Driven, pick) else {
                return;
            };
            let over = matches!(action, Action::Finish(_));
            let row = model.runs.get_mut(&n).unwrap();
            let loaded = store.load(&run(n)).await.unwrap();
            let (state, step) = moved(&loaded.state, if over { Lifecycle::Completed } else { Lifecycle::Running });
            let late = store.commit_step(&run(n), Fence(row.fence - 1), None, &step, &state).await;
            assert!(matches!(late, Err(CommitError::Fenced { .. })));
            store.commit_step(&run(n), Fence(row.fence), Some(&input()), &step, &state).await.unwrap();
            row.seq += 1;
            if over {
                store.release(&run(n), Fence(row.fence), now).await.unwrap();
                row.at = Place::Over;
            }
        }
        Action::Release(pick) => {
            let Some(n) = model.pick(Place::Driven, pick) else {
                return;
            };
            let row = model.runs.get_mut(&n).unwrap();
            store.release(&run(n), Fence(row.fence), now).await.unwrap();
            (row.at, row.queued_at) = (Place::Queued, now.0);
        }
        Action::Cancel(pick) => {
            let Some(n) = model.pick(Place::Queued, pick) else {
                return;
            };
            let loaded = store.load(&run(n)).await.unwrap();
            let (mut state, step) = moved(&loaded.state, Lifecycle::Cancelled);
            state.head.updated_at = now;
            store.commit_control(&run(n), loaded.fence, &input(), &step, &state, None).await.unwrap();
            let row = model.runs.get_mut(&n).unwrap();
            (row.at, row.fence, row.seq) = (Place::Over, row.fence + 1, row.seq + 1);
        }
        Action::Crash => crash(dir, store, model).await,
    }
}

async fn submit(store: &Store, model: &mut Model, repo: u32, priority: i64, now: Millis) {
    let n = u32::try_from(model.runs.len()).unwrap();
    let mut new = new_run(&run(n), &format!("r{repo}"));
    new.priority = priority;
    store.register(new).await.unwrap();
    let loaded = store.load(&run(n)).await.unwrap();
    let (mut state, step) = moved(&loaded.state, Lifecycle::Queued);
    state.head.updated_at = now;
    store.commit_control(&run(n), loaded.fence, &input(), &step, &state, None).await.unwrap();
    let row = ModelRun { repo, priority, queued_at: now.0, at: Place::Queued, fence: 1, seq: 1 };
    model.runs.insert(n, row);
}

/// The store is dropped without a word, as by kill -9: nothing of it may be needed.
async fn crash(dir: &TempDir, store: &mut Store, model: &mut Model) {
    *store = Store::open(dir.path()).await.unwrap();
    let mut taken: Vec<(RunId, i64)> =
        store.takeover("next").await.unwrap().into_iter().map(|c| (c.run, c.fence.0)).collect();
    let mut expected = Vec::new();
    for (n, row) in model.runs.iter_mut().filter(|(_, r)| r.at == Place::Driven) {
        row.fence += 1;
        expected.push((run(*n), row.fence));
    }
    taken.sort();
    expected.sort();
    assert_eq!(taken, expected);
}

async fn compare(store: &Store, model: &Model) {
    for (n, row) in &model.runs {
        let stored = store.run(&run(*n)).await.unwrap().unwrap();
        assert_eq!((stored.fence.0, stored.seq.0), (row.fence, row.seq), "run {n}");
        let fits = match row.at {
            Place::Queued => matches!(stored.queue, QueueState::Ready | QueueState::Waiting),
            Place::Driven => stored.queue == QueueState::Leased,
            Place::Over => stored.queue == QueueState::Idle,
        };
        assert!(fits, "run {n}: {:?} against {row:?}", stored.queue);
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

/// 300, or what `PROPTEST_CASES` says.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(300, |n| n.parse().unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_behaves_like_its_model(actions in proptest::collection::vec(action(), 1..50)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let dir = in_memory();
            let mut store = Store::open(dir.path()).await.unwrap();
            let mut model = Model::default();
            for action in actions {
                apply(&dir, &mut store, &mut model, action).await;
            }
            compare(&store, &model).await;
        });
    }
}
