//! Tests of the store on real files. Fixtures are here, a file for each promise beside it.
#![expect(clippy::unwrap_used, reason = "tests")]

mod commit;
mod crash;
mod faults;
mod model;
mod opening;
mod plans;
mod queue;
mod reads;

use std::path::PathBuf;

use harness_core::effect::{Effect, EffectKind};
use harness_core::input::{Input, InputKind};
use harness_core::state::{Brief, RunHead, RunState};
use harness_core::step::{Change, Step};
use harness_proto::event::Event;
use harness_proto::ids::{EffectId, Fence, Millis, RunId, Seq};
use harness_proto::vocab::Lifecycle;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Claimed, NewRun, Queue as _, RepoKey, RequestKey, Store};

const OWNER: &str = "daemon-1";
const T0: Millis = Millis(1_796_000_000_000);

async fn fresh() -> (TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).await.unwrap();
    (dir, store)
}

/// A folder where a flush costs nothing: for tests of order, not of power cuts.
fn in_memory() -> TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The n-th run id.
fn run(n: u32) -> RunId {
    let [a, b, c, d] = n.to_be_bytes();
    RunId::from_random([0, a, b, c, d])
}

fn head(id: &RunId) -> RunHead {
    let brief = Brief { run: id.clone(), goal: "g".into(), original_goal: "og".into(), scope: "s".into() };
    harness_core::supervisor::register(brief, T0).head
}

fn new_run(id: &RunId, repo: &str) -> NewRun {
    NewRun {
        repo: RepoKey { path: PathBuf::from(format!("/repos/{repo}")), key: repo.to_owned() },
        launch: json!({"version": 1}),
        policy: json!({"max_parallel": 1}),
        head: head(id),
        priority: 0,
        request: None,
        at: T0,
    }
}

fn request(key: &str) -> RequestKey {
    RequestKey { key: key.into(), verb: "create".into(), body_hash: "h".into() }
}

fn input() -> Input {
    Input { at: T0, kind: InputKind::Tick }
}

/// A state that moved on by one event and one pending effect, and the step that did it.
fn moved(state: &RunState, lifecycle: Lifecycle) -> (RunState, Step) {
    let mut state = state.clone();
    state.head.lifecycle = lifecycle;
    state.head.seq = Seq(state.head.seq.0 + 1);
    let step = Step { changes: vec![Change::Run], events: vec![event(state.head.seq)], ..Step::default() };
    (state, step)
}

fn event(seq: Seq) -> Event {
    Event {
        seq,
        at: T0,
        role: "runtime".into(),
        task_id: String::new(),
        attempt: 0,
        commit: String::new(),
        status: "tick".into(),
        decision: "none".into(),
        description: format!("event {seq}"),
        data: Value::Null,
    }
}

fn effect(id: i64) -> Effect {
    Effect { id: EffectId(id), at: T0, kind: EffectKind::AdvanceIntegration { from: "a".into(), to: "b".into() } }
}

/// Registers, queues and claims the n-th run in a repository of its own.
async fn claimed(store: &Store, n: u32) -> Claimed {
    store.register(new_run(&run(n), &format!("r{n}"))).await.unwrap();
    store.enqueue(&run(n), Millis(0), T0).await.unwrap();
    let claimed = store.claim(OWNER, T0).await.unwrap().unwrap();
    assert_eq!(claimed.run, run(n));
    claimed
}

/// Commits one step as the driver.
async fn advance(store: &Store, id: &RunId, fence: Fence, lifecycle: Lifecycle) -> Seq {
    let loaded = store.load(id).await.unwrap();
    let (state, step) = moved(&loaded.state, lifecycle);
    store.commit_step(id, fence, Some(&input()), &step, &state).await.unwrap()
}
