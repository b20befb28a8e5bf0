//! The queue: one claimer a run, fences that only rise, one offered run a repository (T11).

use std::collections::BTreeSet;

use tokio::task::JoinSet;

use super::super::QueueState;
use super::*;

async fn queued(store: &Store, n: u32, repo: &str, priority: i64, not_before: i64) {
    let mut new = new_run(&run(n), repo);
    new.priority = priority;
    store.register(new).await.unwrap();
    store.enqueue(&run(n), Millis(not_before), Millis(T0.0 + i64::from(n))).await.unwrap();
}

async fn states(store: &Store, runs: std::ops::RangeInclusive<u32>) -> Vec<QueueState> {
    let mut found = Vec::new();
    for n in runs {
        found.push(store.run(&run(n)).await.unwrap().unwrap().queue);
    }
    found
}

#[tokio::test]
async fn eight_claimers_never_get_the_same_fence() {
    const RUNS: u32 = 40;
    const CLAIMS: usize = 6_000;
    let (_dir, store) = fresh().await;
    for n in 0..RUNS {
        queued(&store, n, &format!("r{n}"), 0, 0).await;
    }
    let mut claimers = JoinSet::new();
    for c in 0..8 {
        let store = store.clone();
        claimers.spawn(async move {
            let owner = format!("claimer-{c}");
            let mut mine = Vec::new();
            while mine.len() < CLAIMS / 8 {
                let Some(lease) = store.claim(&owner, Millis(i64::MAX)).await.unwrap() else {
                    continue;
                };
                mine.push((lease.run.clone(), lease.fence));
                store.enqueue(&lease.run, Millis(0), T0).await.unwrap();
                store.release(&lease.run, lease.fence, T0).await.unwrap();
            }
            mine
        });
    }
    let mut all = Vec::new();
    while let Some(mine) = claimers.join_next().await {
        let mine = mine.unwrap();
        assert_eq!(mine.len(), CLAIMS / 8, "nobody starves");
        all.extend(mine);
    }
    let distinct: BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (CLAIMS, CLAIMS));
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn a_hundred_thousand_claims_in_one_transaction_each_have_their_own_fence() {
    // The statement itself, without a disk flush for each: the writer serialises, so what could go wrong is in the statement.
    let (_dir, store) = fresh().await;
    for n in 0..4 {
        queued(&store, n, &format!("r{n}"), 0, 0).await;
    }
    let mut conn = super::super::writer::connect(store.path()).await.unwrap();
    sqlx::query("BEGIN IMMEDIATE").execute(&mut conn).await.unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..25_000 {
        for _ in 0..4 {
            let rows: Vec<(String, i64)> = sqlx::query_as(super::super::lease::CLAIM_ONE)
                .bind(OWNER)
                .bind(T0.0)
                .fetch_all(&mut conn)
                .await
                .unwrap();
            assert_eq!(rows.len(), 1);
            assert!(seen.insert(rows[0].clone()), "claimed twice: {rows:?}");
        }
        sqlx::query("UPDATE runs SET queue = 'ready', lease_owner = ''").execute(&mut conn).await.unwrap();
    }
    sqlx::query("COMMIT").execute(&mut conn).await.unwrap();
    assert_eq!(seen.len(), 100_000);
}

#[tokio::test]
async fn one_run_of_a_repository_is_offered_and_the_next_steps_up() {
    let (_dir, store) = fresh().await;
    for n in 1..=3 {
        queued(&store, n, "r", 0, 0).await;
    }
    queued(&store, 4, "other", 0, 0).await;
    use QueueState::{Idle, Leased, Ready, Waiting};
    assert_eq!(states(&store, 1..=4).await, [Ready, Waiting, Waiting, Ready]);
    let first = store.claim(OWNER, T0).await.unwrap().unwrap();
    let second = store.claim(OWNER, T0).await.unwrap().unwrap();
    assert_eq!((first.run.clone(), second.run), (run(1), run(4)));
    assert_eq!(store.claim(OWNER, T0).await.unwrap(), None, "the repository is busy");
    assert_eq!(states(&store, 1..=4).await, [Leased, Waiting, Waiting, Leased]);
    advance(&store, &run(1), first.fence, Lifecycle::Completed).await;
    store.release(&run(1), first.fence, T0).await.unwrap();
    assert_eq!(states(&store, 1..=4).await, [Idle, Ready, Waiting, Leased]);
    // A waiting run that is given up makes no gap; the head that is given up lets the next one up.
    for (n, after) in [(3, [Idle, Ready, Idle, Leased]), (2, [Idle, Idle, Idle, Leased])] {
        let loaded = store.load(&run(n)).await.unwrap();
        let (state, step) = moved(&loaded.state, Lifecycle::Cancelled);
        store.commit_control(&run(n), loaded.fence, &input(), &step, &state, None).await.unwrap();
        assert_eq!(states(&store, 1..=4).await, after);
    }
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn priority_goes_first_and_not_before_holds() {
    let (_dir, store) = fresh().await;
    queued(&store, 1, "a", 0, 0).await;
    queued(&store, 2, "b", 5, 0).await;
    queued(&store, 3, "c", 9, T0.0 + 1000).await;
    assert_eq!(store.next_due().await.unwrap(), Some(Millis(0)));
    assert_eq!(store.claim(OWNER, T0).await.unwrap().unwrap().run, run(2));
    assert_eq!(store.claim(OWNER, T0).await.unwrap().unwrap().run, run(1));
    assert_eq!(store.claim(OWNER, T0).await.unwrap(), None);
    assert_eq!(store.next_due().await.unwrap(), Some(T0.plus(1000)));
    assert_eq!(store.claim(OWNER, T0.plus(1000)).await.unwrap().unwrap().run, run(3));
    assert_eq!(store.next_due().await.unwrap(), None);
}

#[tokio::test]
async fn a_parked_run_does_not_block_its_repository() {
    let (_dir, store) = fresh().await;
    queued(&store, 1, "r", 9, T0.0 + 100_000).await;
    assert_eq!(states(&store, 1..=1).await, [QueueState::Ready]);
    queued(&store, 2, "r", 0, 0).await;
    assert_eq!(states(&store, 1..=2).await, [QueueState::Waiting, QueueState::Ready]);
    let lease = store.claim(OWNER, T0).await.unwrap().unwrap();
    assert_eq!(lease.run, run(2));
    advance(&store, &run(2), lease.fence, Lifecycle::Failed).await;
    store.release(&run(2), lease.fence, T0).await.unwrap();
    assert_eq!(store.next_due().await.unwrap(), Some(T0.plus(100_000)));
}

#[tokio::test]
async fn a_run_that_still_wants_a_driver_is_queued_again_on_release() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    advance(&store, &run(1), lease.fence, Lifecycle::Running).await;
    store.release(&run(1), lease.fence, T0).await.unwrap();
    let again = store.claim("next daemon", T0).await.unwrap().unwrap();
    assert_eq!(again, Claimed { run: run(1), fence: Fence(lease.fence.0 + 1) });
}

#[tokio::test]
async fn the_queue_signal_tells_without_polling() {
    let (_dir, store) = fresh().await;
    let mut signal = store.queue_signal();
    let mut commits = store.subscribe();
    signal.mark_unchanged();
    let lease = claimed(&store, 1).await;
    assert!(signal.has_changed().unwrap());
    advance(&store, &run(1), lease.fence, Lifecycle::Running).await;
    let told = commits.recv().await.unwrap();
    assert_eq!((told.run, told.seq), (run(1), Seq(1)));
}
