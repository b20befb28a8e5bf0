//! Everything that can happen to a run.
//!
//! An input carries every fact that [`step`](crate::supervisor::step) needs; the runtime stores it before it acts, so that a
//! run can be replayed.

use harness_proto::ids::{EffectId, Millis, TaskId};
use harness_proto::plan::Check;
use harness_proto::report::Report;
use harness_proto::vocab::FailureKind;
use serde::{Deserialize, Serialize};

use crate::evidence::CommandRun;

/// Version of the stored form of inputs.
pub const PAYLOAD_VERSION: i64 = 1;

/// One thing that happened, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Input {
    /// When, by the wall clock.
    pub at: Millis,
    /// What.
    pub kind: InputKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// `create-launch` wrote the run down.
    Registered,
    /// The run cannot be driven: its repository is gone, its policy unreadable, ….
    Unavailable(Fault),
    /// A driver took the run: from the queue, or over from a daemon that died.
    Claimed,
    /// A person or a client asked for something.
    Command(Command),
    /// An effect ended.
    Effect {
        /// Which.
        id: EffectId,
        /// How.
        outcome: Box<Outcome>,
    },
    /// The runtime does not know how an effect of class `lost` ended (the daemon was killed).
    EffectLost {
        /// Which.
        id: EffectId,
    },
    /// A human changed `tasks.json`.
    PlanEdited {
        /// What stands there now.
        plan: PlanFile,
        /// What the runtime wrote there last; empty when that is not known.
        base: String,
    },
    /// A human changed `harness-launch.json` in mid-run; shown, never followed (corrections 31).
    LaunchEdited,
    /// A deadline of [`next_deadline`](crate::state::RunState::next_deadline) passed.
    Tick,
}

/// What a person or a client may ask of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Begin or go on.
    Start(Box<StartFacts>),
    /// No new turn; live turns end.
    Pause,
    /// Interrupt turns, keep the work, stand still.
    Stop {
        /// Without grace.
        now: bool,
    },
    /// Give a failed, blocked or timed-out task `max_task_attempts` more.
    Retry {
        /// Which.
        task: TaskId,
        /// A note for the implementer; may be empty.
        note: String,
    },
    /// Leave a task out.
    Skip {
        /// Which.
        task: TaskId,
        /// Why.
        reason: String,
    },
    /// Give a task up.
    CancelTask {
        /// Which.
        task: TaskId,
    },
    /// Give the run up; final.
    Cancel,
    /// Bring the integration head to the target now (`land: manual`, or a pending landing).
    Land,
}

/// What the runtime found when a run was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StartFacts {
    /// Branch that the run lands on.
    pub target_branch: String,
    /// Its tip now.
    pub target_tip: String,
    /// Tree of the tip.
    pub target_tree: String,
    /// `tasks.json` as it stands.
    pub plan: PlanFile,
    /// The program of the agents, for the record.
    pub agent: String,
    /// Whether agents and evidence are walled: `landlock abi 7`, `agent sandbox`, `none`.
    pub walls: String,
}

/// A plan file as found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFile {
    /// There is none.
    Missing,
    /// Its text.
    Text(String),
    /// It cannot be used: not UTF-8, too large, not readable; the reason in words.
    Unusable(String),
}

/// How an effect ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Of `PrepareTree`, `RemoveTree`, `Finish`.
    Done,
    /// Of `RunSetup`: every command that ran; the last one may have failed.
    SetupDone(Vec<CommandRun>),
    /// Of `RunTurn`.
    TurnEnded(Box<TurnEnded>),
    /// Of `CollectEvidence`.
    EvidenceCollected {
        /// Tree of the commit.
        tree: String,
        /// Setup commands that ran.
        setup: Vec<CommandRun>,
        /// Evidence commands that ran, in the order asked; empty when setup failed.
        runs: Vec<CommandRun>,
    },
    /// Of `BuildCandidate`.
    Candidate(CandidateOutcome),
    /// Of `AdvanceIntegration`.
    Advanced {
        /// Where the head is now.
        head: String,
        /// Whether that is what was asked for.
        moved: bool,
    },
    /// Of `Land`.
    Land(LandOutcome),
    /// Of `Restack`.
    Restack(RestackOutcome),
    /// The runtime could not carry the effect out.
    Fault(Fault),
    /// The effect was interrupted on request before it had a result.
    Interrupted,
}

/// How a turn ended, with what the runtime saw itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnEnded {
    /// The report or why there is none.
    pub result: Result<Report, TurnFailure>,
    /// What the tree holds after an implementer turn.
    pub tree: Option<TreeFacts>,
    /// The planner's file after a planner turn.
    pub plan: Option<PlanFile>,
    /// The planner's prose after a planner turn.
    pub plan_md: Option<String>,
    /// Agent session, when the agent has one.
    pub session: Option<String>,
    /// Whether the session asked for was continued.
    pub resumed: bool,
    /// Tokens, turns and time.
    pub usage: TurnUsage,
    /// Digest of the transcript file.
    pub transcript: String,
    /// Name and version of the agent as it told.
    pub agent: String,
}

/// What a turn used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnUsage {
    /// Input tokens.
    pub input_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// All tokens.
    pub total_tokens: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
}

/// Why a turn has no usable report (DESIGN 7).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnFailure {
    /// Kind.
    pub kind: FailureKind,
    /// A sentence, redacted.
    pub message: String,
    /// When a limit ends; for `rate_limited` and `usage_limited`.
    pub until: Option<Millis>,
    /// Each broken rule of an invalid report.
    pub errors: Vec<String>,
}

/// What the runtime found in an attempt's tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeFacts {
    /// HEAD after the turn, before leftovers were committed.
    pub head: String,
    /// Commits base..head, oldest first, full ids.
    pub commits: Vec<String>,
    /// The commit to judge: head, or a commit of the leftovers on top of it. Empty when the net change is empty.
    pub trial: String,
    /// Its tree.
    pub trial_tree: String,
    /// Net changed paths base..trial, lossy text.
    pub changed: Vec<String>,
    /// Whether the runtime committed leftovers.
    pub leftover: bool,
    /// What makes the work unusable, in words: does not descend from the base, HEAD is a branch, ….
    pub problems: Vec<String>,
}

/// How building a candidate ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateOutcome {
    /// A commit on the head.
    Built {
        /// It.
        commit: String,
        /// Its tree.
        tree: String,
    },
    /// The change does not fit on the head.
    Conflicted {
        /// Conflicting paths.
        paths: Vec<String>,
        /// Whether a submodule is among them: only the user can solve it.
        submodule: bool,
    },
    /// The attempt changes nothing.
    NoChange,
    /// The change is not empty and the head has it already.
    AlreadyApplied,
}

/// How landing ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandOutcome {
    /// The target is where it was to be.
    Landed {
        /// Paths that the user edited in between; their bytes stay.
        kept_edits: Vec<String>,
    },
    /// Something of the user's is in the way; tried again later.
    Pending {
        /// Stable word: `local_changes`, `index_locked`, `merge_in_progress`, ….
        why: String,
        /// Paths in the way.
        paths: Vec<String>,
        /// What the user can run.
        command: String,
    },
    /// The user moved the target.
    TargetMoved {
        /// Its tip; empty when the branch is gone.
        tip: String,
        /// Whether the new tip descends from where the run last landed.
        descends: bool,
    },
}

/// How rebuilding ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestackOutcome {
    /// New commits, same order; those that became empty are left out.
    Rebuilt {
        /// `(old, new)`.
        commits: Vec<(String, String)>,
        /// The new tip.
        tip: String,
        /// Its tree.
        tree: String,
    },
    /// One does not fit.
    Conflicted {
        /// Which accepted commit.
        commit: String,
        /// Conflicting paths.
        paths: Vec<String>,
    },
}

/// Why the runtime could not carry an effect out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// Symbolic code, as `harnessctl explain` knows it.
    pub code: String,
    /// What failed on which object.
    pub detail: String,
    /// What the user can run.
    pub next: String,
    /// Whether trying again can help.
    pub retryable: bool,
}

/// Evidence commands of a launch; kept here because a launch has no other checks.
pub type Suite = Vec<Check>;
