//! A step in its stored form: everything that a transaction writes, encoded before the writer is asked.

use harness_core::effect::Effect;
use harness_core::input::{Input, PAYLOAD_VERSION};
use harness_core::state::{Attempt, RunState};
use harness_core::step::{Change, Step, TurnEndRow, TurnRow};
use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::Lifecycle;
use serde::Serialize;

use super::error::{CommitError, StoreError};

/// The run's row.
pub(super) struct HeadRow {
    pub(super) run: String,
    pub(super) lifecycle: &'static str,
    pub(super) hold: &'static str,
    pub(super) wanted_at: Option<i64>,
    pub(super) seq: i64,
    pub(super) at: i64,
    pub(super) body: String,
}

/// A task's row.
pub(super) struct TaskRow {
    pub(super) task: String,
    pub(super) status: &'static str,
    pub(super) priority: i64,
    pub(super) body: String,
}

/// An attempt's row.
pub(super) struct AttemptRow {
    pub(super) task: String,
    pub(super) number: i64,
    pub(super) outcome: String,
    pub(super) started_at: i64,
    pub(super) body: String,
}

/// The end of a turn.
pub(super) struct TurnEnd {
    pub(super) row: TurnEndRow,
    pub(super) body: String,
    pub(super) report: Option<String>,
}

/// A row that is added or changed in the order of the step.
pub(super) enum Row {
    Task(TaskRow),
    TaskRemoved(String),
    Attempt(AttemptRow),
    TurnStarted { row: TurnRow, body: String },
    TurnEnded(Box<TurnEnd>),
    Evidence { keys: [String; 6], attempt: i64, at: i64, body: String },
    Plan { revision: i64, source: String, text: String, prose: Option<String>, at: i64 },
    Incident { keys: [String; 3], attempt: i64, at: i64, closed: bool, body: String },
    Landing { commit: String, outcome: String, data: String },
    Lesson { at: i64, body: String },
}

/// A row `(id or seq, at, name or empty, body)` of effects and events.
pub(super) struct Numbered {
    pub(super) id: i64,
    pub(super) at: i64,
    pub(super) name: &'static str,
    pub(super) body: String,
}

/// A step, ready to be written.
pub(super) struct Prepared {
    pub(super) head: HeadRow,
    pub(super) rows: Vec<Row>,
    pub(super) events: Vec<Numbered>,
    pub(super) effects: Vec<Numbered>,
    pub(super) finished: Vec<i64>,
    pub(super) input: Option<(i64, String)>,
}

/// Version of the form that inputs are stored in.
pub(super) const INPUT_VERSION: i64 = PAYLOAD_VERSION;

/// JSON of a core value.
pub(super) fn json(table: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Encode { table, source })
}

/// When somebody has to drive the run; none when nobody has to until a person or a client says so.
///
/// Unfinished effects always want a driver: somebody has to say how they ended.
pub(super) fn wanted_at(state: &RunState) -> Option<Millis> {
    let head = &state.head;
    if !state.pending.is_empty() {
        return Some(Millis(0));
    }
    match head.lifecycle {
        Lifecycle::Queued => Some(Millis(0)),
        Lifecycle::Running if head.stopping || head.cancelling => Some(Millis(0)),
        Lifecycle::Running => match &head.hold {
            None => Some(Millis(0)),
            Some(hold) => hold.until,
        },
        Lifecycle::Completed => head.landing.retry_at,
        Lifecycle::Registered | Lifecycle::Stopped | Lifecycle::Failed | Lifecycle::Cancelled => None,
    }
}

/// Encodes a state's scalar row.
pub(super) fn head_row(state: &RunState) -> Result<HeadRow, StoreError> {
    let head = &state.head;
    Ok(HeadRow {
        run: head.brief.run.as_str().to_owned(),
        lifecycle: head.lifecycle.as_str(),
        hold: head.hold.as_ref().map_or("", |h| h.kind.as_str()),
        wanted_at: wanted_at(state).map(|t| t.0),
        seq: head.seq.0,
        at: head.updated_at.0,
        body: json("runs", head)?,
    })
}

/// Encodes a step and the state after it.
pub(super) fn prepare(input: Option<&Input>, step: &Step, state: &RunState) -> Result<Prepared, CommitError> {
    let mut rows = Vec::with_capacity(step.changes.len());
    // Closed attempts first: a task has at most one open attempt at any time.
    for change in &step.changes {
        if let Change::AttemptClosed(attempt) = change {
            rows.push(Row::Attempt(attempt_row(attempt)?));
        }
    }
    for change in &step.changes {
        rows.extend(row(change, step, state)?);
    }
    let mut events = Vec::with_capacity(step.events.len());
    for event in &step.events {
        events.push(Numbered { id: event.seq.0, at: event.at.0, name: "", body: json("events", event)? });
    }
    let mut effects = Vec::with_capacity(step.effects.len());
    for effect in &step.effects {
        effects.push(effect_row(effect)?);
    }
    let input = match input {
        Some(input) => Some((input.at.0, json("inputs", input)?)),
        None => None,
    };
    let finished = step.finished.iter().map(|id| id.0).collect();
    Ok(Prepared { head: head_row(state)?, rows, events, effects, finished, input })
}

fn effect_row(effect: &Effect) -> Result<Numbered, StoreError> {
    Ok(Numbered { id: effect.id.0, at: effect.at.0, name: effect.kind.name(), body: json("effects", effect)? })
}

fn attempt_row(attempt: &Attempt) -> Result<AttemptRow, StoreError> {
    Ok(AttemptRow {
        task: attempt.task.as_str().to_owned(),
        number: i64::from(attempt.number),
        outcome: attempt.outcome.clone(),
        started_at: attempt.started_at.0,
        body: json("attempts", attempt)?,
    })
}

fn row(change: &Change, step: &Step, state: &RunState) -> Result<Option<Row>, CommitError> {
    Ok(Some(match change {
        // The run's row is always written, closed attempts were first.
        Change::Run | Change::AttemptClosed(_) => return Ok(None),
        Change::Task(id) => return task(id, step, state),
        Change::TaskRemoved(id) => Row::TaskRemoved(id.as_str().to_owned()),
        Change::Attempt(id) => return open_attempt(id, step, state),
        Change::TurnStarted(row) => Row::TurnStarted { row: row.clone(), body: json("turns", row)? },
        Change::TurnEnded(row) => Row::TurnEnded(Box::new(TurnEnd {
            body: json("turns", row)?,
            report: row.report.as_ref().map(|r| json("reports", r)).transpose()?,
            row: (**row).clone(),
        })),
        Change::Evidence(record) => Row::Evidence {
            keys: [
                text(record.task.as_ref()),
                word("evidence", &record.purpose)?,
                record.commit.clone(),
                record.tree.clone(),
                record.result.as_str().to_owned(),
                record.fingerprint.clone(),
            ],
            attempt: i64::from(record.attempt),
            at: record.at.0,
            body: json("evidence", record)?,
        },
        Change::Plan(plan) => Row::Plan {
            revision: plan.revision,
            source: plan.source.clone(),
            text: plan.text.clone(),
            prose: plan.prose.clone(),
            at: plan.at.0,
        },
        Change::Incident { incident, closed } => Row::Incident {
            keys: [incident.owner.as_str().to_owned(), incident.reason.clone(), text(incident.task.as_ref())],
            attempt: i64::from(incident.attempt),
            at: incident.at.0,
            closed: *closed,
            body: json("incidents", incident)?,
        },
        Change::Landing { commit, outcome, data } => {
            Row::Landing { commit: commit.clone(), outcome: outcome.clone(), data: json("landings", data)? }
        }
        Change::Lesson(lesson) => Row::Lesson { at: lesson.at.0, body: json("lessons", lesson)? },
    }))
}

fn text(task: Option<&TaskId>) -> String {
    task.map_or_else(String::new, |t| t.as_str().to_owned())
}

/// The word that an enum without data is written as.
fn word(table: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    Ok(json(table, value)?.trim_matches('"').to_owned())
}

fn task(id: &TaskId, step: &Step, state: &RunState) -> Result<Option<Row>, CommitError> {
    match state.tasks.get(id) {
        Some(task) => Ok(Some(Row::Task(TaskRow {
            task: id.as_str().to_owned(),
            status: task.status.as_str(),
            priority: task.plan.priority,
            body: json("tasks", task)?,
        }))),
        None if step.changes.iter().any(|c| matches!(c, Change::TaskRemoved(gone) if gone == id)) => Ok(None),
        None => Err(CommitError::Misfit(format!("task {id} changed and is not in the state"))),
    }
}

fn open_attempt(id: &TaskId, step: &Step, state: &RunState) -> Result<Option<Row>, CommitError> {
    match state.attempts.get(id) {
        Some(attempt) => Ok(Some(Row::Attempt(attempt_row(attempt)?))),
        None if step.changes.iter().any(|c| matches!(c, Change::AttemptClosed(gone) if gone.task == *id)) => Ok(None),
        None => Err(CommitError::Misfit(format!("the attempt of task {id} changed and is not in the state"))),
    }
}
