//! Every crash point of the store: the process dies there, the next one finds a healthy store and finishes the work.

use super::super::{QueueState, RequestState};
use super::faults::{shell, this_test};
use super::*;
use crate::failpoint::REGISTRY;

/// A short life that passes every write of the store; can be repeated from any point.
async fn life(dir: &std::path::Path) {
    let store = Store::open(dir).await.unwrap();
    let id = run(1);
    let key = request("create");
    store.begin_request(&key, T0).await.unwrap();
    let mut new = new_run(&id, "r");
    new.request = Some(key.clone());
    assert_eq!(store.register(new).await.unwrap().run.run, id);
    store.finish_request(&key, &json!({"run": id})).await.unwrap();
    store.set_launch(&id, &json!({}), &json!({})).await.unwrap();
    for lease in store.takeover(OWNER).await.unwrap() {
        store.release(&lease.run, lease.fence, T0).await.unwrap();
    }
    let loaded = store.load(&id).await.unwrap();
    if loaded.state.head.lifecycle == Lifecycle::Registered {
        let (state, step) = moved(&loaded.state, Lifecycle::Queued);
        store.commit_control(&id, loaded.fence, &input(), &step, &state, None).await.unwrap();
    }
    store.enqueue(&id, Millis(0), T0).await.unwrap();
    let lease = store.claim(OWNER, T0).await.unwrap().unwrap();
    let process = store.add_process(Some(&id), &json!({"pid": 1}), T0).await.unwrap();
    store.remove_process(process).await.unwrap();
    for _ in 0..2 {
        advance(&store, &id, lease.fence, Lifecycle::Running).await;
    }
    store.release(&id, lease.fence, T0).await.unwrap();
    store.forget_requests(T0).await.unwrap();
}

#[tokio::test]
#[ignore = "run by every_crash_point_leaves_a_healthy_store, killed at a crash point"]
async fn life_inside() {
    life(&std::path::PathBuf::from(std::env::var_os("HARNESS_TEST_STATE").unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_crash_point_leaves_a_healthy_store() {
    let points: Vec<&str> = REGISTRY.iter().copied().filter(|name| name.starts_with("store.")).collect();
    assert!(points.len() >= 24, "{points:?}");
    for point in points {
        let dir = tempfile::tempdir().unwrap();
        let (state, log) = (dir.path().join("state"), dir.path().join("hits"));
        let command = format!(
            "HARNESS_TEST_STATE='{}' HARNESS_FAILPOINT={point} HARNESS_FAILPOINT_LOG='{}' {} >/dev/null 2>&1",
            state.display(),
            log.display(),
            this_test("crash::life_inside")
        );
        assert!(!shell(&command), "{point}: the process lived");
        let hits = std::fs::read_to_string(&log).unwrap();
        assert_eq!(hits.lines().last(), Some(point), "the process died elsewhere");
        let store = Store::open(&state).await.unwrap();
        assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new(), "{point}");
        let answered = store.begin_request(&request("create"), T0).await.unwrap();
        if let RequestState::Repeat(answer) = answered {
            assert_eq!(answer, json!({"run": run(1)}));
        }
        store.close().await;
        life(&state).await;
        let store = Store::open(&state).await.unwrap();
        let row = store.run(&run(1)).await.unwrap().unwrap();
        assert_eq!(row.queue, QueueState::Ready, "{point}");
        assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new(), "{point}");
    }
}
