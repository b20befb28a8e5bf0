//! Everything that a run may ask the world for.
//!
//! An effect is stored in the same transaction as the decision that asked for it and carried out afterwards; its result
//! comes back as an [`Input`](crate::input::Input). What a repeat means after a crash is its [`Class`].

use harness_proto::ids::{EffectId, Millis, TaskId};
use harness_proto::plan::Check;
use harness_proto::vocab::{Kind, Role};
use serde::{Deserialize, Serialize};

/// What the runtime may do with an effect whose result it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Repeat freely: it makes a state true.
    Ensure,
    /// Look whether it happened, then do it or not.
    Probe,
    /// Never repeat: `step` is told that it was lost and decides.
    Lost,
}

/// A side effect with its id.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Number of the effect in its run.
    pub id: EffectId,
    /// When it was decided; commits made by it carry this time, so that a repeat gives the same id.
    pub at: Millis,
    /// What to do.
    pub kind: EffectKind,
}

/// Name of a tree under the run's folder, for example `T-001-a1`; safe as a path component.
pub type TreeName = String;

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Make a new tree of the mirror at `commit` with a detached HEAD. Ensure: what stands there is removed first.
    PrepareTree {
        /// Its name.
        tree: TreeName,
        /// The commit to check out.
        commit: String,
    },
    /// Run the setup commands in an attempt's tree. Ensure.
    RunSetup {
        /// The tree.
        tree: TreeName,
        /// Launch's commands, then the task's.
        commands: Vec<Check>,
        /// Limit of one command that names none, in seconds.
        timeout_s: u32,
    },
    /// Run one agent turn. Lost: never repeated by itself.
    RunTurn(Box<TurnRequest>),
    /// Run commands in a clean tree of a commit. Ensure.
    CollectEvidence(Box<EvidenceRequest>),
    /// Build one commit on the integration head from a trial commit. Ensure: dates come from the effect.
    BuildCandidate(Box<CandidateRequest>),
    /// Move the run's integration head by compare-and-swap. Probe.
    AdvanceIntegration {
        /// Expected head; the base commit for the first.
        from: String,
        /// New head.
        to: String,
    },
    /// Bring the integration head to the target branch. Probe.
    Land {
        /// Where the target is expected.
        from: String,
        /// Where it is to be.
        to: String,
    },
    /// Rebuild accepted commits on a target that the user moved. Ensure.
    Restack {
        /// The commit below the first of `commits`.
        from: String,
        /// Accepted commits that did not land, oldest first.
        commits: Vec<String>,
        /// The user's tip.
        onto: String,
    },
    /// Name an attempt's commit in the mirror if it is to be kept, then remove the tree. Ensure.
    RemoveTree {
        /// The tree.
        tree: TreeName,
        /// `(name under refs/harness/<run>/, commit)` to keep.
        keep: Option<(String, String)>,
        /// Whether live agent sessions of this tree's task end too.
        close_session: bool,
    },
    /// Remove what only a live run needs. Ensure; the last effect of a run.
    Finish,
}

impl EffectKind {
    /// What a repeat means.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::RunTurn(_) => Class::Lost,
            Self::AdvanceIntegration { .. } | Self::Land { .. } => Class::Probe,
            Self::PrepareTree { .. }
            | Self::RunSetup { .. }
            | Self::CollectEvidence(_)
            | Self::BuildCandidate(_)
            | Self::Restack { .. }
            | Self::RemoveTree { .. }
            | Self::Finish => Class::Ensure,
        }
    }

    /// One word for rows and logs.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::PrepareTree { .. } => "prepare_tree",
            Self::RunSetup { .. } => "run_setup",
            Self::RunTurn(_) => "run_turn",
            Self::CollectEvidence(_) => "collect_evidence",
            Self::BuildCandidate(_) => "build_candidate",
            Self::AdvanceIntegration { .. } => "advance_integration",
            Self::Land { .. } => "land",
            Self::Restack { .. } => "restack",
            Self::RemoveTree { .. } => "remove_tree",
            Self::Finish => "finish",
        }
    }

    /// Whether `stop` interrupts it; the others end by themselves within seconds and must not be torn.
    #[must_use]
    pub const fn interruptible(&self) -> bool {
        matches!(self, Self::RunTurn(_) | Self::CollectEvidence(_) | Self::RunSetup { .. })
    }
}

/// One agent turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// Number of the turn in its run, from 1.
    pub turn: i64,
    /// Who.
    pub role: Role,
    /// What for.
    pub kind: Kind,
    /// The task; none for a planner.
    pub task: Option<TaskId>,
    /// The attempt, 0 for a planner.
    pub attempt: u32,
    /// The attempt's tree for an implementer; planner and verifier get throw-away trees of `commit`.
    pub tree: Option<TreeName>,
    /// Commit of the tree: integration head (planner), base (implementer), trial commit (verifier).
    pub commit: String,
    /// Base of the attempt; what an implementer's commits must descend from. Empty for a planner.
    pub base: String,
    /// What the agent is asked, complete.
    pub prompt: String,
    /// Hash of the prompt's template, for comparisons between versions.
    pub template: String,
    /// What to put before `prompt` when `session` could not be continued.
    pub handover: String,
    /// Agent session to continue, when there is one.
    pub session: Option<String>,
    /// The turn's frame for agents that read data instead of prose (`command`, `offline`).
    pub context: serde_json::Value,
    /// Whether the prompt only asks to repair an invalid report; nothing else is expected of the turn.
    pub repair: bool,
    /// Limits.
    pub limits: TurnLimits,
}

/// Limits of one turn, in seconds; 0 tokens means no ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnLimits {
    /// Until the agent has taken up the turn.
    pub start_s: u32,
    /// Longest silence.
    pub silence_s: u32,
    /// Whole turn.
    pub max_s: u32,
    /// Tokens that the turn may use.
    pub tokens: i64,
}

/// What evidence is collected for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Setup and suite on the base commit, before any agent is paid.
    Baseline,
    /// A trial commit.
    Trial,
    /// A candidate whose tree differs from the trial's, or an `already_applied` head.
    Candidate,
    /// The tip of rebuilt commits.
    Restack,
}

/// Commands to run on a commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EvidenceRequest {
    /// What for.
    pub purpose: Purpose,
    /// The task, none for baseline and restack.
    pub task: Option<TaskId>,
    /// The attempt, 0 when none.
    pub attempt: u32,
    /// The exact commit.
    pub commit: String,
    /// Commands that prepare the clean tree.
    pub setup: Vec<Check>,
    /// Commands that are the evidence.
    pub checks: Vec<Check>,
    /// Limit of one command that names none, in seconds.
    pub timeout_s: u32,
}

/// What a candidate is built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CandidateRequest {
    /// The task.
    pub task: TaskId,
    /// The attempt.
    pub attempt: u32,
    /// Integration head: the parent.
    pub head: String,
    /// Base of the attempt.
    pub base: String,
    /// The accepted trial commit.
    pub trial: String,
    /// Complete commit message with trailers.
    pub message: String,
}
