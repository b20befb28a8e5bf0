//! What one call of `step` returns: the rows to write, the history to append, the effects to carry out.

use harness_proto::event::Event;
use harness_proto::ids::{EffectId, Millis, TaskId};
use harness_proto::report::Report;
use harness_proto::vocab::{Kind, Role};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::Effect;
use crate::evidence::EvidenceRecord;
use crate::state::{Attempt, Incident};

/// The result of one input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// Rows to write; `Run`, `Task` and `Attempt` are read from the state after the step.
    pub changes: Vec<Change>,
    /// Rows of history, `seq` following the last one without a gap.
    pub events: Vec<Event>,
    /// New effects, to be stored with the step and carried out after it.
    pub effects: Vec<Effect>,
    /// Effects that are over; the input told so.
    pub finished: Vec<EffectId>,
    /// Running effects to interrupt.
    pub cancel: Vec<Cancel>,
}

/// A running effect to interrupt; its result still comes back as an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cancel {
    /// Which.
    pub effect: EffectId,
    /// Without grace.
    pub now: bool,
}

/// A row to write.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The run's scalar row.
    Run,
    /// A task's row.
    Task(TaskId),
    /// A task that a plan removed.
    TaskRemoved(TaskId),
    /// An open attempt's row.
    Attempt(TaskId),
    /// The last row of an attempt that was decided in this step.
    AttemptClosed(Box<Attempt>),
    /// A turn began.
    TurnStarted(TurnRow),
    /// A turn ended.
    TurnEnded(Box<TurnEndRow>),
    /// Evidence was recorded.
    Evidence(Box<EvidenceRecord>),
    /// A plan was imported.
    Plan(PlanRow),
    /// An incident was opened; `closed` tells that it is over.
    Incident {
        /// It.
        incident: Box<Incident>,
        /// Whether it is over.
        closed: bool,
    },
    /// A landing ended: target, commit, how.
    Landing {
        /// Commit brought, or that was to be.
        commit: String,
        /// `landed`, `pending:<why>`, `moved`.
        outcome: String,
        /// Details.
        data: Value,
    },
    /// A lesson to append to `harness-lessons.md` (artifacts 1.7).
    Lesson(Lesson),
}

/// A turn that began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRow {
    /// Number in the run.
    pub turn: i64,
    /// Effect that carries it out.
    pub effect: EffectId,
    /// Who.
    pub role: Role,
    /// What for.
    pub kind: Kind,
    /// Task, none for a planner.
    pub task: Option<TaskId>,
    /// Attempt, 0 for a planner.
    pub attempt: u32,
    /// Commit of its tree.
    pub commit: String,
    /// Hash of the prompt's template.
    pub template: String,
    /// When.
    pub at: Millis,
}

/// A turn that ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEndRow {
    /// Number in the run.
    pub turn: i64,
    /// `report`, `failed:<kind>`, `lost`, `interrupted`.
    pub outcome: String,
    /// Why, when it failed.
    pub message: String,
    /// The report as it counts.
    pub report: Option<Report>,
    /// Name of the report file (`impl-T-001-a1.json`), empty when there is no report.
    pub report_file: String,
    /// Agent session.
    pub session: String,
    /// Agent name and version.
    pub agent: String,
    /// Tokens in.
    pub input_tokens: i64,
    /// Tokens out.
    pub output_tokens: i64,
    /// Tokens in all.
    pub total_tokens: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// Digest of the transcript.
    pub transcript: String,
    /// When.
    pub at: Millis,
}

/// A plan that was imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// Revision.
    pub revision: i64,
    /// `planner`, `user`, `found`.
    pub source: String,
    /// The text as it was.
    pub text: String,
    /// Prose of the planner, when it wrote one.
    pub prose: Option<String>,
    /// When.
    pub at: Millis,
}

/// An entry of `harness-lessons.md`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// Title after `### L-n: `.
    pub title: String,
    /// `task`, `planner`, `summary`.
    pub category: String,
    /// What was tried.
    pub strategy: String,
    /// `accept`, `revert`, `replan`, `summary`.
    pub outcome: String,
    /// What was learnt.
    pub insight: String,
    /// Role that it is about.
    pub role: String,
    /// Event it belongs to.
    pub iteration: i64,
    /// When.
    pub at: Millis,
}
