//! `db check`: is the file healthy, and do the rows say what the daemon relies on?

use harness_core::effect::Effect;
use harness_core::evidence::EvidenceRecord;
use harness_core::input::Input;
use harness_core::state::{Attempt, RunHead, Task};
use harness_core::step::TurnRow;
use harness_proto::event::Event;
use harness_proto::report::Report;
use sqlx::SqliteConnection;

use super::Store;
use super::error::StoreError;

statements! {
    INTEGRITY = "PRAGMA integrity_check(20)";
    FOREIGN_KEYS = "PRAGMA foreign_key_check";
    SEQ_GAPS = "SELECT r.id FROM runs r WHERE r.seq <> (SELECT count(*) FROM events e WHERE e.run = r.id)
        OR r.seq <> (SELECT coalesce(max(e.seq), 0) FROM events e WHERE e.run = r.id) LIMIT 20";
    INPUT_GAPS = "SELECT r.id FROM runs r WHERE r.inputs <> (SELECT count(*) FROM inputs i WHERE i.run = r.id)
        OR r.inputs <> (SELECT coalesce(max(i.ord), 0) FROM inputs i WHERE i.run = r.id) LIMIT 20";
    FENCE_BACK = "SELECT DISTINCT a.run FROM inputs a JOIN inputs b ON b.run = a.run AND b.ord = a.ord + 1 WHERE b.fence < a.fence
        UNION SELECT r.id FROM runs r JOIN inputs i ON i.run = r.id AND i.ord = r.inputs WHERE i.fence > r.fence LIMIT 20";
    NOT_OFFERED = "SELECT r.id FROM runs r WHERE r.queue = 'waiting' AND NOT EXISTS
        (SELECT 1 FROM runs f WHERE f.repo = r.repo AND f.queue IN ('ready', 'leased')) LIMIT 20";
    NOBODY_DRIVES = "SELECT id FROM runs WHERE (queue = 'leased') <> (lease_owner <> '') OR (queue = 'idle' AND wanted_at IS NOT NULL)
        OR (queue IN ('waiting', 'ready') AND wanted_at IS NULL) LIMIT 20";
    INDEXED = "SELECT count(*) FROM runs INDEXED BY runs_claim WHERE queue = 'ready'";
    COUNTED = "SELECT count(*) FROM runs NOT INDEXED WHERE queue = 'ready'";
    TASK_BODIES = "SELECT rowid, run || ':' || task, body FROM tasks WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    ATTEMPT_BODIES = "SELECT rowid, run || ':' || task || ':' || number, body FROM attempts WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    EFFECT_BODIES = "SELECT rowid, run || ':' || id, body FROM effects WHERE rowid > ?1 AND state = 'pending' ORDER BY rowid LIMIT 500";
    EVENT_BODIES = "SELECT rowid, run || ':' || seq, body FROM events WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    INPUT_BODIES = "SELECT rowid, run || ':' || ord, body FROM inputs WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    TURN_BODIES = "SELECT rowid, run || ':' || turn, begun FROM turns WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    EVIDENCE_BODIES = "SELECT rowid, run || ':' || id, body FROM evidence WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    REPORT_BODIES = "SELECT rowid, run || ':' || turn, body FROM reports WHERE rowid > ?1 ORDER BY rowid LIMIT 500";
    HEAD_BODIES = "SELECT ord, id, body FROM runs WHERE ord > ?1 ORDER BY ord LIMIT 500";
}

/// What `db check` found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Rows that were read and parsed.
    pub rows: u64,
    /// What is wrong, a sentence each; empty for a healthy store. At most some hundred.
    pub problems: Vec<String>,
}

impl CheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Most unreadable rows that are named.
const NAMED: usize = 100;

impl Store {
    /// Checks the file and every row that the daemon relies on. Reads everything: not for every start.
    ///
    /// # Errors
    /// What SQLite says when the file cannot even be read; damage that SQLite can name is in the report.
    pub async fn check(&self) -> Result<CheckReport, StoreError> {
        let mut report = CheckReport::default();
        let mut conn = self.readers().acquire().await?;
        let lines: Vec<String> = sqlx::query_scalar(INTEGRITY).fetch_all(&mut *conn).await?;
        report.problems.extend(lines.into_iter().filter(|l| l != "ok").map(|l| format!("integrity: {l}")));
        let broken: Vec<(String, Option<i64>, String, i64)> =
            sqlx::query_as(FOREIGN_KEYS).fetch_all(&mut *conn).await?;
        report.problems.extend(broken.iter().take(NAMED).map(|(table, row, parent, _)| {
            format!("row {} of {table} names a row of {parent} that does not exist", row.unwrap_or(0))
        }));
        for (sql, what) in [
            (SEQ_GAPS, "the events of the run do not count up to its seq without a gap"),
            (INPUT_GAPS, "the inputs of the run do not count up without a gap"),
            (FENCE_BACK, "the fence of the run went back"),
            (NOT_OFFERED, "the run waits in the queue and no run of its repository is offered or driven"),
            (NOBODY_DRIVES, "the run's place in the queue does not fit what it wants"),
        ] {
            let runs: Vec<String> = sqlx::query_scalar(sql).fetch_all(&mut *conn).await?;
            report.problems.extend(runs.iter().map(|run| format!("{run}: {what}")));
        }
        let indexed: i64 = sqlx::query_scalar(INDEXED).fetch_one(&mut *conn).await?;
        let counted: i64 = sqlx::query_scalar(COUNTED).fetch_one(&mut *conn).await?;
        if indexed != counted {
            report.problems.push(format!("the claim index holds {indexed} runs, the table {counted}"));
        }
        parse::<RunHead>(&mut conn, HEAD_BODIES, "runs", &mut report).await?;
        parse::<Task>(&mut conn, TASK_BODIES, "tasks", &mut report).await?;
        parse::<Attempt>(&mut conn, ATTEMPT_BODIES, "attempts", &mut report).await?;
        parse::<Effect>(&mut conn, EFFECT_BODIES, "effects", &mut report).await?;
        parse::<Event>(&mut conn, EVENT_BODIES, "events", &mut report).await?;
        parse::<Input>(&mut conn, INPUT_BODIES, "inputs", &mut report).await?;
        parse::<TurnRow>(&mut conn, TURN_BODIES, "turns", &mut report).await?;
        parse::<EvidenceRecord>(&mut conn, EVIDENCE_BODIES, "evidence", &mut report).await?;
        parse::<Report>(&mut conn, REPORT_BODIES, "reports", &mut report).await?;
        Ok(report)
    }
}

/// Parses every body of a table, page by page.
async fn parse<T: serde::de::DeserializeOwned>(
    conn: &mut SqliteConnection,
    sql: &'static str,
    table: &str,
    report: &mut CheckReport,
) -> Result<(), StoreError> {
    let mut last = 0i64;
    loop {
        let rows: Vec<(i64, String, String)> = sqlx::query_as(sql).bind(last).fetch_all(&mut *conn).await?;
        let Some((next, ..)) = rows.last() else {
            return Ok(());
        };
        last = *next;
        for (_, key, body) in &rows {
            report.rows += 1;
            if let Err(error) = serde_json::from_str::<T>(body)
                && report.problems.len() < NAMED
            {
                report.problems.push(format!("row {key} of {table} cannot be read: {error}"));
            }
        }
    }
}
