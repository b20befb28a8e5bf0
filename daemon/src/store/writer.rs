//! The one writer: a task that owns the one connection that writes. Callers hand it jobs and wait; nobody can cancel a job.
//!
//! Invariant (deps.md "sqlx rules" 1, 3, 4): every write is `BEGIN IMMEDIATE` … `COMMIT` in this task; a caller that goes away
//! changes nothing. After an error that leaves the connection in doubt it is thrown away and a new one is opened and tried.

use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::error::StoreError;
use super::open;

/// Jobs that may wait; more callers wait for a place.
const QUEUE: usize = 256;

statements! {
    BEGIN = "BEGIN IMMEDIATE";
    PROBE = "SELECT count(*) FROM runs WHERE ord = 0";
    CHECKPOINT = "PRAGMA wal_checkpoint(TRUNCATE)";
}

/// Name and crash points of a write.
#[derive(Clone, Copy)]
pub(super) struct Op {
    /// For errors and logs.
    pub(super) name: &'static str,
    /// Right before the commit.
    pub(super) before: fn(),
    /// Right after it, before the caller is told.
    pub(super) after: fn(),
}

/// What a job leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    /// The connection is between transactions.
    Good,
    /// The connection may be in any state.
    Doubtful,
}

type Job = Box<dyn for<'c> FnOnce(Result<&'c mut SqliteConnection, StoreError>) -> BoxFuture<'c, Health> + Send>;

/// Handle of the writer task.
pub(super) struct Writer {
    jobs: mpsc::Sender<Job>,
    task: JoinHandle<()>,
}

impl Writer {
    /// Opens the connection and starts the task.
    pub(super) async fn start(path: PathBuf) -> Result<Self, StoreError> {
        let conn = connect(&path).await?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        let task = tokio::runtime::Handle::current().spawn(serve(path, Some(conn), queue));
        Ok(Self { jobs, task })
    }

    /// Runs `body` in one transaction, commits it and then calls `told`; an error of `body` rolls everything back.
    ///
    /// Cancel safe: a job that was queued is done, and `told` is called, when the caller's future is dropped.
    pub(super) async fn run<T, E, F, N>(&self, op: Op, told: N, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        N: FnOnce(&T) + Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    {
        let (answer, outcome) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            Box::pin(async move {
                let (result, health) = match conn {
                    Ok(conn) => transaction(op, conn, body).await,
                    Err(error) => (Err(error.into()), Health::Doubtful),
                };
                if let Ok(value) = &result {
                    told(value);
                }
                // The caller may be gone; the outcome is stored all the same.
                drop(answer.send(result));
                health
            })
        });
        self.jobs.send(job).await.map_err(|_| E::from(StoreError::Closed))?;
        outcome.await.map_err(|_| E::from(StoreError::Lost(op.name)))?
    }

    /// Brings the write-ahead log into the database and empties it. Returns false when a reader kept it from that.
    pub(super) async fn checkpoint(&self) -> Result<bool, StoreError> {
        let (answer, outcome) = oneshot::channel();
        let job: Job = Box::new(move |conn| {
            Box::pin(async move {
                let result = match conn {
                    Ok(conn) => checkpoint(conn).await,
                    Err(error) => Err(error),
                };
                let health = if result.is_ok() { Health::Good } else { Health::Doubtful };
                drop(answer.send(result));
                health
            })
        });
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Lost("checkpoint"))?
    }

    /// Ends the task after the jobs that wait, and closes the connection.
    pub(super) async fn close(self) {
        drop(self.jobs);
        // Jobs catch their panics; an error here can only be the end of the runtime itself.
        drop(self.task.await);
    }
}

async fn checkpoint(conn: &mut SqliteConnection) -> Result<bool, StoreError> {
    let rows: Vec<(i64, i64, i64)> = sqlx::query_as(CHECKPOINT).fetch_all(conn).await?;
    Ok(rows.iter().all(|(busy, _, _)| *busy == 0))
}

pub(super) async fn connect(path: &Path) -> Result<SqliteConnection, StoreError> {
    let mut conn = open::options(path).connect().await?;
    let _: i64 = sqlx::query_scalar(PROBE).fetch_one(&mut conn).await?;
    Ok(conn)
}

async fn serve(path: PathBuf, mut conn: Option<SqliteConnection>, mut queue: mpsc::Receiver<Job>) {
    while let Some(job) = queue.recv().await {
        if conn.is_none() {
            match connect(&path).await {
                Ok(fresh) => conn = Some(fresh),
                Err(error) => {
                    tracing::warn!(code = error.code(), "the database cannot be opened again");
                    job(Err(error)).await;
                    continue;
                }
            }
        }
        let Some(open) = conn.as_mut() else { continue };
        let health = AssertUnwindSafe(job(Ok(open))).catch_unwind().await.unwrap_or(Health::Doubtful);
        if health == Health::Doubtful || open.is_in_transaction() {
            tracing::warn!("the writing connection is in doubt and is opened anew");
            if let Some(old) = conn.take() {
                // What it says while it goes does not matter: its open transaction is rolled back either way.
                drop(old.close_hard().await);
            }
        }
    }
    if let Some(conn) = conn
        && let Err(error) = conn.close().await
    {
        tracing::warn!(%error, "the database was not closed cleanly");
    }
}

async fn transaction<T, E, F>(op: Op, conn: &mut SqliteConnection, body: F) -> (Result<T, E>, Health)
where
    E: From<StoreError>,
    F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>>,
{
    let mut tx = match conn.begin_with(BEGIN).await {
        Ok(tx) => tx,
        Err(error) => return (Err(StoreError::from(error).into()), Health::Doubtful),
    };
    match body(&mut tx).await {
        Ok(value) => {
            (op.before)();
            match tx.commit().await {
                Ok(()) => {
                    (op.after)();
                    (Ok(value), Health::Good)
                }
                Err(error) => (Err(StoreError::from(error).into()), Health::Doubtful),
            }
        }
        Err(error) => {
            // SQLite has rolled back by itself after a full disk; then this fails and the connection is replaced.
            let health = if tx.rollback().await.is_ok() { Health::Good } else { Health::Doubtful };
            (Err(error), health)
        }
    }
}
