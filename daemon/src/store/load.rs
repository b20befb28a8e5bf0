//! Loading a run: the state that `step` goes on from.

use harness_core::effect::Effect;
use harness_core::state::{Attempt, RunHead, RunState, Task};
use harness_proto::ids::{Fence, RunId};
use serde_json::Value;

use super::error::StoreError;
use super::runs::{PAGE, RepoKey, decode};
use super::{QueueState, Store};

statements! {
    LOAD_DOCUMENTS = "SELECT launch, policy, origin FROM runs WHERE id = ?1";
    LOAD_TASKS = "SELECT body FROM tasks WHERE run = ?1 ORDER BY task";
    LOAD_ATTEMPTS = "SELECT body FROM attempts INDEXED BY attempts_open WHERE run = ?1 AND outcome = ''";
    LOAD_EFFECTS = "SELECT body FROM effects INDEXED BY effects_pending WHERE run = ?1 AND state = 'pending' ORDER BY id";
}

/// A run as a driver needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedRun {
    /// Its state: open attempts and pending effects only.
    pub state: RunState,
    /// The policy's values, as frozen.
    pub policy: Value,
    /// The launch manifest.
    pub launch: Value,
    /// Last fence; what [`Store::commit_control`] wants.
    pub fence: Fence,
    /// Whether somebody drives it.
    pub queue: QueueState,
    /// Repository.
    pub repo: RepoKey,
    /// Stored inputs.
    pub inputs: i64,
}

impl Store {
    /// Loads a run, as of one moment.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`], [`StoreError::Row`], what SQLite says.
    pub async fn load(&self, run: &RunId) -> Result<LoadedRun, StoreError> {
        let id = run.as_str();
        // One read transaction: rows of two different steps must never meet. Dropping it ends it; nothing was written.
        let mut tx = self.readers().begin().await?;
        let row = super::runs::by_id(&mut tx, id).await?;
        let (launch, policy, _): (String, String, String) =
            sqlx::query_as(LOAD_DOCUMENTS).bind(id).fetch_one(&mut *tx).await?;
        let tasks: Vec<String> = sqlx::query_scalar(LOAD_TASKS).bind(id).fetch_all(&mut *tx).await?;
        let attempts: Vec<String> = sqlx::query_scalar(LOAD_ATTEMPTS).bind(id).fetch_all(&mut *tx).await?;
        let effects: Vec<String> = sqlx::query_scalar(LOAD_EFFECTS).bind(id).fetch_all(&mut *tx).await?;
        tx.rollback().await?;
        let tasks: Vec<Task> = all("tasks", id, &tasks)?;
        let attempts: Vec<Attempt> = all("attempts", id, &attempts)?;
        let effects: Vec<Effect> = all("effects", id, &effects)?;
        Ok(LoadedRun {
            state: RunState::from_rows(row.head, tasks, attempts, effects),
            policy: decode("runs", id, &policy)?,
            launch: decode("runs", id, &launch)?,
            fence: row.fence,
            queue: row.queue,
            repo: row.repo,
            inputs: row.inputs,
        })
    }

    /// The state that the run was registered with: where a replay of its inputs begins.
    ///
    /// # Errors
    /// [`StoreError::UnknownRun`], [`StoreError::Row`], what SQLite says.
    pub async fn origin(&self, run: &RunId) -> Result<RunState, StoreError> {
        let row: Option<(String, String, String)> =
            sqlx::query_as(LOAD_DOCUMENTS).bind(run.as_str()).fetch_optional(self.readers()).await?;
        let Some((_, _, origin)) = row else {
            return Err(StoreError::UnknownRun(run.to_string()));
        };
        let head: RunHead = decode("runs", run.as_str(), &origin)?;
        Ok(RunState::from_rows(head, [], [], []))
    }
}

/// Parses every body.
pub(super) fn all<T: serde::de::DeserializeOwned>(
    table: &'static str,
    key: &str,
    bodies: &[String],
) -> Result<Vec<T>, StoreError> {
    bodies.iter().map(|body| decode(table, key, body)).collect()
}

/// A limit of a page as SQL wants it.
pub(super) fn page(limit: u32) -> i64 {
    i64::from(limit).min(PAGE)
}
