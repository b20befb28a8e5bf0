//! Bodies and queries of requests.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a run is named: by its path segment (an id, a unique prefix, `@last`), or `@repo` with this query.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepoQuery {
    /// Absolute path of the repository or of a folder in it; for `@repo`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
}

/// Registers a run (`create-launch`; S4-004).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateLaunch {
    /// Absolute path of the repository or of a folder in it.
    pub repo: String,
    /// The user's own words.
    pub original_goal: String,
    /// Text for prompts; `original_goal` when empty.
    #[serde(default)]
    pub prompt_text: String,
    /// The confirmed goal.
    pub goal: String,
    /// What is in scope.
    pub scope: String,
    /// Notes for the manifest.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Branch to land on; the one that is checked out when none.
    #[serde(default)]
    pub branch: Option<String>,
    /// Complete policy, by the table of `policy`.
    pub policy: BTreeMap<String, Value>,
    /// Make a repository of a folder that is none.
    #[serde(default)]
    pub init_git: bool,
    /// Check everything, write nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// Begins or continues a run (`start`, `resume`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Start {
    /// Agent of every role, for a run that was never started.
    pub agent: Option<String>,
    /// Agents by role, for a run that was never started.
    pub agent_for: BTreeMap<String, String>,
    /// Program of agent codex, absolute or a name on the client's PATH made absolute.
    pub codex_bin: Option<String>,
    /// The client's PATH: agents and evidence are looked up in it.
    pub path: Option<String>,
}

/// Stops a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Stop {
    /// Without grace.
    pub now: bool,
}

/// Gives a task more attempts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// A note for the implementer.
    pub note: String,
}

/// Leaves a task out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Skip {
    /// Why.
    pub reason: String,
}

/// Brings kept work back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Recover {
    /// Only this task.
    pub task: Option<String>,
    /// Make this branch at the newest kept commit; list only when none.
    pub branch: Option<String>,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ListQuery {
    /// Ended runs too.
    pub all: bool,
    /// Only this lifecycle.
    pub state: Option<String>,
    /// Only of this repository.
    pub repo: Option<String>,
    /// At most so many, newest first; 0 for 100.
    pub limit: u32,
}

/// Which events to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventsQuery {
    /// For `@repo`.
    pub repo: Option<String>,
    /// Only events after this one.
    pub since: i64,
    /// At most so many; 0 for 1,000.
    pub limit: u32,
}

/// Which log lines to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogsQuery {
    /// For `@repo`.
    pub repo: Option<String>,
    /// Only of this task.
    pub task: Option<String>,
    /// Only of this role.
    pub role: Option<String>,
    /// Only of this attempt.
    pub attempt: Option<u32>,
    /// The last so many lines when there is no cursor; 0 for 200.
    pub tail: u32,
    /// Where an earlier answer ended.
    pub cursor: Option<String>,
}
