//! Processes that the daemon started: stored before use, so that a later daemon can reap what an earlier one left.

use harness_proto::ids::{Millis, RunId};
use serde_json::Value;

use super::Store;
use super::error::StoreError;
use super::prepared::json;
use super::runs::{decode, run_id};
use super::writer::Op;
use crate::failpoint;

const ADD: Op = Op {
    name: "add_process",
    before: || failpoint::hit("store.process.add.before"),
    after: || failpoint::hit("store.process.add.after"),
};
const REMOVE: Op = Op {
    name: "remove_process",
    before: || failpoint::hit("store.process.remove.before"),
    after: || failpoint::hit("store.process.remove.after"),
};

statements! {
    ADD_PROCESS = "INSERT INTO processes (run, at, identity) VALUES (?1, ?2, ?3) RETURNING id";
    DROP_PROCESS = "DELETE FROM processes WHERE id = ?1";
    ALL_PROCESSES = "SELECT id, run, at, identity FROM processes ORDER BY id";
    RUN_PROCESSES = "SELECT id, run, at, identity FROM processes WHERE run = ?1 ORDER BY id";
}

/// A process that may live.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessRow {
    /// Row.
    pub id: i64,
    /// The run that it works for.
    pub run: Option<RunId>,
    /// Stored when.
    pub at: Millis,
    /// Pid, start time, boot id and marker.
    pub identity: Value,
}

impl Store {
    /// Stores a process; returns the row to remove when it is gone.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn add_process(&self, run: Option<&RunId>, identity: &Value, now: Millis) -> Result<i64, StoreError> {
        let (run, identity) = (run.map(|r| r.as_str().to_owned()), json("processes", identity)?);
        self.write(
            ADD,
            |_, _| {},
            move |conn| {
                Box::pin(async move {
                    let ids: Vec<i64> =
                        sqlx::query_scalar(ADD_PROCESS).bind(run).bind(now.0).bind(identity).fetch_all(conn).await?;
                    ids.first().copied().ok_or(StoreError::Lost("add_process"))
                })
            },
        )
        .await
    }

    /// Forgets a process that is gone.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn remove_process(&self, id: i64) -> Result<(), StoreError> {
        self.write(
            REMOVE,
            |_, ()| {},
            move |conn| {
                Box::pin(async move {
                    sqlx::query(DROP_PROCESS).bind(id).execute(conn).await?;
                    Ok(())
                })
            },
        )
        .await
    }

    /// Every stored process, of one run or of all.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn processes(&self, run: Option<&RunId>) -> Result<Vec<ProcessRow>, StoreError> {
        let query = match run {
            Some(run) => sqlx::query_as(RUN_PROCESSES).bind(run.as_str()),
            None => sqlx::query_as(ALL_PROCESSES),
        };
        let rows: Vec<(i64, Option<String>, i64, String)> = query.fetch_all(self.readers()).await?;
        rows.into_iter()
            .map(|(id, run, at, identity)| {
                let identity = decode("processes", &id.to_string(), &identity)?;
                Ok(ProcessRow { id, run: run.map(run_id).transpose()?, at: Millis(at), identity })
            })
            .collect()
    }
}
