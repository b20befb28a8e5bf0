//! `harness-launch.json`: goal, scope and policy; the contract of a run (artifacts.md 1.1; S4-031).

use serde::Serialize;
use serde_json::{Map, Value};

use super::lenient::{self, DocError};
use super::{DOC_MODE, DOC_VERSION};
use crate::vocab::{ExecutionPolicy, Switch};

/// The launch manifest. Written by `create-launch` only.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchDoc {
    /// Kept for the predecessor's readers.
    pub approvals: Map<String, Value>,
    /// Goal, scope and the predecessor's policy members.
    pub config: ConfigDoc,
    /// When the run was registered.
    pub created_at: String,
    /// Kept for the predecessor's readers.
    pub defaults: Map<String, Value>,
    /// [`DOC_MODE`].
    pub mode: String,
    /// Free notes of the user.
    pub notes: Vec<String>,
    /// The user's own words.
    pub original_goal: String,
    /// Values of the policy table by key, frozen at start (DESIGN 3). Empty in a predecessor's file.
    pub policy: Map<String, Value>,
    /// What goes into prompts; the original goal when none was given.
    pub prompt_text: String,
    /// The run; empty in a predecessor's file.
    pub run_id: String,
    /// Last write.
    pub updated_at: String,
    /// [`DOC_VERSION`].
    pub version: i64,
}

/// The seven members that launch and state share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigDoc {
    /// Whether the planner may add tasks.
    pub allow_task_expansion: Switch,
    /// Wall of agents and evidence.
    pub execution_policy: ExecutionPolicy,
    /// The confirmed goal.
    pub goal: String,
    /// Attempts of a task.
    pub max_task_attempts: i64,
    /// What is in scope.
    pub scope: String,
    /// Always `background`.
    pub session_mode: String,
    /// When the run may stop early, in words.
    pub stop_condition: String,
}

impl LaunchDoc {
    /// Reads a manifest, also a predecessor's or a partial one.
    ///
    /// # Errors
    /// [`DocError`] when it is no JSON object or newer than us.
    pub fn read(text: &str) -> Result<Self, DocError> {
        let root = lenient::object(text)?;
        let original_goal = lenient::text(&root, "original_goal");
        Ok(Self {
            approvals: lenient::members(&root, "approvals"),
            config: ConfigDoc::from_members(&lenient::members(&root, "config")),
            created_at: lenient::text(&root, "created_at"),
            defaults: lenient::members(&root, "defaults"),
            mode: lenient::text_or(&root, "mode", DOC_MODE),
            notes: lenient::texts(&root, "notes"),
            prompt_text: lenient::text_or(&root, "prompt_text", &original_goal),
            original_goal,
            policy: lenient::members(&root, "policy"),
            run_id: lenient::text(&root, "run_id"),
            updated_at: lenient::text(&root, "updated_at"),
            version: DOC_VERSION,
        })
    }
}

impl ConfigDoc {
    /// Reads the seven members; an unknown word of a vocabulary becomes the safer value, attempts below 1 become 3.
    pub(crate) fn from_members(config: &Map<String, Value>) -> Self {
        let attempts = lenient::integer(config, "max_task_attempts");
        Self {
            allow_task_expansion: lenient::text(config, "allow_task_expansion").parse().unwrap_or(Switch::Enabled),
            execution_policy: lenient::text(config, "execution_policy")
                .parse()
                .unwrap_or(ExecutionPolicy::WorkspaceWrite),
            goal: lenient::text(config, "goal"),
            max_task_attempts: if attempts < 1 { 3 } else { attempts },
            scope: lenient::text(config, "scope"),
            session_mode: lenient::text_or(config, "session_mode", "background"),
            stop_condition: lenient::text(config, "stop_condition"),
        }
    }
}
