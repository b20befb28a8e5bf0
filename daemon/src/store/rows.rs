//! The rows of one step, written inside the transaction of `commit`.

use sqlx::SqliteConnection;

use super::error::CommitError;
use super::prepared::{Prepared, Row, TurnEnd};

statements! {
    ADD_EVENT = "INSERT INTO events (run, seq, at, body) VALUES (?1, ?2, ?3, ?4)";
    ADD_EFFECT = "INSERT INTO effects (run, id, name, state, at, body) VALUES (?1, ?2, ?3, 'pending', ?4, ?5)";
    END_EFFECT = "UPDATE effects SET state = 'done', body = '' WHERE run = ?1 AND id = ?2 AND state = 'pending'";
    PUT_TASK = "INSERT INTO tasks (run, task, status, priority, body) VALUES (?1, ?2, ?3, ?4, ?5)
        ON CONFLICT (run, task) DO UPDATE SET status = excluded.status, priority = excluded.priority, body = excluded.body";
    DROP_TASK = "DELETE FROM tasks WHERE run = ?1 AND task = ?2";
    PUT_ATTEMPT = "INSERT INTO attempts (run, task, number, outcome, started_at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
        ON CONFLICT (run, task, number) DO UPDATE SET outcome = excluded.outcome, body = excluded.body";
    ADD_TURN = "INSERT INTO turns (run, turn, effect, role, task, attempt, outcome, started_at, begun)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, '', ?7, ?8)";
    END_TURN = "UPDATE turns SET outcome = ?3, ended_at = ?4, ended = ?5 WHERE run = ?1 AND turn = ?2 AND ended IS NULL";
    ADD_REPORT = "INSERT INTO reports (run, turn, file, body) VALUES (?1, ?2, ?3, ?4)";
    ADD_USAGE = "INSERT INTO usage (run, turn, role, agent, input_tokens, output_tokens, total_tokens, duration_ms, at)
        SELECT run, turn, role, ?3, ?4, ?5, ?6, ?7, ?8 FROM turns WHERE run = ?1 AND turn = ?2";
    ADD_EVIDENCE = "INSERT INTO evidence (run, task, purpose, commit_id, tree, result, fingerprint, attempt, at, body)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
    ADD_PLAN = "INSERT INTO plan_revisions (run, revision, source, text, prose, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    OPEN_INCIDENT = "INSERT INTO incidents (run, owner, reason, task, attempt, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
        ON CONFLICT (run, reason, task, attempt) WHERE closed_at IS NULL DO UPDATE SET owner = excluded.owner, body = excluded.body";
    CLOSE_INCIDENT = "UPDATE incidents SET closed_at = ?5, body = ?6
        WHERE run = ?1 AND reason = ?2 AND task = ?3 AND attempt = ?4 AND closed_at IS NULL";
    ADD_LANDING = "INSERT INTO landings (run, seq, commit_id, outcome, at, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    ADD_LESSON = "INSERT INTO lessons (run, at, body) VALUES (?1, ?2, ?3)";
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

/// Appends events and new effects, ends finished ones.
pub(super) async fn write_numbered(conn: &mut SqliteConnection, step: &Prepared) -> Result<(), CommitError> {
    let run = &step.head.run;
    for event in &step.events {
        sqlx::query(ADD_EVENT).bind(run).bind(event.id).bind(event.at).bind(&event.body).execute(&mut *conn).await?;
    }
    for effect in &step.effects {
        sqlx::query(ADD_EFFECT)
            .bind(run)
            .bind(effect.id)
            .bind(effect.name)
            .bind(effect.at)
            .bind(&effect.body)
            .execute(&mut *conn)
            .await?;
    }
    for id in &step.finished {
        let hit = sqlx::query(END_EFFECT).bind(run).bind(id).execute(&mut *conn).await?.rows_affected();
        if hit != 1 {
            return Err(CommitError::Misfit(format!("effect {id} ended and was not pending")));
        }
    }
    Ok(())
}

/// Writes the changed rows in their order.
pub(super) async fn write_rows(conn: &mut SqliteConnection, step: &Prepared) -> Result<(), CommitError> {
    for row in &step.rows {
        if let Row::TurnEnded(end) = row {
            end_turn(conn, &step.head.run, end).await?;
        } else if let Some(query) = plain(step, row) {
            query.execute(&mut *conn).await?;
        }
    }
    Ok(())
}

/// A row whose statement needs nothing but itself.
fn plain<'q>(step: &'q Prepared, row: &'q Row) -> Option<Query<'q>> {
    let run = step.head.run.as_str();
    Some(match row {
        Row::Task(t) => sqlx::query(PUT_TASK).bind(run).bind(&t.task).bind(t.status).bind(t.priority).bind(&t.body),
        Row::TaskRemoved(task) => sqlx::query(DROP_TASK).bind(run).bind(task),
        Row::Attempt(a) => sqlx::query(PUT_ATTEMPT)
            .bind(run)
            .bind(&a.task)
            .bind(a.number)
            .bind(&a.outcome)
            .bind(a.started_at)
            .bind(&a.body),
        Row::TurnStarted { row, body } => sqlx::query(ADD_TURN)
            .bind(run)
            .bind(row.turn)
            .bind(row.effect.0)
            .bind(row.role.as_str())
            .bind(row.task.as_ref().map_or("", |t| t.as_str()))
            .bind(i64::from(row.attempt))
            .bind(row.at.0)
            .bind(body),
        Row::Plan { revision, source, text, prose, at } => {
            sqlx::query(ADD_PLAN).bind(run).bind(revision).bind(source).bind(text).bind(prose).bind(at)
        }
        Row::Landing { commit, outcome, data } => {
            let (seq, at) = (step.head.seq, step.head.at);
            sqlx::query(ADD_LANDING).bind(run).bind(seq).bind(commit).bind(outcome).bind(at).bind(data)
        }
        Row::Lesson { at, body } => sqlx::query(ADD_LESSON).bind(run).bind(at).bind(body),
        Row::Evidence { keys, attempt, at, body } => bound(ADD_EVIDENCE, run, keys).bind(attempt).bind(at).bind(body),
        Row::Incident { keys, attempt, at, closed: false, body } => {
            bound(OPEN_INCIDENT, run, keys).bind(attempt).bind(at).bind(body)
        }
        Row::Incident { keys, attempt, closed: true, body, .. } => {
            bound(CLOSE_INCIDENT, run, &keys[1..]).bind(attempt).bind(step.head.at).bind(body)
        }
        Row::TurnEnded(_) => return None,
    })
}

fn bound<'q>(sql: &'static str, run: &'q str, keys: &'q [String]) -> Query<'q> {
    keys.iter().fold(sqlx::query(sql).bind(run), |query, key| query.bind(key))
}

async fn end_turn(conn: &mut SqliteConnection, run: &str, end: &TurnEnd) -> Result<(), CommitError> {
    let row = &end.row;
    let hit = sqlx::query(END_TURN)
        .bind(run)
        .bind(row.turn)
        .bind(&row.outcome)
        .bind(row.at.0)
        .bind(&end.body)
        .execute(&mut *conn)
        .await?
        .rows_affected();
    if hit != 1 {
        return Err(CommitError::Misfit(format!("turn {} ended and was not open", row.turn)));
    }
    if let Some(report) = &end.report {
        sqlx::query(ADD_REPORT)
            .bind(run)
            .bind(row.turn)
            .bind(&row.report_file)
            .bind(report)
            .execute(&mut *conn)
            .await?;
    }
    sqlx::query(ADD_USAGE)
        .bind(run)
        .bind(row.turn)
        .bind(&row.agent)
        .bind(row.input_tokens)
        .bind(row.output_tokens)
        .bind(row.total_tokens)
        .bind(row.duration_ms)
        .bind(row.at.0)
        .execute(conn)
        .await?;
    Ok(())
}
