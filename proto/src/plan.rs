//! The plan: `tasks.json` as types (artifacts.md 1.6).
//!
//! Parsing and validation with the exact messages are in `harness-core::dag`; here are only the shapes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::TaskId;
use crate::vocab::TaskStatus;

/// The only version of `tasks.json`.
pub const PLAN_VERSION: i64 = 1;
/// Priority of a task that names none.
pub const DEFAULT_PRIORITY: i64 = 100;

/// How a command is given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandLine {
    /// Text for `sh -c`.
    Cmd(String),
    /// Program and arguments, no shell.
    Argv(Vec<String>),
}

impl CommandLine {
    /// One line for people and records.
    #[must_use]
    pub fn display(&self) -> String {
        match self {
            Self::Cmd(text) => text.clone(),
            Self::Argv(words) => words.join(" "),
        }
    }
}

/// A command that can show that something holds; the runtime runs it (DESIGN 8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What to run.
    pub command: CommandLine,
    /// Limit in seconds; the policy's when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u32>,
    /// Folder inside the tree, relative; the tree's root when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Variables besides the allow-list.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Whether it may use the network; the policy's word when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Fewest tests that must have run; 1 for a recognised test runner when none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_tests_min: Option<u32>,
}

impl Check {
    /// A shell command without options.
    #[must_use]
    pub fn shell(text: impl Into<String>) -> Self {
        Self {
            command: CommandLine::Cmd(text.into()),
            timeout_s: None,
            cwd: None,
            env: BTreeMap::new(),
            network: None,
            expect_tests_min: None,
        }
    }
}

/// A task as the planner (or a human) wrote it, checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    /// Unique in the plan, ignoring case.
    pub id: TaskId,
    /// One line.
    pub title: String,
    /// What is to be done.
    pub description: String,
    /// What must hold; never empty. Their ids are `C1`, `C2`, … in this order.
    pub acceptance_criteria: Vec<String>,
    /// The planner's wish; the store decides the status.
    pub status: TaskStatus,
    /// Smaller goes first.
    pub priority: i64,
    /// Tasks that must be done before.
    pub dependencies: Vec<TaskId>,
    /// Commands that can show it; added to the launch's `--verify`.
    #[serde(default)]
    pub verification: Vec<Check>,
    /// Commands that prepare a fresh tree for this task, after the launch's.
    #[serde(default)]
    pub setup: Vec<Check>,
    /// Requirements it serves.
    #[serde(default)]
    pub requirements: Vec<String>,
    /// Files it is expected to touch, relative.
    #[serde(default)]
    pub files_touched: Vec<String>,
    /// The conflicted task that this one repairs (S4-059).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair_target: Option<TaskId>,
    /// Members that we do not know; kept.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}
