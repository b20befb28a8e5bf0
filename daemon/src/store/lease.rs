//! The queue: who may drive which run, and since which fence (DESIGN 5).
//!
//! A run is `idle`, `waiting` behind another run of its repository, `ready`, or `leased`. At most one run of a repository is ready
//! or leased (a unique index says so), and only ready ones are in the claim index: a claim looks at one row however long the queue is.

use std::future::Future;

use harness_proto::ids::{Fence, Millis, RunId};
use sqlx::SqliteConnection;

use super::Store;
use super::error::{CommitError, StoreError};
use super::runs::run_id;
use super::writer::Op;
use crate::failpoint;

const CLAIM: Op = Op {
    name: "claim",
    before: || failpoint::hit("store.claim.before"),
    after: || failpoint::hit("store.claim.after"),
};
const TAKEOVER: Op = Op {
    name: "takeover",
    before: || failpoint::hit("store.takeover.before"),
    after: || failpoint::hit("store.takeover.after"),
};
const RELEASE: Op = Op {
    name: "release",
    before: || failpoint::hit("store.release.before"),
    after: || failpoint::hit("store.release.after"),
};
const ENQUEUE: Op = Op {
    name: "enqueue",
    before: || failpoint::hit("store.enqueue.before"),
    after: || failpoint::hit("store.enqueue.after"),
};

statements! {
    /// The literal state and the named index pin the plan (corrections 37); the index holds every column that is looked at.
    CLAIM_ONE = "UPDATE runs SET queue = 'leased', lease_owner = ?1, fence = fence + 1 WHERE ord = (
        SELECT ord FROM runs INDEXED BY runs_claim WHERE queue = 'ready' AND not_before <= ?2
        ORDER BY priority DESC, queued_at, ord LIMIT 1) RETURNING id, fence";
    NEXT_DUE = "SELECT not_before FROM runs INDEXED BY runs_due WHERE queue = 'ready' ORDER BY not_before LIMIT 1";
    TAKE_OVER = "UPDATE runs INDEXED BY runs_leased SET lease_owner = ?1, fence = fence + 1 WHERE queue = 'leased' RETURNING id, fence";
    LET_GO = "UPDATE runs SET queue = CASE WHEN wanted_at IS NULL THEN 'idle' ELSE 'waiting' END,
        not_before = coalesce(wanted_at, 0), lease_owner = '', queued_at = ?3
        WHERE id = ?1 AND fence = ?2 AND queue = 'leased' RETURNING repo";
    REPO_OF = "SELECT repo FROM runs WHERE id = ?1";
    PLACE = "UPDATE runs SET wanted_at = ?2, not_before = coalesce(?2, 0),
        queued_at = CASE WHEN queue = 'idle' THEN ?3 ELSE queued_at END,
        queue = CASE WHEN ?2 IS NULL THEN 'idle' WHEN queue = 'ready' THEN 'ready' ELSE 'waiting' END
        WHERE id = ?1 AND queue <> 'leased'";
    FRONT = "SELECT ord, queue FROM runs INDEXED BY runs_front WHERE repo = ?1 AND queue IN ('ready', 'leased')";
    STEP_BACK = "UPDATE runs SET queue = 'waiting' WHERE ord = ?1";
    STEP_UP = "UPDATE runs SET queue = 'ready' WHERE ord = ?1";
    PICK_DUE = "SELECT ord FROM runs INDEXED BY runs_waiting WHERE repo = ?1 AND queue = 'waiting' AND not_before <= ?2
        ORDER BY priority DESC, queued_at, ord LIMIT 1";
    PICK_LATER = "SELECT ord FROM runs INDEXED BY runs_later WHERE repo = ?1 AND queue = 'waiting'
        ORDER BY not_before, priority DESC, queued_at, ord LIMIT 1";
}

/// A run that the caller may drive now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The run.
    pub run: RunId,
    /// What every write must carry.
    pub fence: Fence,
}

/// The claim side of the store, so that another database can be the queue later (corrections 44).
pub trait Queue {
    /// Puts a run into the queue, not to be claimed before `not_before`. A leased run stays leased.
    fn enqueue(
        &self,
        run: &RunId,
        not_before: Millis,
        now: Millis,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Takes the first claimable run: highest priority, then longest waiting. None when there is none now.
    fn claim(&self, owner: &str, now: Millis) -> impl Future<Output = Result<Option<Claimed>, StoreError>> + Send;
    /// Takes every lease over, with a new fence each: only for the holder of the state directory's lock, at start.
    fn takeover(&self, owner: &str) -> impl Future<Output = Result<Vec<Claimed>, StoreError>> + Send;
    /// Gives a run back; it is queued again when it still wants a driver, and the next of its repository steps up.
    fn release(&self, run: &RunId, fence: Fence, now: Millis) -> impl Future<Output = Result<(), CommitError>> + Send;
    /// When the next claimable run is due; none when nothing is claimable. May be in the past.
    fn next_due(&self) -> impl Future<Output = Result<Option<Millis>, StoreError>> + Send;
}

impl Queue for Store {
    async fn enqueue(&self, run: &RunId, not_before: Millis, now: Millis) -> Result<(), StoreError> {
        let run = run.as_str().to_owned();
        self.write(
            ENQUEUE,
            |signals, ()| signals.queue_changed(),
            move |conn| {
                Box::pin(async move {
                    let repo: Vec<i64> = sqlx::query_scalar(REPO_OF).bind(&run).fetch_all(&mut *conn).await?;
                    let Some(repo) = repo.first() else {
                        return Err(StoreError::UnknownRun(run));
                    };
                    Ok(place(conn, &run, *repo, Some(not_before), now).await?)
                })
            },
        )
        .await
    }

    async fn claim(&self, owner: &str, now: Millis) -> Result<Option<Claimed>, StoreError> {
        let owner = owner.to_owned();
        self.write(
            CLAIM,
            |_, _| {},
            move |conn| {
                Box::pin(async move {
                    let rows = sqlx::query_as(CLAIM_ONE).bind(&owner).bind(now.0).fetch_all(conn).await?;
                    Ok(claimed(rows)?.pop())
                })
            },
        )
        .await
    }

    async fn takeover(&self, owner: &str) -> Result<Vec<Claimed>, StoreError> {
        let owner = owner.to_owned();
        self.write(
            TAKEOVER,
            |_, _| {},
            move |conn| Box::pin(async move { claimed(sqlx::query_as(TAKE_OVER).bind(&owner).fetch_all(conn).await?) }),
        )
        .await
    }

    async fn release(&self, run: &RunId, fence: Fence, now: Millis) -> Result<(), CommitError> {
        let run = run.as_str().to_owned();
        self.write(
            RELEASE,
            |signals, ()| signals.queue_changed(),
            move |conn| {
                Box::pin(async move {
                    let rows: Vec<i64> =
                        sqlx::query_scalar(LET_GO).bind(&run).bind(fence.0).bind(now.0).fetch_all(&mut *conn).await?;
                    let Some(repo) = rows.first() else {
                        return Err(CommitError::Fenced { fence: fence.0 });
                    };
                    Ok(promote(conn, *repo, now).await?)
                })
            },
        )
        .await
    }

    async fn next_due(&self) -> Result<Option<Millis>, StoreError> {
        let due: Option<i64> = sqlx::query_scalar(NEXT_DUE).fetch_optional(self.readers()).await?;
        Ok(due.map(Millis))
    }
}

fn claimed(rows: Vec<(String, i64)>) -> Result<Vec<Claimed>, StoreError> {
    rows.into_iter().map(|(run, fence)| Ok(Claimed { run: run_id(run)?, fence: Fence(fence) })).collect()
}

/// Puts a run that nobody drives where it belongs: idle, or in the queue of its repository.
pub(super) async fn place(
    conn: &mut SqliteConnection,
    run: &str,
    repo: i64,
    wanted: Option<Millis>,
    now: Millis,
) -> Result<(), sqlx::Error> {
    sqlx::query(PLACE).bind(run).bind(wanted.map(|t| t.0)).bind(now.0).execute(&mut *conn).await?;
    promote(conn, repo, now).await
}

/// Chooses which waiting run of a repository is offered: of those that are due the first by priority and age, else the one that is
/// due first. Nothing changes while one of them is leased.
async fn promote(conn: &mut SqliteConnection, repo: i64, now: Millis) -> Result<(), sqlx::Error> {
    let front: Vec<(i64, String)> = sqlx::query_as(FRONT).bind(repo).fetch_all(&mut *conn).await?;
    for (ord, queue) in front {
        if queue == "leased" {
            return Ok(());
        }
        sqlx::query(STEP_BACK).bind(ord).execute(&mut *conn).await?;
    }
    let mut next: Vec<i64> = sqlx::query_scalar(PICK_DUE).bind(repo).bind(now.0).fetch_all(&mut *conn).await?;
    if next.is_empty() {
        next = sqlx::query_scalar(PICK_LATER).bind(repo).fetch_all(&mut *conn).await?;
    }
    if let Some(ord) = next.first() {
        sqlx::query(STEP_UP).bind(ord).execute(conn).await?;
    }
    Ok(())
}
