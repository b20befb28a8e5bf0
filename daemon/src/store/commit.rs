//! `commit_step`: the one way in which a run changes. Rows, history, effects and the input in one transaction under the fence.

use harness_core::input::Input;
use harness_core::state::RunState;
use harness_core::step::Step;
use harness_proto::ids::{Fence, Millis, RunId, Seq};
use sqlx::SqliteConnection;

use super::error::CommitError;
use super::prepared::{INPUT_VERSION, Prepared, prepare};
use super::requests::{self, RequestKey};
use super::writer::Op;
use super::{Store, lease, rows};
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
        self.commit(STEP, run, Guard::Lease(fence), input, step, state, None).await
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
        self.commit(CONTROL, run, Guard::Nobody(loaded), Some(input), step, state, request).await
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
            return Err(CommitError::Misfit(format!("the state is of run {}", state.head.brief.run)));
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
            move |conn| Box::pin(async move { write(conn, guard, &prepared, request.as_ref()).await }),
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
    let place: Vec<(i64, i64, i64, i64, String)> =
        sqlx::query_as(PLACE_OF).bind(&head.run).fetch_all(&mut *conn).await?;
    let Some((repo, stored, inputs, _, queue)) = place.into_iter().next() else {
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
    rows::write_rows(conn, step).await?;
    rows::write_numbered(conn, step).await?;
    if matches!(guard, Guard::Nobody(_)) {
        lease::place(conn, &head.run, repo, head.wanted_at.map(Millis), Millis(head.at)).await?;
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
    Err(CommitError::SeqGap { stored, first: step.events.first().map_or(last, |e| e.id), last })
}
