//! What the daemon does besides driving: claims from the queue, tells streams, keeps `status.json`.

use std::time::Duration;

use tokio::sync::broadcast;

use super::registry::Runtime;
use crate::api::Notice;
use crate::clock;
use crate::store::Queue as _;

impl Runtime {
    /// Claims runs from the queue and drives them, until the daemon ends.
    pub(super) async fn claim_loop(&self) {
        let stop = self.inner.tasks.stop().clone();
        let mut signal = self.inner.store.queue_signal();
        let owner = self.owner();
        loop {
            signal.mark_unchanged();
            match self.inner.store.claim(&owner, clock::now()).await {
                Ok(Some(claimed)) => {
                    self.spawn(claimed);
                    continue;
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "the queue cannot be read; trying again"),
            }
            let due = match self.inner.store.next_due().await {
                Ok(Some(due)) => Duration::from_millis((due.0 - clock::now().0).clamp(10, 30_000).unsigned_abs()),
                Ok(None) => Duration::from_secs(3600),
                Err(_) => Duration::from_secs(1),
            };
            // Cancel safe: a token, a watch and a timer.
            tokio::select! {
                () = stop.cancelled() => return,
                changed = signal.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(due) => {}
            }
        }
    }

    /// Tells streams about every commit.
    pub(super) async fn forward_commits(&self) {
        let stop = self.inner.tasks.stop().clone();
        let mut commits = self.inner.store.subscribe();
        loop {
            // Cancel safe: a token and a channel.
            let notice = tokio::select! {
                () = stop.cancelled() => return,
                commit = commits.recv() => commit,
            };
            match notice {
                Ok(commit) => {
                    // Nobody listens: nothing to tell.
                    drop(self.inner.notices.send(Notice { run: commit.run, seq: commit.seq.0 }));
                }
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }

    /// Keeps `status.json` at most a second behind.
    pub(super) async fn keep_status(&self) {
        let stop = self.inner.tasks.stop().clone();
        let mut commits = self.inner.store.subscribe();
        loop {
            self.write_status(true).await;
            // Cancel safe: a token, a channel and a timer.
            tokio::select! {
                () = stop.cancelled() => return,
                commit = commits.recv() => if matches!(commit, Err(broadcast::error::RecvError::Closed)) { return },
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
            }
            commits = commits.resubscribe();
        }
    }
}
