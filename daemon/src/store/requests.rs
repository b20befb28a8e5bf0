//! Idempotency keys of mutations: the same key with the same body gets the same answer (DESIGN 11).

use harness_proto::ids::{Millis, RunId};
use serde_json::Value;
use sqlx::SqliteConnection;

use super::Store;
use super::error::{CommitError, StoreError};
use super::prepared::json;
use super::runs::{decode, run_id};
use super::writer::Op;
use crate::failpoint;

const BEGIN: Op = Op {
    name: "begin_request",
    before: || failpoint::hit("store.request.begin.before"),
    after: || failpoint::hit("store.request.begin.after"),
};
const FINISH: Op = Op {
    name: "finish_request",
    before: || failpoint::hit("store.request.finish.before"),
    after: || failpoint::hit("store.request.finish.after"),
};
const FORGET: Op = Op {
    name: "forget_requests",
    before: || failpoint::hit("store.request.forget.before"),
    after: || failpoint::hit("store.request.forget.after"),
};

statements! {
    ADD_REQUEST = "INSERT INTO requests (key, verb, body_hash, applied, at) VALUES (?1, ?2, ?3, 0, ?4) ON CONFLICT (key) DO NOTHING";
    GET_REQUEST = "SELECT verb, body_hash, run, applied, answer FROM requests WHERE key = ?1";
    SET_RUN = "UPDATE requests SET run = ?2, applied = 1 WHERE key = ?1";
    SET_ANSWER = "UPDATE requests SET answer = ?2 WHERE key = ?1";
    FORGET_OLD = "DELETE FROM requests WHERE at < ?1";
}

/// An idempotency key with what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// The client's key.
    pub key: String,
    /// Verb, such as `start`.
    pub verb: String,
    /// Digest of everything else that was asked.
    pub body_hash: String,
}

/// What is known about a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestState {
    /// Never seen: carry it out.
    New,
    /// Begun before and not answered: in flight, or the daemon died in the middle.
    Unfinished {
        /// The run that it made or changed.
        run: Option<RunId>,
        /// Whether its change is stored: do not apply it again, only answer.
        applied: bool,
    },
    /// Answered before: give the same answer.
    Repeat(Value),
    /// The key stands for something else.
    Conflict,
}

#[derive(sqlx::FromRow)]
struct Raw {
    verb: String,
    body_hash: String,
    run: Option<String>,
    applied: i64,
    answer: Option<String>,
}

impl Store {
    /// Notes that a request is being carried out, and tells what is known about it.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn begin_request(&self, key: &RequestKey, now: Millis) -> Result<RequestState, StoreError> {
        let key = key.clone();
        self.write(BEGIN, |_, _| {}, move |conn| Box::pin(async move { begin(conn, &key, now).await })).await
    }

    /// Stores the answer of a request.
    ///
    /// # Errors
    /// [`StoreError::RequestConflict`] when it was never begun; what SQLite says.
    pub async fn finish_request(&self, key: &RequestKey, answer: &Value) -> Result<(), StoreError> {
        let (key, answer) = (key.key.clone(), json("requests", answer)?);
        self.write(
            FINISH,
            |_, ()| {},
            move |conn| {
                Box::pin(async move {
                    let hit = sqlx::query(SET_ANSWER).bind(&key).bind(&answer).execute(conn).await?.rows_affected();
                    if hit == 1 { Ok(()) } else { Err(StoreError::RequestConflict { key }) }
                })
            },
        )
        .await
    }

    /// Forgets requests that began before `before`; returns how many.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn forget_requests(&self, before: Millis) -> Result<u64, StoreError> {
        self.write(
            FORGET,
            |_, _| {},
            move |conn| {
                Box::pin(async move { Ok(sqlx::query(FORGET_OLD).bind(before.0).execute(conn).await?.rows_affected()) })
            },
        )
        .await
    }
}

async fn begin(conn: &mut SqliteConnection, key: &RequestKey, now: Millis) -> Result<RequestState, StoreError> {
    let added = sqlx::query(ADD_REQUEST)
        .bind(&key.key)
        .bind(&key.verb)
        .bind(&key.body_hash)
        .bind(now.0)
        .execute(&mut *conn)
        .await?
        .rows_affected();
    if added == 1 {
        return Ok(RequestState::New);
    }
    let raw: Vec<Raw> = sqlx::query_as(GET_REQUEST).bind(&key.key).fetch_all(conn).await?;
    Ok(match raw.into_iter().next() {
        Some(raw) if raw.verb == key.verb && raw.body_hash == key.body_hash => match raw.answer {
            Some(answer) => RequestState::Repeat(decode("requests", &key.key, &answer)?),
            None => RequestState::Unfinished { run: raw.run.map(run_id).transpose()?, applied: raw.applied == 1 },
        },
        Some(_) | None => RequestState::Conflict,
    })
}

/// The run that this request registered before; notes the request when it is new.
pub(super) async fn registered(
    conn: &mut SqliteConnection,
    key: &RequestKey,
    now: Millis,
) -> Result<Option<String>, StoreError> {
    if begin(conn, key, now).await? == RequestState::Conflict {
        return Err(StoreError::RequestConflict { key: key.key.clone() });
    }
    let raw: Vec<Raw> = sqlx::query_as(GET_REQUEST).bind(&key.key).fetch_all(conn).await?;
    Ok(raw.into_iter().next().and_then(|r| r.run))
}

/// Notes which run a request made, as applied.
pub(super) async fn mark_run(conn: &mut SqliteConnection, key: &RequestKey, run: &str) -> Result<bool, sqlx::Error> {
    Ok(sqlx::query(SET_RUN).bind(&key.key).bind(run).execute(conn).await?.rows_affected() == 1)
}

/// Marks a request as applied, in the transaction that applies it.
pub(super) async fn mark_applied(conn: &mut SqliteConnection, key: &RequestKey, run: &str) -> Result<(), CommitError> {
    if mark_run(conn, key, run).await? {
        return Ok(());
    }
    Err(CommitError::Misfit(format!("request {} was never begun", key.key)))
}
