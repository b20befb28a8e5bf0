//! The only place that spawns tasks: named, tracked, waited for at shutdown.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Every task of the daemon, and the token that ends them.
#[derive(Debug, Clone, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// No task yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task; a panic in it is logged and ends only that task.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let guarded = async move {
            let caught = futures_util::FutureExt::catch_unwind(std::panic::AssertUnwindSafe(future)).await;
            if caught.is_err() {
                tracing::error!(task = name, "BUG: the task panicked");
            }
        };
        #[expect(clippy::disallowed_methods, reason = "the one home of spawn")]
        tokio::spawn(self.tracker.track_future(guarded))
    }

    /// Cancelled when the daemon ends.
    #[must_use]
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Ends every task and waits for them, at most `limit`; returns whether all ended.
    pub async fn shut_down(&self, limit: std::time::Duration) -> bool {
        self.stop.cancel();
        self.tracker.close();
        tokio::time::timeout(limit, self.tracker.wait()).await.is_ok()
    }
}
