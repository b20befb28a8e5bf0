//! The two ends of a turn on the wire: what the runtime asks and what this agent answers.
//!
//! Reading is lenient (unknown members are ignored, absent ones are empty), so that an addition on the runtime's side
//! does not break the agent; `null` counts as absent. Writing is exactly the report of the role (artifacts.md section 10).

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    Planner,
    Implementer,
    Verifier,
}

impl Role {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Implementer => "implementer",
            Self::Verifier => "verifier",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Planner, Self::Implementer, Self::Verifier].into_iter().find(|role| role.word() == word)
    }
}

#[derive(Debug, Clone, Deserialize)]
pub(super) struct TurnSpec {
    pub(super) role: Role,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) task_id: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) attempt: u64,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) context: Context,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Context {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) goal: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) scope: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) plan_dir: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) revision: i64,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) trial_commit: String,
    /// The tasks as the plan has them, unknown members included: a replan hands them back as they were.
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) tasks: Vec<Value>,
    pub(super) task: Option<Task>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) feedback: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) evidence: Vec<Evidence>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Task {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) title: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) acceptance_criteria: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) criteria: Vec<Criterion>,
    #[serde(default, deserialize_with = "one_or_many")]
    pub(super) verification: Vec<Value>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) files_touched: Vec<String>,
}

fn null_is_default<'de, D, T>(source: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(source)?.unwrap_or_default())
}

/// Takes a list, or one entry in its place, as a person may write it.
fn one_or_many<'de, D: serde::Deserializer<'de>>(source: D) -> Result<Vec<Value>, D::Error> {
    Ok(match Value::deserialize(source)? {
        Value::Null => Vec::new(),
        Value::Array(entries) => entries,
        one => vec![one],
    })
}

impl Task {
    /// Returns the criteria with the ids the report must use: as given, else `C1`, `C2` … in order.
    pub(super) fn criteria_with_ids(&self) -> Vec<Criterion> {
        if !self.criteria.is_empty() {
            return self.criteria.clone();
        }
        let numbered = self.acceptance_criteria.iter().enumerate();
        numbered.map(|(index, text)| Criterion { id: format!("C{}", index + 1), text: text.clone() }).collect()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Criterion {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) id: String,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) text: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Evidence {
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) command: Value,
    pub(super) exit_code: Option<i64>,
    #[serde(default, deserialize_with = "null_is_default")]
    pub(super) result: String,
}

impl TurnSpec {
    /// Returns the folder for `tasks.json` and `plan.md`: the context's, else `HARNESS_PLAN_DIR`.
    pub(super) fn plan_dir(&self) -> Result<PathBuf, String> {
        let named = Some(self.context.plan_dir.clone().into()).filter(|path: &PathBuf| !path.as_os_str().is_empty());
        named
            .or_else(|| std::env::var_os("HARNESS_PLAN_DIR").filter(|path| !path.is_empty()).map(PathBuf::from))
            .ok_or_else(|| "the planner was given no folder for its plan (`plan_dir` or HARNESS_PLAN_DIR)".to_owned())
    }

    /// Returns the task of the turn, which the implementer and the verifier cannot do without.
    pub(super) fn task(&self) -> Result<&Task, String> {
        self.context.task.as_ref().ok_or_else(|| format!("the {} was given no task", self.role.word()))
    }
}

/// What goes to stdout.
#[derive(Debug)]
pub(super) enum Answer {
    Report(Value),
    Failure { kind: &'static str, message: String },
}

impl Answer {
    pub(super) fn refused(message: String) -> Self {
        Self::Failure { kind: "refused", message }
    }

    fn value(&self) -> Value {
        match self {
            Self::Report(report) => report.clone(),
            Self::Failure { kind, message } => {
                json!({"failure": {"kind": kind, "message": message}})
            }
        }
    }

    pub(super) fn text(&self) -> String {
        format!("{}\n", self.value())
    }

    /// For the fault `bad_report`: a report that lacks a required member.
    pub(super) fn without_summary(&self) -> String {
        let mut value = self.value();
        if let Some(members) = value.as_object_mut() {
            members.remove("summary");
        }
        format!("{value}\n")
    }

    /// For the fault `big_report`: the same report with a summary that brings it to at least `bytes`.
    pub(super) fn padded(&self, bytes: usize) -> String {
        let mut value = self.value();
        let missing = bytes.saturating_sub(self.text().len());
        if let Some(Value::String(summary)) = value.get_mut("summary") {
            summary.push_str(&"x".repeat(missing));
        }
        format!("{value}\n")
    }
}
