//! Runs and repositories: registering, naming, listing.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use harness_core::state::{RunHead, RunState};
use harness_proto::ids::{Fence, Millis, RunId, Seq};
use harness_proto::vocab::{HoldKind, Lifecycle};
use serde_json::Value;
use sqlx::SqliteConnection;

use super::Store;
use super::error::StoreError;
use super::prepared::{head_row, json};
use super::requests::{self, RequestKey};
use super::writer::Op;
use crate::failpoint;

const REGISTER: Op = Op {
    name: "register",
    before: || failpoint::hit("store.register.before"),
    after: || failpoint::hit("store.register.after"),
};
const FREEZE: Op = Op {
    name: "set_launch",
    before: || failpoint::hit("store.launch.before"),
    after: || failpoint::hit("store.launch.after"),
};

macro_rules! select_run {
    ($tail:literal) => {
        concat!(
            "SELECT r.ord, r.id, p.key, p.path, r.lifecycle, r.hold, r.queue, r.priority, r.not_before, r.fence, r.lease_owner,
            r.seq, r.inputs, r.created_at, r.updated_at, r.body FROM runs r CROSS JOIN repos p ON p.id = r.repo ",
            $tail
        )
    };
}

statements! {
    PUT_REPO = "INSERT INTO repos (key, path, created_at) VALUES (?1, ?2, ?3) ON CONFLICT (key) DO UPDATE SET path = excluded.path RETURNING id";
    ADD_RUN = "INSERT INTO runs (id, repo, lifecycle, hold, queue, priority, not_before, queued_at, wanted_at, fence, lease_owner, seq, inputs,
        created_at, updated_at, launch, policy, origin, body) VALUES (?1, ?2, ?3, ?4, 'idle', ?5, 0, ?6, NULL, 0, '', ?7, 0, ?6, ?6, ?8, ?9, ?10, ?10)";
    SET_LAUNCH = "UPDATE runs SET launch = ?2, policy = ?3 WHERE id = ?1 AND lifecycle = 'registered'";
    RUN_BY_ID = select_run!("WHERE r.id = ?1");
    RUN_BY_PREFIX = select_run!("WHERE r.id >= ?1 AND r.id < ?2 ORDER BY r.id LIMIT 5");
    RUN_NEWEST = select_run!("ORDER BY r.ord DESC LIMIT 1");
    RUN_OF_REPO = select_run!("WHERE r.repo = (SELECT id FROM repos WHERE key = ?1) ORDER BY r.ord DESC LIMIT 1");
    RUN_ACTIVE = select_run!("WHERE r.repo = (SELECT id FROM repos WHERE key = ?1) AND r.lifecycle IN ('queued', 'running')
        ORDER BY r.ord LIMIT 1");
    LIST = select_run!("WHERE r.ord < ?1 ORDER BY r.ord DESC LIMIT ?2");
    LIST_REPO = select_run!("WHERE r.repo = (SELECT id FROM repos WHERE key = ?1) AND r.ord < ?3 AND (?2 IS NULL OR r.lifecycle = ?2)
        ORDER BY r.ord DESC LIMIT ?4");
    LIST_LIFECYCLE = select_run!("WHERE r.lifecycle = ?1 AND r.ord < ?2 ORDER BY r.ord DESC LIMIT ?3");
}

/// Most rows of one answer.
pub(super) const PAGE: i64 = 1000;

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoKey {
    /// Its folder.
    pub path: PathBuf,
    /// Its short stable name, also of its mirror.
    pub key: String,
}

/// A run to register.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Where.
    pub repo: RepoKey,
    /// The launch manifest.
    pub launch: Value,
    /// The policy's values, frozen with the run.
    pub policy: Value,
    /// The first state, with the run's id and brief; `lifecycle` is `registered`.
    pub head: RunHead,
    /// Larger is claimed first.
    pub priority: i64,
    /// The request that asks for it; a repeat of it gives the same run.
    pub request: Option<RequestKey>,
    /// Now.
    pub at: Millis,
}

/// A registered run.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The run.
    pub run: RunRow,
    /// Whether the same request had registered it before.
    pub repeated: bool,
}

/// Where a run is in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueState {
    /// Nobody has to drive it.
    Idle,
    /// Behind another run of its repository.
    Waiting,
    /// The one of its repository that may be claimed.
    Ready,
    /// Driven.
    Leased,
}

/// A run's row.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Place in the order of registration; the cursor of a listing.
    pub ord: i64,
    /// Id.
    pub run: RunId,
    /// Repository.
    pub repo: RepoKey,
    /// Where in its life.
    pub lifecycle: Lifecycle,
    /// Why it does not move.
    pub hold: Option<HoldKind>,
    /// Where in the queue.
    pub queue: QueueState,
    /// Larger is claimed first.
    pub priority: i64,
    /// Not to be claimed before.
    pub not_before: Millis,
    /// Last fence.
    pub fence: Fence,
    /// Who drives it; empty when nobody does.
    pub owner: String,
    /// Last event.
    pub seq: Seq,
    /// Stored inputs.
    pub inputs: i64,
    /// Registered.
    pub created_at: Millis,
    /// Last change.
    pub updated_at: Millis,
    /// The scalars of its state.
    pub head: RunHead,
}

/// How a run is named by people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunName {
    /// Complete.
    Id(RunId),
    /// The beginning of an id, `run_` included.
    Prefix(String),
    /// The newest of all.
    Last,
    /// Of a repository's key: the active one, else the newest.
    Repo(String),
}

/// Which runs to list, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this repository's key.
    pub repo: Option<String>,
    /// In this lifecycle.
    pub lifecycle: Option<Lifecycle>,
    /// Registered before the run with this `ord`.
    pub before: Option<i64>,
    /// At most so many, and never more than 1,000.
    pub limit: u32,
}

#[derive(sqlx::FromRow)]
struct Raw {
    ord: i64,
    id: String,
    key: String,
    path: Vec<u8>,
    lifecycle: String,
    hold: String,
    queue: String,
    priority: i64,
    not_before: i64,
    fence: i64,
    lease_owner: String,
    seq: i64,
    inputs: i64,
    created_at: i64,
    updated_at: i64,
    body: String,
}

impl TryFrom<Raw> for RunRow {
    type Error = StoreError;

    fn try_from(raw: Raw) -> Result<Self, StoreError> {
        let hold = if raw.hold.is_empty() { None } else { Some(parsed(&raw.id, raw.hold.parse())?) };
        Ok(Self {
            ord: raw.ord,
            lifecycle: parsed(&raw.id, raw.lifecycle.parse())?,
            hold,
            queue: match raw.queue.as_str() {
                "waiting" => QueueState::Waiting,
                "ready" => QueueState::Ready,
                "leased" => QueueState::Leased,
                _ => QueueState::Idle,
            },
            head: decode("runs", &raw.id, &raw.body)?,
            run: run_id(raw.id)?,
            repo: RepoKey { path: PathBuf::from(OsString::from_vec(raw.path)), key: raw.key },
            priority: raw.priority,
            not_before: Millis(raw.not_before),
            fence: Fence(raw.fence),
            owner: raw.lease_owner,
            seq: Seq(raw.seq),
            inputs: raw.inputs,
            created_at: Millis(raw.created_at),
            updated_at: Millis(raw.updated_at),
        })
    }
}

fn parsed<T, E>(run: &str, result: Result<T, E>) -> Result<T, StoreError>
where
    E: std::error::Error + Send + Sync + 'static,
{
    result.map_err(|e| StoreError::Row { table: "runs", key: run.to_owned(), source: Box::new(e) })
}

/// A stored run id.
pub(super) fn run_id(text: String) -> Result<RunId, StoreError> {
    RunId::parse(&text).map_err(|e| StoreError::Row { table: "runs", key: text, source: Box::new(e) })
}

/// A stored JSON value.
pub(super) fn decode<T: serde::de::DeserializeOwned>(
    table: &'static str,
    key: &str,
    body: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(body).map_err(|e| StoreError::Row { table, key: key.to_owned(), source: Box::new(e) })
}

fn rows(raw: Vec<Raw>) -> Result<Vec<RunRow>, StoreError> {
    raw.into_iter().map(RunRow::try_from).collect()
}

impl Store {
    /// Stores a new run, not in the queue. With a request id, a repeat gives the run that the first call made.
    ///
    /// # Errors
    /// [`StoreError::RequestConflict`] when the request id stands for something else; what SQLite says.
    pub async fn register(&self, new: NewRun) -> Result<Registration, StoreError> {
        let state = RunState::from_rows(new.head.clone(), [], [], []);
        let head = head_row(&state)?;
        let (launch, policy) = (json("runs", &new.launch)?, json("runs", &new.policy)?);
        self.write(
            REGISTER,
            |_, _| {},
            move |conn| {
                Box::pin(async move {
                    if let Some(key) = &new.request
                        && let Some(run) = requests::registered(conn, key, new.at).await?
                    {
                        return Ok(Registration { run: by_id(conn, &run).await?, repeated: true });
                    }
                    let repo: Vec<i64> = sqlx::query_scalar(PUT_REPO)
                        .bind(&new.repo.key)
                        .bind(new.repo.path.as_os_str().as_bytes())
                        .bind(new.at.0)
                        .fetch_all(&mut *conn)
                        .await?;
                    sqlx::query(ADD_RUN)
                        .bind(&head.run)
                        .bind(repo.first())
                        .bind(head.lifecycle)
                        .bind(head.hold)
                        .bind(new.priority)
                        .bind(new.at.0)
                        .bind(head.seq)
                        .bind(&launch)
                        .bind(&policy)
                        .bind(&head.body)
                        .execute(&mut *conn)
                        .await?;
                    if let Some(key) = &new.request {
                        requests::mark_run(conn, key, &head.run).await?;
                    }
                    Ok(Registration { run: by_id(conn, &head.run).await?, repeated: false })
                })
            },
        )
        .await
    }

    /// Replaces launch manifest and policy of a run that was never started; false when it was.
    ///
    /// # Errors
    /// What SQLite says.
    pub async fn set_launch(&self, run: &RunId, launch: &Value, policy: &Value) -> Result<bool, StoreError> {
        let (run, launch, policy) = (run.as_str().to_owned(), json("runs", launch)?, json("runs", policy)?);
        self.write(
            FREEZE,
            |_, _| {},
            move |conn| {
                Box::pin(async move {
                    let done = sqlx::query(SET_LAUNCH).bind(&run).bind(&launch).bind(&policy).execute(conn).await?;
                    Ok(done.rows_affected() == 1)
                })
            },
        )
        .await
    }

    /// The runs that a name may mean: none, one, or up to five when a prefix is ambiguous.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn find_runs(&self, name: &RunName) -> Result<Vec<RunRow>, StoreError> {
        let query = match name {
            RunName::Id(id) => sqlx::query_as::<_, Raw>(RUN_BY_ID).bind(id.as_str().to_owned()),
            RunName::Prefix(prefix) => {
                sqlx::query_as(RUN_BY_PREFIX).bind(prefix.clone()).bind(format!("{prefix}\u{10ffff}"))
            }
            RunName::Last => sqlx::query_as(RUN_NEWEST),
            RunName::Repo(key) => {
                if let Some(active) = self.active_run(key).await? {
                    return Ok(vec![active]);
                }
                sqlx::query_as(RUN_OF_REPO).bind(key.clone())
            }
        };
        rows(query.fetch_all(self.readers()).await?)
    }

    /// A run's row.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn run(&self, run: &RunId) -> Result<Option<RunRow>, StoreError> {
        Ok(self.find_runs(&RunName::Id(run.clone())).await?.pop())
    }

    /// The queued, running or held run of a repository; the oldest if there are several.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn active_run(&self, repo_key: &str) -> Result<Option<RunRow>, StoreError> {
        let raw: Option<Raw> = sqlx::query_as(RUN_ACTIVE).bind(repo_key).fetch_optional(self.readers()).await?;
        raw.map(RunRow::try_from).transpose()
    }

    /// Runs, newest first.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`].
    pub async fn list_runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        let before = filter.before.unwrap_or(i64::MAX);
        let limit = i64::from(filter.limit).min(PAGE);
        let lifecycle = filter.lifecycle.map(Lifecycle::as_str);
        let query = match (&filter.repo, lifecycle) {
            (Some(repo), _) => sqlx::query_as(LIST_REPO).bind(repo).bind(lifecycle).bind(before).bind(limit),
            (None, Some(lifecycle)) => sqlx::query_as(LIST_LIFECYCLE).bind(lifecycle).bind(before).bind(limit),
            (None, None) => sqlx::query_as(LIST).bind(before).bind(limit),
        };
        rows(query.fetch_all(self.readers()).await?)
    }
}

pub(super) async fn by_id(conn: &mut SqliteConnection, run: &str) -> Result<RunRow, StoreError> {
    let raw: Vec<Raw> = sqlx::query_as(RUN_BY_ID).bind(run).fetch_all(conn).await?;
    rows(raw)?.pop().ok_or_else(|| StoreError::UnknownRun(run.to_owned()))
}
