//! The scalar part of a run, and what belongs to the run as a whole.

use harness_proto::ids::{EffectId, Millis, RunId, Seq, TaskId};
use harness_proto::report::ProposedTask;
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, Phase};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the user asked for; from the launch manifest, never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Brief {
    /// The run.
    pub run: RunId,
    /// The confirmed goal.
    pub goal: String,
    /// The user's own words.
    pub original_goal: String,
    /// What is in scope.
    pub scope: String,
}

/// The scalar part of a run: one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    /// What was asked for.
    pub brief: Brief,
    /// Where in its life.
    pub lifecycle: Lifecycle,
    /// What it is doing.
    pub phase: Phase,
    /// Why it does not move.
    pub hold: Option<Hold>,
    /// A stop was asked for and something still runs.
    pub stopping: bool,
    /// A cancel was asked for and something still runs.
    pub cancelling: bool,
    /// Last event.
    pub seq: Seq,
    /// Last effect.
    pub last_effect: EffectId,
    /// Last turn.
    pub last_turn: i64,
    /// Branch to land on; empty before the first start.
    pub target_branch: String,
    /// Tip of the branch at the first start.
    pub base: String,
    /// The run's own head; every accepted commit moves it.
    pub head: String,
    /// Tree of `head`.
    pub head_tree: String,
    /// Where the target branch was last known to be: `base`, or what landed last.
    pub landed: String,
    /// Accepted commits that did not land, oldest first.
    pub unlanded: Vec<String>,
    /// State of landing.
    pub landing: Landing,
    /// Setup and suite on the base.
    pub baseline: Baseline,
    /// Revision of the plan.
    pub plan_revision: i64,
    /// The planner.
    pub planner: Planner,
    /// Proposals of roles that the planner has not seen.
    pub proposals: Vec<ProposedTask>,
    /// Open incident, in the predecessor's shape (artifacts 1.4).
    pub incident: Option<Incident>,
    /// Counters.
    pub counts: Counts,
    /// Times that the user continued a run whose budget was used up; each grants the same budget again.
    pub grants: u32,
    /// Last words, for the predecessor's files.
    pub last: LastWords,
    /// When it was registered.
    pub created_at: Millis,
    /// First start.
    pub started_at: Option<Millis>,
    /// Last change.
    pub updated_at: Millis,
    /// Program of the agents, for the record.
    pub agent: String,
    /// What walls agents and evidence.
    pub walls: String,
    /// Why the run ended: `all_tasks_done`, `user_stopped`, …; empty while it has not.
    pub terminal_reason: String,
}

/// Why a run does not move now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hold {
    /// Kind.
    pub kind: HoldKind,
    /// Who has to act.
    pub owner: Owner,
    /// Symbolic reason.
    pub reason: String,
    /// A sentence.
    pub detail: String,
    /// When it ends by itself.
    pub until: Option<Millis>,
    /// The command that continues.
    pub next: String,
    /// Since when.
    pub since: Millis,
}

/// State of landing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Landing {
    /// The effect in flight: a landing, a restack, or evidence of one.
    pub effect: Option<EffectId>,
    /// Why the last try did not land; empty when nothing is pending.
    pub why: String,
    /// Paths in the way.
    pub paths: Vec<String>,
    /// What the user can run.
    pub command: String,
    /// When to try again.
    pub retry_at: Option<Millis>,
    /// Tries without success since the last one.
    pub tries: u32,
    /// Where the user moved the target to; the unlanded commits have to be rebuilt on it. Empty when it did not move.
    pub moved_to: String,
    /// A rebuilt tip waiting for its evidence.
    pub restacked: Option<Restacked>,
    /// Whether the user asked for a landing that the policy would not make now.
    pub requested: bool,
}

/// Rebuilt commits waiting for evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Restacked {
    /// The user's tip.
    pub onto: String,
    /// `(old, new)`.
    pub commits: Vec<(String, String)>,
    /// New head.
    pub tip: String,
    /// Its tree.
    pub tree: String,
}

/// Setup and suite on the base commit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The effect in flight.
    pub effect: Option<EffectId>,
    /// Whether it was collected.
    pub done: bool,
    /// Suite commands that fail on the base.
    pub failing: Vec<String>,
}

/// The planner's side of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Planner {
    /// Why a planner turn is due; empty when none is.
    pub pending: String,
    /// More about it, for the prompt.
    pub detail: String,
    /// The turn in flight.
    pub effect: Option<EffectId>,
    /// Number of the turn in flight.
    pub turn: i64,
    /// When the next try is allowed.
    pub retry_at: Option<Millis>,
    /// Faults of the turn that is due, in a row.
    pub faults: u32,
    /// Lost turns in a row.
    pub lost: u32,
    /// Errors of the plan or report that the last turn left; a repair was asked for.
    pub errors: Vec<String>,
    /// Session to continue for a repair.
    pub session: Option<String>,
    /// Turns in a row without a task done or a new topology.
    pub idle: u32,
    /// Digest of the topology at the last planner turn.
    pub last_topology: String,
    /// Tasks done at the last planner turn.
    pub last_done: u32,
}

/// A recorded problem with an owner (artifacts 1.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Incident {
    /// Who has to act.
    pub owner: Owner,
    /// Symbolic reason.
    pub reason: String,
    /// Task concerned.
    pub task: Option<TaskId>,
    /// Attempt concerned.
    pub attempt: u32,
    /// Commit concerned.
    pub commit: String,
    /// Details in the predecessor's members.
    pub details: Value,
    /// Repeats, for runtime-owned ones.
    pub count: u32,
    /// Since when.
    pub at: Millis,
}

/// Counters of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Planner turns that ended with a report.
    pub planner_runs: u32,
    /// Implementer turns that ended with a report.
    pub implementer_runs: u32,
    /// Verifier turns that ended with a report.
    pub verifier_runs: u32,
    /// Tasks accepted and integrated.
    pub accepts: u32,
    /// Attempts reverted.
    pub reverts: u32,
    /// Times that the planner was asked again.
    pub replans: u32,
    /// Tasks that became blocked.
    pub blocked: u32,
    /// Incidents.
    pub recovery_requests: u32,
    /// Turns dispatched.
    pub turns: u32,
    /// Tokens used.
    pub tokens: i64,
    /// Agent time in milliseconds.
    pub agent_ms: i64,
}

/// Last words, for the predecessor's files (artifacts 1.2, 1.3).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LastWords {
    /// `initialized plan submit_trial accept revert recovery`.
    pub status: String,
    /// The fine reason: `dispatch_verifier`, `retry_task`, ….
    pub decision: String,
    /// `accept` or `revert`.
    pub verdict: String,
    /// Role of the last turn.
    pub role: String,
    /// Task of the last turn.
    pub task: String,
    /// Last error text.
    pub error: String,
    /// Last accepted commit.
    pub accepted_commit: String,
}
