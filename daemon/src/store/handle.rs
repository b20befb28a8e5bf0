//! The handle that the rest of the daemon holds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use harness_proto::ids::{RunId, Seq};
use sqlx::SqliteConnection;
use sqlx::sqlite::SqlitePool;
use tokio::sync::{broadcast, watch};

use super::error::StoreError;
use super::writer::{Op, Writer};

/// Commits that a slow subscriber may miss before it is told that it lags.
const LAG: usize = 1024;

/// A commit that others may want to know about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The run.
    pub run: RunId,
    /// Its last event now.
    pub seq: Seq,
}

/// The store; cheap to clone, all clones share one writer.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    readers: SqlitePool,
    writer: Writer,
    signals: Arc<Signals>,
}

/// What the writer tells after a commit.
pub(super) struct Signals {
    commits: broadcast::Sender<Committed>,
    queue: watch::Sender<u64>,
}

impl Signals {
    pub(super) fn queue_changed(&self) {
        self.queue.send_modify(|n| *n += 1);
    }

    pub(super) fn committed(&self, run: &RunId, seq: Seq) {
        // Nobody listens: nothing to tell.
        drop(self.commits.send(Committed { run: run.clone(), seq }));
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.inner.path).finish_non_exhaustive()
    }
}

impl Store {
    pub(super) fn assemble(path: PathBuf, readers: SqlitePool, writer: Writer) -> Self {
        let (commits, _) = broadcast::channel(LAG);
        let (queue, _) = watch::channel(0);
        let signals = Arc::new(Signals { commits, queue });
        Self { inner: Arc::new(Inner { path, readers, writer, signals }) }
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Tells of every stored step from now on; a receiver that lags reads the events table instead.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Committed> {
        self.inner.signals.commits.subscribe()
    }

    /// Changes whenever a run may have become claimable, so that nobody polls the queue.
    #[must_use]
    pub fn queue_signal(&self) -> watch::Receiver<u64> {
        self.inner.signals.queue.subscribe()
    }

    /// Ends the writer after the writes that wait, and closes every connection.
    ///
    /// While other clones live only the readers are closed; the last clone's `close` (or drop) ends the writer.
    pub async fn close(self) {
        self.inner.readers.close().await;
        if let Some(inner) = Arc::into_inner(self.inner) {
            inner.writer.close().await;
        }
    }

    /// Brings the write-ahead log into the database. False when a reader was in the way.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn wal_checkpoint(&self) -> Result<bool, StoreError> {
        self.inner.writer.checkpoint().await
    }

    pub(super) fn readers(&self) -> &SqlitePool {
        &self.inner.readers
    }

    /// One transaction on the writer, then `told`; see [`Writer::run`].
    pub(super) async fn write<T, E, F, N>(&self, op: Op, told: N, body: F) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
        N: FnOnce(&Signals, &T) + Send + 'static,
        F: for<'c> FnOnce(&'c mut SqliteConnection) -> BoxFuture<'c, Result<T, E>> + Send + 'static,
    {
        let signals = Arc::clone(&self.inner.signals);
        self.inner.writer.run(op, move |value| told(&signals, value), body).await
    }
}
