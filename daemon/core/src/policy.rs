//! The typed policy of a run: what the policy table of `harness-proto` says, frozen at start (DESIGN 3, corrections 31).

use harness_proto::plan::Check;
use harness_proto::vocab::{ExecutionPolicy, LandMode, Switch};
use serde::{Deserialize, Serialize};

/// What happens when a task's attempts are used up (profiles field 48).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// The planner decides.
    Replan,
    /// The task stays failed, its dependants are blocked.
    Block,
    /// The run is held for the user.
    Pause,
}

/// Every number and switch that `step` reads. No `Default`: a preset names each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Attempts that may overlap.
    pub max_parallel: u32,
    /// Total attempts of a task (`retry.max_attempts`).
    pub max_attempts: u32,
    /// Equal failure signatures that end a task early (`retry.loop_detect`).
    pub loop_limit: u32,
    /// When attempts are used up.
    pub on_exhausted: OnExhausted,
    /// Repeats of an effect or a turn after a fault (`fault.retries`).
    pub fault_retries: u32,
    /// First delay before a repeat, in seconds; doubles (`fault.delay_s`).
    pub fault_delay_s: u32,
    /// Lost turns that cost an attempt.
    pub lost_turn_limit: u32,
    /// Planner turns without progress before the run is held (`max_iterations`).
    pub idle_planner_limit: u32,
    /// Planner turns in all; 0 for no ceiling (`run.max_planner_turns`).
    pub max_planner_turns: u32,
    /// Turns in all; 0 for 10 × tasks + 50 (`run.max_turns`).
    pub max_turns: u32,
    /// Tokens in all; 0 for no ceiling (`run.max_tokens`).
    pub max_tokens: i64,
    /// Wall time in seconds since the first start; 0 for no ceiling (`run.max_wall_s`).
    pub max_wall_s: i64,
    /// Setup commands of the launch.
    pub setup: Vec<Check>,
    /// Suite commands of the launch (`--verify`).
    pub verify: Vec<Check>,
    /// Whether a task without any command may pass (`--no-verification`).
    pub no_verification: bool,
    /// Limit of one evidence command, in seconds.
    pub evidence_timeout_s: u32,
    /// `turn.start_s`.
    pub turn_start_s: u32,
    /// `turn.silence_s`.
    pub turn_silence_s: u32,
    /// `turn.max_s`.
    pub turn_max_s: u32,
    /// Tokens of one turn; 0 for no ceiling.
    pub turn_max_tokens: i64,
    /// When accepted commits land.
    pub land: LandMode,
    /// Whether agents and evidence are walled.
    pub execution: ExecutionPolicy,
    /// Whether the planner may add tasks that repair nothing.
    pub expansion: Switch,
    /// When the run may stop early, in words; given to planner and verifier.
    pub stop_condition: String,
    /// Paths that no attempt may change (glob patterns).
    pub protected_paths: Vec<String>,
}
