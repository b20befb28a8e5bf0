//! Reads for people and for the artifacts: bounded, on the reader pool, never in the way of a write.

use harness_core::evidence::EvidenceRecord;
use harness_core::state::{Attempt, Incident, Task};
use harness_core::step::{Lesson, PlanRow, TurnEndRow, TurnRow};
use harness_proto::ids::{Millis, RunId, Seq, TaskId};
use harness_proto::report::Report;
use serde_json::Value;

use super::Store;
use super::error::StoreError;
use super::load::{all, page};
use super::runs::decode;

statements! {
    TASKS = "SELECT body FROM tasks WHERE run = ?1 ORDER BY task LIMIT 10000";
    TASK = "SELECT body FROM tasks WHERE run = ?1 AND task = ?2";
    ATTEMPTS = "SELECT body FROM attempts WHERE run = ?1 AND task = ?2 ORDER BY number LIMIT 1000";
    TURNS_OF_RUN = "SELECT begun, ended FROM turns WHERE run = ?1 AND turn > ?2 ORDER BY turn LIMIT ?3";
    TURNS_OF_TASK = "SELECT begun, ended FROM turns INDEXED BY turns_task WHERE run = ?1 AND task = ?2 ORDER BY turn LIMIT 1000";
    EVIDENCE_OF_TASK = "SELECT body FROM evidence INDEXED BY evidence_task WHERE run = ?1 AND task = ?2 AND (?3 IS NULL OR attempt = ?3)
        ORDER BY attempt, id LIMIT 1000";
    REPORTS = "SELECT turn, file, body FROM reports WHERE run = ?1 AND turn > ?2 ORDER BY turn LIMIT ?3";
    PLAN = "SELECT revision, source, text, prose, at FROM plan_revisions WHERE run = ?1 AND revision = ?2";
    PLAN_NEWEST = "SELECT revision, source, text, prose, at FROM plan_revisions WHERE run = ?1 ORDER BY revision DESC LIMIT 1";
    LESSONS = "SELECT body FROM lessons WHERE run = ?1 ORDER BY id LIMIT 10000";
    INCIDENTS = "SELECT body, closed_at FROM incidents WHERE run = ?1 ORDER BY id DESC LIMIT ?2";
    LANDINGS = "SELECT seq, commit_id, outcome, at, data FROM landings WHERE run = ?1 ORDER BY id DESC LIMIT ?2";
    USAGE = "SELECT role, agent, count(*) AS turns, sum(input_tokens) AS input_tokens,
        sum(output_tokens) AS output_tokens, sum(total_tokens) AS total_tokens, sum(duration_ms) AS duration_ms
        FROM usage WHERE run = ?1 GROUP BY role, agent ORDER BY role, agent";
    LENGTHS = "SELECT (SELECT count(*) FROM runs WHERE queue = 'waiting'), (SELECT count(*) FROM runs WHERE queue = 'ready'),
        (SELECT count(*) FROM runs WHERE queue = 'leased')";
}

/// A turn: how it began, and how it ended when it has.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTurn {
    /// Its beginning.
    pub begun: TurnRow,
    /// Its end.
    pub ended: Option<TurnEndRow>,
}

/// A report.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportRow {
    /// Turn that ended with it.
    pub turn: i64,
    /// Name of its file.
    pub file: String,
    /// It.
    pub report: Report,
}

/// An incident.
#[derive(Debug, Clone, PartialEq)]
pub struct IncidentRow {
    /// It.
    pub incident: Incident,
    /// When it was over.
    pub closed_at: Option<Millis>,
}

/// A try to land.
#[derive(Debug, Clone, PartialEq)]
pub struct LandingRow {
    /// Last event then.
    pub seq: Seq,
    /// Commit that was to be brought.
    pub commit: String,
    /// `landed`, `pending:<why>`, `moved`.
    pub outcome: String,
    /// When.
    pub at: Millis,
    /// Details.
    pub data: Value,
}

/// What the turns of one role with one agent used.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageSum {
    /// Role.
    pub role: String,
    /// Agent.
    pub agent: String,
    /// Turns.
    pub turns: i64,
    /// Tokens in.
    pub input_tokens: i64,
    /// Tokens out.
    pub output_tokens: i64,
    /// All tokens.
    pub total_tokens: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
}

/// How many runs are where in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueLengths {
    /// Behind another run of their repository.
    pub waiting: i64,
    /// Claimable now or at their time.
    pub ready: i64,
    /// Driven.
    pub leased: i64,
}

impl Store {
    /// Every task of a run, by id.
    ///
    /// # Errors
    /// What SQLite says; [`StoreError::Row`]. So for every read here.
    pub async fn tasks(&self, run: &RunId) -> Result<Vec<Task>, StoreError> {
        let bodies: Vec<String> = sqlx::query_scalar(TASKS).bind(run.as_str()).fetch_all(self.readers()).await?;
        all("tasks", run.as_str(), &bodies)
    }

    /// One task.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn task(&self, run: &RunId, task: &TaskId) -> Result<Option<Task>, StoreError> {
        let body: Option<String> =
            sqlx::query_scalar(TASK).bind(run.as_str()).bind(task.as_str()).fetch_optional(self.readers()).await?;
        body.map(|body| decode("tasks", task.as_str(), &body)).transpose()
    }

    /// Every attempt of a task, open and decided, by number.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn attempts(&self, run: &RunId, task: &TaskId) -> Result<Vec<Attempt>, StoreError> {
        let bodies: Vec<String> =
            sqlx::query_scalar(ATTEMPTS).bind(run.as_str()).bind(task.as_str()).fetch_all(self.readers()).await?;
        all("attempts", task.as_str(), &bodies)
    }

    /// Turns of a run after the `since`-th, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn turns(&self, run: &RunId, since: i64, limit: u32) -> Result<Vec<StoredTurn>, StoreError> {
        let rows = sqlx::query_as(TURNS_OF_RUN).bind(run.as_str()).bind(since).bind(page(limit));
        turns(run, rows.fetch_all(self.readers()).await?)
    }

    /// Turns of a task, at most 1,000.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn task_turns(&self, run: &RunId, task: &TaskId) -> Result<Vec<StoredTurn>, StoreError> {
        let rows = sqlx::query_as(TURNS_OF_TASK).bind(run.as_str()).bind(task.as_str());
        turns(run, rows.fetch_all(self.readers()).await?)
    }

    /// Evidence of a task, of one attempt or of all; of no task (baseline, restack) with `task` none. At most 1,000.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn evidence(
        &self,
        run: &RunId,
        task: Option<&TaskId>,
        attempt: Option<u32>,
    ) -> Result<Vec<EvidenceRecord>, StoreError> {
        let bodies: Vec<String> = sqlx::query_scalar(EVIDENCE_OF_TASK)
            .bind(run.as_str())
            .bind(task.map_or("", TaskId::as_str))
            .bind(attempt.map(i64::from))
            .fetch_all(self.readers())
            .await?;
        all("evidence", run.as_str(), &bodies)
    }

    /// Reports of turns after the `since`-th, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn reports(&self, run: &RunId, since: i64, limit: u32) -> Result<Vec<ReportRow>, StoreError> {
        let rows: Vec<(i64, String, String)> =
            sqlx::query_as(REPORTS).bind(run.as_str()).bind(since).bind(page(limit)).fetch_all(self.readers()).await?;
        rows.into_iter()
            .map(|(turn, file, body)| Ok(ReportRow { turn, report: decode("reports", &file, &body)?, file }))
            .collect()
    }

    /// A revision of the plan, the newest with `revision` none.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn plan(&self, run: &RunId, revision: Option<i64>) -> Result<Option<PlanRow>, StoreError> {
        let query = match revision {
            Some(revision) => sqlx::query_as(PLAN).bind(run.as_str()).bind(revision),
            None => sqlx::query_as(PLAN_NEWEST).bind(run.as_str()),
        };
        let row: Option<(i64, String, String, Option<String>, i64)> = query.fetch_optional(self.readers()).await?;
        Ok(row.map(|(revision, source, text, prose, at)| PlanRow { revision, source, text, prose, at: Millis(at) }))
    }

    /// Lessons of a run, oldest first.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn lessons(&self, run: &RunId) -> Result<Vec<Lesson>, StoreError> {
        let bodies: Vec<String> = sqlx::query_scalar(LESSONS).bind(run.as_str()).fetch_all(self.readers()).await?;
        all("lessons", run.as_str(), &bodies)
    }

    /// Incidents of a run, newest first, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn incidents(&self, run: &RunId, limit: u32) -> Result<Vec<IncidentRow>, StoreError> {
        let rows: Vec<(String, Option<i64>)> =
            sqlx::query_as(INCIDENTS).bind(run.as_str()).bind(page(limit)).fetch_all(self.readers()).await?;
        rows.into_iter()
            .map(|(body, closed)| {
                Ok(IncidentRow { incident: decode("incidents", run.as_str(), &body)?, closed_at: closed.map(Millis) })
            })
            .collect()
    }

    /// Tries to land, newest first, at most `limit` (and 1,000).
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn landings(&self, run: &RunId, limit: u32) -> Result<Vec<LandingRow>, StoreError> {
        let rows: Vec<(i64, String, String, i64, String)> =
            sqlx::query_as(LANDINGS).bind(run.as_str()).bind(page(limit)).fetch_all(self.readers()).await?;
        rows.into_iter()
            .map(|(seq, commit, outcome, at, data)| {
                let data = decode("landings", run.as_str(), &data)?;
                Ok(LandingRow { seq: Seq(seq), commit, outcome, at: Millis(at), data })
            })
            .collect()
    }

    /// What the ended turns of a run used, by role and agent.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn usage(&self, run: &RunId) -> Result<Vec<UsageSum>, StoreError> {
        Ok(sqlx::query_as(USAGE).bind(run.as_str()).fetch_all(self.readers()).await?)
    }

    /// How many runs are where in the queue.
    ///
    /// # Errors
    /// As [`Store::tasks`].
    pub async fn queue_lengths(&self) -> Result<QueueLengths, StoreError> {
        let (waiting, ready, leased) = sqlx::query_as(LENGTHS).fetch_one(self.readers()).await?;
        Ok(QueueLengths { waiting, ready, leased })
    }
}

fn turns(run: &RunId, rows: Vec<(String, Option<String>)>) -> Result<Vec<StoredTurn>, StoreError> {
    rows.into_iter()
        .map(|(begun, ended)| {
            Ok(StoredTurn {
                begun: decode("turns", run.as_str(), &begun)?,
                ended: ended.map(|body| decode("turns", run.as_str(), &body)).transpose()?,
            })
        })
        .collect()
}
