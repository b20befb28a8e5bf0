//! `commit_step`: the one way in which a run changes. Rows, history, effects and the input in one transaction under the fence.

use futures_util::future::BoxFuture;
use harness_core::input::Input;
use harness_core::state::RunState;
use harness_core::step::Step;
use harness_proto::ids::{Fence, Millis, RunId, Seq};
use sqlx::SqliteConnection;

use super::error::CommitError;
use super::prepared::{AttemptRow, INPUT_VERSION, Prepared, Row, TurnEnd, prepare};
use super::requests::{self, RequestKey};
use super::writer::Op;
use super::{Store, lease};
use crate::failpoint;

const STEP: Op = Op {
    name: "commit_step",
    before: || failpoint::hit("store.commit.before"),
    after: || failpoint::hit("store.commit.after"),
};
const CONTROL: Op = Op {
    name: "commit_control",
    before: || failpoint::hit("store.control.before"),
    after: || failpoint::hit("store.control.after"),
};

statements! {
    PLACE_OF = "SELECT repo, seq, inputs, fence, queue FROM runs WHERE id = ?1";
    GUARD_STEP = "UPDATE runs SET lifecycle = ?3, hold = ?4, wanted_at = ?5, seq = ?6, inputs = inputs + ?7, updated_at = ?8, body = ?9
        WHERE id = ?1 AND fence = ?2 AND queue = 'leased'";
    GUARD_CONTROL = "UPDATE runs SET lifecycle = ?3, hold = ?4, wanted_at = ?5, seq = ?6, inputs = inputs + ?7, updated_at = ?8, body = ?9,
        fence = fence + 1 WHERE id = ?1 AND fence = ?2 AND queue <> 'leased'";
    ADD_INPUT = "INSERT INTO inputs (run, ord, payload_version, fence, seq, at, body) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
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

/// Who may write.
#[derive(Clone, Copy)]
enum Guard {
    /// The driver that holds the lease.
    Lease(Fence),
    /// A control of a run that nobody drives and nobody changed since it was loaded.
    Nobody(Fence),
}

impl Store {
    /// Stores one step of a run that the caller drives: rows, events, effects and the input, in one transaction.
    ///
    /// After an error the state in memory must be thrown away and loaded again. Cancel safe: a dropped call is still stored.
    ///
    /// # Errors
    /// [`CommitError::Fenced`] when somebody else drives the run or nobody does; [`CommitError::SeqGap`] and
    /// [`CommitError::Misfit`] for bugs; [`CommitError::Store`] when the database cannot write.
    pub async fn commit_step(
        &self,
        run: &RunId,
        fence: Fence,
        input: Option<&Input>,
        step: &Step,
        state: &RunState,
    ) -> Result<Seq, CommitError> {
        self.commit(STEP, run, Guard::Lease(fence), input, step, state, None)
            .await
    }

    /// Stores one step of a run that nobody drives, under a fresh fence, and puts the run where it belongs in the queue.
    ///
    /// `loaded` is the fence that [`Store::load`] told with the state. With `request`, the request is marked as applied in the
    /// same transaction, so that a repeat after a crash does not apply it twice.
    ///
    /// # Errors
    /// [`CommitError::Driven`] when a driver holds the run: send the control to it. [`CommitError::Fenced`] when the run
    /// changed since it was loaded: load again. Else as [`Store::commit_step`].
    pub async fn commit_control(
        &self,
        run: &RunId,
        loaded: Fence,
        input: &Input,
        step: &Step,
        state: &RunState,
        request: Option<&RequestKey>,
    ) -> Result<Seq, CommitError> {
        self.commit(
            CONTROL,
            run,
            Guard::Nobody(loaded),
            Some(input),
            step,
            state,
            request,
        )
        .await
    }

    #[expect(clippy::too_many_arguments, reason = "the two public forms name them")]
    async fn commit(
        &self,
        op: Op,
        run: &RunId,
        guard: Guard,
        input: Option<&Input>,
        step: &Step,
        state: &RunState,
        request: Option<&RequestKey>,
    ) -> Result<Seq, CommitError> {
        if state.head.brief.run != *run {
            return Err(CommitError::Misfit(format!(
                "the state is of run {}",
                state.head.brief.run
            )));
        }
        let prepared = prepare(input, step, state)?;
        let request = request.cloned();
        let (run, seq) = (run.clone(), state.head.seq);
        self.write(
            op,
            move |signals, ()| {
                signals.committed(&run, seq);
                signals.queue_changed();
            },
            move |conn| {
                Box::pin(async move { write(conn, guard, &prepared, request.as_ref()).await })
            },
        )
        .await?;
        Ok(seq)
    }
}

async fn write(
    conn: &mut SqliteConnection,
    guard: Guard,
    step: &Prepared,
    request: Option<&RequestKey>,
) -> Result<(), CommitError> {
    let head = &step.head;
    let rows: Vec<(i64, i64, i64, i64, String)> = sqlx::query_as(PLACE_OF)
        .bind(&head.run)
        .fetch_all(&mut *conn)
        .await?;
    let Some((repo, stored, inputs, _, queue)) = rows.into_iter().next() else {
        return Err(super::StoreError::UnknownRun(head.run.clone()).into());
    };
    let (sql, fence) = match guard {
        Guard::Lease(fence) => (GUARD_STEP, fence),
        Guard::Nobody(fence) => (GUARD_CONTROL, fence),
    };
    let hit = sqlx::query(sql)
        .bind(&head.run)
        .bind(fence.0)
        .bind(head.lifecycle)
        .bind(head.hold)
        .bind(head.wanted_at)
        .bind(head.seq)
        .bind(i64::from(step.input.is_some()))
        .bind(head.at)
        .bind(&head.body)
        .execute(&mut *conn)
        .await?
        .rows_affected();
    if hit != 1 {
        return Err(match guard {
            Guard::Nobody(_) if queue == "leased" => CommitError::Driven,
            _ => CommitError::Fenced { fence: fence.0 },
        });
    }
    check_seq(stored, step)?;
    if let Some((at, body)) = &step.input {
        let fence = match guard {
            Guard::Lease(fence) => fence.0,
            Guard::Nobody(fence) => fence.0 + 1,
        };
        sqlx::query(ADD_INPUT)
            .bind(&head.run)
            .bind(inputs + 1)
            .bind(INPUT_VERSION)
            .bind(fence)
            .bind(head.seq)
            .bind(at)
            .bind(body)
            .execute(&mut *conn)
            .await?;
    }
    write_rows(conn, step).await?;
    write_numbered(conn, step).await?;
    if matches!(guard, Guard::Nobody(_)) {
        lease::place(
            conn,
            &head.run,
            repo,
            head.wanted_at.map(Millis),
            Millis(head.at),
        )
        .await?;
    }
    if let Some(key) = request {
        requests::mark_applied(conn, key, &head.run).await?;
    }
    Ok(())
}

/// Events follow the stored ones without a gap and end where the state says.
fn check_seq(stored: i64, step: &Prepared) -> Result<(), CommitError> {
    let numbers = step.events.iter().map(|e| e.id);
    let last = step.head.seq;
    let count = i64::try_from(step.events.len()).unwrap_or(i64::MAX);
    if numbers.eq(stored + 1..=last) && stored + count == last {
        return Ok(());
    }
    Err(CommitError::SeqGap {
        stored,
        first: step.events.first().map_or(last, |e| e.id),
        last,
    })
}

async fn write_numbered(conn: &mut SqliteConnection, step: &Prepared) -> Result<(), CommitError> {
    let run = &step.head.run;
    for event in &step.events {
        sqlx::query(ADD_EVENT)
            .bind(run)
            .bind(event.id)
            .bind(event.at)
            .bind(&event.body)
            .execute(&mut *conn)
            .await?;
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
        let hit = sqlx::query(END_EFFECT)
            .bind(run)
            .bind(id)
            .execute(&mut *conn)
            .await?
            .rows_affected();
        if hit != 1 {
            return Err(CommitError::Misfit(format!(
                "effect {id} ended and was not pending"
            )));
        }
    }
    Ok(())
}

async fn write_rows(conn: &mut SqliteConnection, step: &Prepared) -> Result<(), CommitError> {
    for row in &step.rows {
        write_row(conn, step, row).await?;
    }
    Ok(())
}

fn write_row<'a>(
    conn: &'a mut SqliteConnection,
    step: &'a Prepared,
    row: &'a Row,
) -> BoxFuture<'a, Result<(), CommitError>> {
    let run = step.head.run.as_str();
    Box::pin(async move {
        let query = match row {
            Row::Task(t) => sqlx::query(PUT_TASK)
                .bind(run)
                .bind(&t.task)
                .bind(t.status)
                .bind(t.priority)
                .bind(&t.body),
            Row::TaskRemoved(task) => sqlx::query(DROP_TASK).bind(run).bind(task),
            Row::Attempt(attempt) => put_attempt(run, attempt),
            Row::TurnStarted { row, body } => sqlx::query(ADD_TURN)
                .bind(run)
                .bind(row.turn)
                .bind(row.effect.0)
                .bind(row.role.as_str())
                .bind(row.task.as_ref().map_or("", |t| t.as_str()))
                .bind(i64::from(row.attempt))
                .bind(row.at.0)
                .bind(body),
            Row::TurnEnded(end) => return end_turn(conn, run, end).await,
            Row::Evidence {
                keys,
                attempt,
                at,
                body,
            } => keys
                .iter()
                .fold(sqlx::query(ADD_EVIDENCE).bind(run), |query, key| {
                    query.bind(key)
                })
                .bind(attempt)
                .bind(at)
                .bind(body),
            Row::Plan {
                revision,
                source,
                text,
                prose,
                at,
            } => sqlx::query(ADD_PLAN)
                .bind(run)
                .bind(revision)
                .bind(source)
                .bind(text)
                .bind(prose)
                .bind(at),
            Row::Incident {
                keys: [_, reason, task],
                attempt,
                closed: true,
                body,
                ..
            } => sqlx::query(CLOSE_INCIDENT)
                .bind(run)
                .bind(reason)
                .bind(task)
                .bind(attempt)
                .bind(step.head.at)
                .bind(body),
            Row::Incident {
                keys,
                attempt,
                at,
                body,
                ..
            } => keys
                .iter()
                .fold(sqlx::query(OPEN_INCIDENT).bind(run), |query, key| {
                    query.bind(key)
                })
                .bind(attempt)
                .bind(at)
                .bind(body),
            Row::Landing {
                commit,
                outcome,
                data,
            } => sqlx::query(ADD_LANDING)
                .bind(run)
                .bind(step.head.seq)
                .bind(commit)
                .bind(outcome)
                .bind(step.head.at)
                .bind(data),
            Row::Lesson { at, body } => sqlx::query(ADD_LESSON).bind(run).bind(at).bind(body),
        };
        query.execute(conn).await?;
        Ok(())
    })
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, sqlx::sqlite::SqliteArguments>;

fn put_attempt<'q>(run: &'q str, attempt: &'q AttemptRow) -> Query<'q> {
    sqlx::query(PUT_ATTEMPT)
        .bind(run)
        .bind(&attempt.task)
        .bind(attempt.number)
        .bind(&attempt.outcome)
        .bind(attempt.started_at)
        .bind(&attempt.body)
}

async fn end_turn(
    conn: &mut SqliteConnection,
    run: &str,
    end: &TurnEnd,
) -> Result<(), CommitError> {
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
        return Err(CommitError::Misfit(format!(
            "turn {} ended and was not open",
            row.turn
        )));
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
