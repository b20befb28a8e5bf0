//! The typed policy of a run: what the policy table of `harness-proto` says, frozen at start (DESIGN 3, corrections 31).

use std::str::FromStr;

use harness_proto::plan::Check;
use harness_proto::policy::PolicyValues;
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

impl Policy {
    /// The typed form of a run's values; checks them again, because a stored manifest may have been edited.
    ///
    /// # Errors
    /// A sentence that names the key, what it has and what is allowed.
    pub fn from_values(values: &PolicyValues) -> Result<Self, String> {
        values.validate().map_err(|error| error.to_string())?;
        let number = |key: &str| u32::try_from(values.int(key)).map_err(|_| format!("`{key}` is out of range"));
        Ok(Self {
            max_parallel: number("max_parallel")?,
            max_attempts: number("retry.max_attempts")?,
            loop_limit: u32::try_from(values.loop_limit())
                .map_err(|_| "`retry.loop_detect` is out of range".to_owned())?,
            on_exhausted: match values.text("on_exhausted") {
                "replan" => OnExhausted::Replan,
                "block" => OnExhausted::Block,
                "pause" => OnExhausted::Pause,
                other => return Err(format!("`on_exhausted={other}` is not available yet")),
            },
            fault_retries: number("fault.retries")?,
            fault_delay_s: number("fault.delay_s")?,
            lost_turn_limit: number("turn.lost_limit")?,
            idle_planner_limit: number("max_iterations")?,
            max_planner_turns: number("run.max_planner_turns")?,
            max_turns: number("run.max_turns")?,
            max_tokens: values.int("run.max_tokens"),
            max_wall_s: values.int("run.max_wall_s"),
            setup: values.checks("setup"),
            verify: values.checks("verify"),
            no_verification: values.flag("no_verification"),
            evidence_timeout_s: number("evidence.timeout_s")?,
            turn_start_s: number("turn.start_s")?,
            turn_silence_s: number("turn.silence_s")?,
            turn_max_s: number("turn.max_s")?,
            turn_max_tokens: values.int("turn.max_tokens"),
            land: word(values, "land")?,
            execution: word(values, "execution_policy")?,
            expansion: word(values, "plan.expansion")?,
            stop_condition: values.text("stop_condition").to_owned(),
            protected_paths: values.list("protected_paths"),
        })
    }
}

fn word<T: FromStr>(values: &PolicyValues, key: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    values.text(key).parse().map_err(|error| format!("`{key}`: {error}"))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn preset_dag_has_the_documented_numbers() {
        let policy = Policy::from_values(&PolicyValues::preset("dag").unwrap()).unwrap();
        assert_eq!((policy.max_parallel, policy.max_attempts, policy.loop_limit), (1, 3, 3));
        assert_eq!(
            (policy.evidence_timeout_s, policy.turn_start_s, policy.turn_silence_s, policy.turn_max_s),
            (1800, 60, 900, 3600)
        );
        assert_eq!((policy.land, policy.on_exhausted), (LandMode::Each, OnExhausted::Replan));
        assert_eq!(policy.execution, ExecutionPolicy::WorkspaceWrite);
    }

    #[test]
    fn what_a_user_sets_arrives() {
        let mut values = PolicyValues::preset("dag").unwrap();
        for set in [
            "land=manual",
            "verify=make test",
            "retry.loop_detect=off",
            "protected_paths=ci/**,LICENSE",
            "plan.expansion=disabled",
        ] {
            values.set(set).unwrap();
        }
        let policy = Policy::from_values(&values).unwrap();
        assert_eq!(policy.land, LandMode::Manual);
        assert_eq!(policy.verify, [Check::shell("make test")]);
        assert_eq!((policy.loop_limit, policy.expansion), (0, Switch::Disabled));
        assert_eq!(policy.protected_paths, ["ci/**", "LICENSE"]);
    }
}
