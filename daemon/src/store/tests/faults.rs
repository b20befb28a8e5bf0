//! Full disks (T6), callers that go away (T15), a wedged connection.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use futures_util::future::BoxFuture;
use sqlx::SqliteConnection;
use tokio::task::JoinSet;

use super::super::writer::Op;
use super::super::{RequestState, StoreError};
use super::*;

/// Runs a shell command; whether it ended well.
#[expect(clippy::disallowed_methods, reason = "the test needs a shell, not a child of the daemon")]
pub(super) fn shell(command: &str) -> bool {
    std::process::Command::new("sh").arg("-c").arg(command).status().unwrap().success()
}

/// The command line that runs one ignored test of this binary again.
pub(super) fn this_test(name: &str) -> String {
    let program = std::env::current_exe().unwrap();
    format!("'{}' --exact --ignored --nocapture store::tests::{name}", program.display())
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
fn a_full_disk_refuses_clearly_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    if !shell(&format!("unshare -m mount -t tmpfs -o size=16m tmpfs '{place}' 2>/dev/null")) {
        eprintln!("SKIPPED a_full_disk_refuses_clearly_and_loses_nothing: mounting a tmpfs in `unshare -m` needs root");
        return;
    }
    let inner = this_test("faults::full_disk_inside");
    let command = format!(
        "HARNESS_TEST_SMALL='{place}' unshare -m sh -c \"mount -t tmpfs -o size=16m tmpfs '{place}' && exec {inner}\" >'{place}.log' 2>&1"
    );
    let log = format!("{place}.log");
    let done = shell(&command);
    let said = std::fs::read_to_string(&log).unwrap_or_default();
    std::fs::remove_file(&log).unwrap();
    assert!(done && said.contains("1 passed"), "{said}");
}

/// Fills the disk of `place`; returns the file.
fn ballast(place: &Path) -> std::path::PathBuf {
    let path = place.join("ballast");
    let mut file = std::fs::File::create(&path).unwrap();
    let mut size = 1 << 20;
    while size > 0 {
        if file.write_all(&vec![1u8; size]).is_err() {
            size /= 16;
        }
    }
    path
}

#[tokio::test]
#[ignore = "run by a_full_disk_refuses_clearly_and_loses_nothing inside a small tmpfs"]
async fn full_disk_inside() {
    let place = std::path::PathBuf::from(std::env::var_os("HARNESS_TEST_SMALL").unwrap());
    let state = place.join("state");
    let store = Store::open(&state).await.unwrap();
    let (mut kept, mut refused, mut n) = (Vec::new(), Vec::new(), 0);
    let big = json!({"text": "x".repeat(20_000)});
    for cycle in 0..50 {
        let full = ballast(&place);
        for _ in 0..8 {
            n += 1;
            let mut new = new_run(&run(n), &format!("r{n}"));
            new.launch = big.clone();
            match store.register(new).await {
                Ok(_) => kept.push(n),
                Err(error) => {
                    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
                    assert!(error.is_transient() && !error.next().is_empty());
                    refused.push(n);
                }
            }
        }
        std::fs::remove_file(full).unwrap();
        n += 1;
        let after = store.register(new_run(&run(n), &format!("r{n}"))).await;
        assert!(after.is_ok(), "cycle {cycle}: with space again: {after:?}");
        kept.push(n);
    }
    assert!(refused.len() > 100, "the disk was full: {} refusals", refused.len());
    store.close().await;
    let store = Store::open(&state).await.unwrap();
    for n in kept {
        assert!(store.run(&run(n)).await.unwrap().is_some(), "run {n} was acknowledged and is gone");
    }
    for n in refused {
        assert!(store.run(&run(n)).await.unwrap().is_none(), "run {n} was refused and is there");
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

const PLAIN: Op = Op { name: "test", before: || {}, after: || {} };

/// Runs one statement in a write.
async fn write(store: &Store, sql: &'static str) -> Result<u64, StoreError> {
    store
        .write(
            PLAIN,
            |_, _| {},
            move |conn| Box::pin(async move { Ok(sqlx::query(sql).execute(conn).await?.rows_affected()) }),
        )
        .await
}

#[tokio::test]
async fn the_writer_recovers_from_a_wedged_connection_and_a_panic() {
    let (_dir, store) = fresh().await;
    // The body ends the transaction behind the writer's back: its own commit fails, as after an I/O error.
    assert!(write(&store, "COMMIT").await.is_err());
    claimed(&store, 1).await;
    assert!(write(&store, "ROLLBACK").await.is_err());
    claimed(&store, 2).await;
    let panicked: Result<(), StoreError> = store
        .write(
            PLAIN,
            |_, ()| {},
            |_conn: &mut SqliteConnection| -> BoxFuture<'_, Result<(), StoreError>> {
                Box::pin(async { panic!("on purpose") })
            },
        )
        .await;
    assert!(matches!(panicked, Err(StoreError::Lost("test"))), "{panicked:?}");
    claimed(&store, 3).await;
    // A refused statement rolls back everything of its write and nothing else.
    assert!(write(&store, "INSERT INTO events VALUES ('run_none', 1, 0, '{}')").await.is_err());
    claimed(&store, 4).await;
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_full_database_is_told_at_the_commit_and_at_the_statement() {
    let (_dir, store) = fresh().await;
    write(&store, "PRAGMA max_page_count = 60").await.unwrap();
    let mut new = new_run(&run(1), "r");
    new.launch = json!("x".repeat(1_000_000));
    let error = store.register(new).await.unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    assert_eq!(store.run(&run(1)).await.unwrap(), None);
    claimed(&store, 2).await;
}

/// xorshift: the test prints its seed, no crate is needed.
fn next(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_that_go_away_leave_nothing_half_done() {
    const ABORTS: u32 = 4_000;
    let dir = in_memory();
    let store = Store::open(dir.path()).await.unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15;
    let mut calls = JoinSet::new();
    let mut aborted = 0;
    for n in 0..ABORTS {
        let shared = store.clone();
        let handle = calls.spawn(async move {
            let key = request(&format!("k{n}"));
            shared.begin_request(&key, T0).await.unwrap();
            let mut new = new_run(&run(n), &format!("r{}", n % 50));
            new.request = Some(key.clone());
            let made = shared.register(new).await.unwrap().run.run;
            let loaded = shared.load(&made).await.unwrap();
            let (state, step) = moved(&loaded.state, Lifecycle::Queued);
            shared.commit_control(&made, loaded.fence, &input(), &step, &state, Some(&key)).await.unwrap();
            shared.finish_request(&key, &json!({"run": made})).await.unwrap();
        });
        for _ in 0..next(&mut seed) % 40 {
            tokio::task::yield_now().await;
        }
        if !handle.is_finished() {
            handle.abort();
            aborted += 1;
        }
    }
    while let Some(ended) = calls.join_next().await {
        assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
    }
    assert!(aborted > ABORTS / 3, "only {aborted} calls were aborted");
    // The client repeats each request with the same key: one run each, the same answer.
    let mut stages = BTreeSet::new();
    for n in 0..ABORTS {
        let key = request(&format!("k{n}"));
        let known = store.begin_request(&key, T0).await.unwrap();
        let mut new = new_run(&run(100_000 + n), &format!("r{}", n % 50));
        new.request = Some(key.clone());
        let made = match &known {
            RequestState::Repeat(answer) => RunId::parse(answer["run"].as_str().unwrap()).unwrap(),
            RequestState::New | RequestState::Unfinished { .. } => store.register(new).await.unwrap().run.run,
            RequestState::Conflict => panic!("the key was used once"),
        };
        stages.insert(match known {
            RequestState::New => "new",
            RequestState::Unfinished { run: None, .. } => "begun",
            RequestState::Unfinished { .. } => "made",
            RequestState::Repeat(_) => "answered",
            RequestState::Conflict => "conflict",
        });
        if matches!(known, RequestState::Unfinished { run: Some(_), .. } | RequestState::Repeat(_)) {
            assert_eq!(made, run(n), "the first call made it");
        }
        assert!(store.run(&run(n)).await.unwrap().is_some() ^ store.run(&run(100_000 + n)).await.unwrap().is_some());
    }
    assert!(stages.len() >= 2, "the aborts hit at different places: {stages:?}");
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}
