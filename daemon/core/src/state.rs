//! The state of one run, as rows: what is stored, and the indexes that are rebuilt from it.
//!
//! Invariant: [`RunState`] is changed by `step` only; the store writes the rows that `step` names.
//! Invariant: indexes (`ready`, `dependants`, `open_count`) follow from the rows; `audit` compares them.

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::{EffectId, Millis, RunId, Seq, TaskId};
use harness_proto::plan::PlannedTask;
use harness_proto::report::{Finding, ProposedTask};
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, Phase, TaskStatus, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::effect::{Effect, TreeName};
use crate::evidence::EvidenceRecord;

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

/// A task: one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// As planned.
    pub plan: PlannedTask,
    /// Where it is.
    pub status: TaskStatus,
    /// Attempts begun that count.
    pub attempts: u32,
    /// Attempts allowed.
    pub attempts_max: u32,
    /// Commit of the last attempt.
    pub last_attempt_commit: String,
    /// Last verdict.
    pub last_verdict: Option<Verdict>,
    /// Commit on the integration head.
    pub integrated_commit: String,
    /// Why it is blocked, failed or timed out.
    pub blocked_reason: String,
    /// Conflict details in the predecessor's members; null when none.
    #[serde(default)]
    pub integration_conflict: Value,
    /// The repair task that closed it.
    pub resolved_by: Option<TaskId>,
    /// What the next attempt must know.
    pub feedback: Feedback,
    /// Failure signatures of attempts, oldest first.
    pub signatures: Vec<String>,
    /// Agent session of the last implementer turn.
    pub session: Option<String>,
    /// Times that a plan put it back without anything done in between.
    pub requeues: u32,
    /// Whether its acceptance was made without any evidence (`--no-verification`).
    pub unproven: bool,
}

/// What the next attempt must know.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    /// Summary of verdict or gate.
    pub summary: String,
    /// Findings.
    pub findings: Vec<Finding>,
    /// Criteria that did not pass: `C1: text: what was seen`.
    pub criteria: Vec<String>,
    /// Blockers of the gate, as sentences with command and output.
    pub blockers: Vec<String>,
}

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Its tree is being made.
    Preparing,
    /// Setup commands run.
    Setup,
    /// The implementer works.
    Implementing,
    /// Evidence of the trial commit is collected.
    Proving,
    /// The verifier judges.
    Verifying,
    /// The candidate is built.
    Building,
    /// Evidence of the candidate is collected.
    Reproving,
    /// The head is moved.
    Advancing,
}

/// An open attempt: one row. Decided attempts keep their row, but are not in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its task.
    pub task: TaskId,
    /// From 1.
    pub number: u32,
    /// Where it is.
    pub stage: Stage,
    /// The effect in flight; none while it waits.
    pub effect: Option<EffectId>,
    /// When it may go on after a fault.
    pub retry_at: Option<Millis>,
    /// Its tree.
    pub tree: TreeName,
    /// Commit of the tree.
    pub base: String,
    /// Trial commit; empty before.
    pub trial: String,
    /// Tree of the trial commit.
    pub trial_tree: String,
    /// Net changed paths.
    pub changed: Vec<String>,
    /// Implementer's summary.
    pub summary: String,
    /// Files and checks as the implementer reported them: `(files_changed, checks_run)`.
    pub claims: (Vec<String>, Vec<String>),
    /// Evidence on the trial, later on the candidate.
    pub evidence: Vec<EvidenceRecord>,
    /// Verifier's summary.
    pub verdict_summary: String,
    /// Candidate commit; empty before.
    pub candidate: String,
    /// Tree of the candidate.
    pub candidate_tree: String,
    /// Whether the candidate is the head itself (`already_applied`).
    pub already_applied: bool,
    /// Faults in a row in this stage.
    pub faults: u32,
    /// Lost turns in this attempt.
    pub lost: u32,
    /// Errors of the last report; a repair was asked for.
    pub report_errors: Vec<String>,
    /// Session of the turn in flight or the last one of this stage.
    pub session: Option<String>,
    /// Turn in flight or last.
    pub turn: i64,
    /// How it was decided: empty while open, else `accepted`, `reverted`, `failed:<why>`.
    pub outcome: String,
    /// When it began.
    pub started_at: Millis,
}

/// A whole run in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct RunState {
    /// Scalars.
    pub head: RunHead,
    /// Every task.
    pub tasks: BTreeMap<TaskId, Task>,
    /// Open attempts, by task.
    pub attempts: BTreeMap<TaskId, Attempt>,
    /// Effects without a result.
    pub pending: BTreeMap<EffectId, Effect>,
    /// Ready tasks without an open attempt, in dispatch order.
    pub(crate) ready: BTreeSet<(i64, TaskId)>,
    /// Who waits for whom.
    pub(crate) dependants: BTreeMap<TaskId, Vec<TaskId>>,
    /// Tasks that are not closed.
    pub(crate) open_count: usize,
    /// Tasks that are done.
    pub(crate) done_count: usize,
}

impl RunState {
    /// Puts a state together from stored rows and rebuilds its indexes.
    #[must_use]
    pub fn from_rows(
        head: RunHead,
        tasks: impl IntoIterator<Item = Task>,
        attempts: impl IntoIterator<Item = Attempt>,
        pending: impl IntoIterator<Item = Effect>,
    ) -> Self {
        let mut state = Self {
            head,
            tasks: tasks.into_iter().map(|t| (t.plan.id.clone(), t)).collect(),
            attempts: attempts.into_iter().map(|a| (a.task.clone(), a)).collect(),
            pending: pending.into_iter().map(|e| (e.id, e)).collect(),
            ready: BTreeSet::new(),
            dependants: BTreeMap::new(),
            open_count: 0,
            done_count: 0,
        };
        state.reindex();
        state
    }

    /// Rebuilds the indexes; cost grows with the number of tasks, so only after a load or an import.
    pub(crate) fn reindex(&mut self) {
        self.ready.clear();
        self.dependants.clear();
        self.open_count = 0;
        self.done_count = 0;
        for (id, task) in &self.tasks {
            if !task.status.is_closed() {
                self.open_count += 1;
            }
            if task.status == TaskStatus::Done {
                self.done_count += 1;
            }
            if task.status == TaskStatus::Ready && !self.attempts.contains_key(id) {
                self.ready.insert((task.plan.priority, id.clone()));
            }
            for dependency in &task.plan.dependencies {
                self.dependants.entry(dependency.clone()).or_default().push(id.clone());
            }
        }
    }

    /// Number of tasks that are done.
    #[must_use]
    pub fn done_count(&self) -> usize {
        self.done_count
    }

    /// Ready tasks without an open attempt, in dispatch order: priority, then id (S4-052).
    pub fn ready(&self) -> impl Iterator<Item = &TaskId> {
        self.ready.iter().map(|(_, id)| id)
    }

    /// The earliest instant at which a `Tick` would change something.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Millis> {
        let head = &self.head;
        let moving = head.lifecycle == Lifecycle::Running && !head.stopping;
        let attempts = self.attempts.values().filter_map(|a| a.retry_at);
        let mut times: Vec<Millis> = Vec::new();
        if moving {
            times.extend(attempts);
            times.extend(head.planner.retry_at);
            times.extend(head.hold.as_ref().and_then(|h| h.until));
        }
        if moving || head.lifecycle == Lifecycle::Completed {
            times.extend(head.landing.retry_at);
        }
        times.into_iter().min()
    }
}
