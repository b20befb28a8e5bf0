//! What happened: events for people and streams, inputs for replay.

use harness_core::input::Input;
use harness_proto::event::Event;
use harness_proto::ids::{Fence, RunId, Seq};

use super::Store;
use super::error::StoreError;
use super::load::{all, page};
use super::runs::decode;

statements! {
    EVENTS_SINCE = "SELECT body FROM events WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
    EVENTS_LAST = "SELECT body FROM events WHERE run = ?1 ORDER BY seq DESC LIMIT ?2";
    INPUTS_SINCE = "SELECT ord, payload_version, fence, seq, body FROM inputs WHERE run = ?1 AND ord > ?2 ORDER BY ord LIMIT ?3";
}

/// An input as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredInput {
    /// Place in the run's inputs, from 1 without gaps.
    pub ord: i64,
    /// Version of the stored form.
    pub payload_version: i64,
    /// Under which fence it was applied.
    pub fence: Fence,
    /// Last event after it.
    pub seq: Seq,
    /// It.
    pub input: Input,
}

impl Store {
    /// Events after `since`, oldest first, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn events(&self, run: &RunId, since: Seq, limit: u32) -> Result<Vec<Event>, StoreError> {
        let bodies: Vec<String> = sqlx::query_scalar(EVENTS_SINCE)
            .bind(run.as_str())
            .bind(since.0)
            .bind(page(limit))
            .fetch_all(self.readers())
            .await?;
        all("events", run.as_str(), &bodies)
    }

    /// The last events, oldest first, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn last_events(&self, run: &RunId, limit: u32) -> Result<Vec<Event>, StoreError> {
        let mut bodies: Vec<String> =
            sqlx::query_scalar(EVENTS_LAST).bind(run.as_str()).bind(page(limit)).fetch_all(self.readers()).await?;
        bodies.reverse();
        all("events", run.as_str(), &bodies)
    }

    /// Inputs after the `since`-th, in order, at most `limit` (and 1,000), for replay.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`], also for an input of another payload version that this program cannot read.
    pub async fn inputs(&self, run: &RunId, since: i64, limit: u32) -> Result<Vec<StoredInput>, StoreError> {
        let rows: Vec<(i64, i64, i64, i64, String)> = sqlx::query_as(INPUTS_SINCE)
            .bind(run.as_str())
            .bind(since)
            .bind(page(limit))
            .fetch_all(self.readers())
            .await?;
        rows.into_iter()
            .map(|(ord, payload_version, fence, seq, body)| {
                let input = decode("inputs", &format!("{run}:{ord}"), &body)?;
                Ok(StoredInput { ord, payload_version, fence: Fence(fence), seq: Seq(seq), input })
            })
            .collect()
    }
}
