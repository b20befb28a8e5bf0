//! The launch gate: what the files say about starting (artifacts.md 3).
//!
//! Does not: open the store. The store decides whether a run may start; the gate says what state a repository's files are in,
//! in the predecessor's words.

use serde::Serialize;
use serde_json::{Value, json};

use super::atomic::FileError;
use super::paths::{FileName, Layout};
use super::writer::read;

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presence {
    /// It is not there.
    Missing,
    /// It is there and, where JSON is expected, is a JSON object.
    Good,
    /// It is no JSON object; why.
    Invalid(String),
}

/// What the gate looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFacts {
    /// Whether the recorded run is driven now.
    pub running: bool,
    /// `harness-launch.json`.
    pub launch: Presence,
    /// `harness-state.json`.
    pub state: Presence,
    /// `tasks.json`.
    pub tasks: Presence,
    /// `plan.md`.
    pub plan: Presence,
    /// `harness-events.tsv`.
    pub events: Presence,
}

/// The gate's answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateDecision {
    /// It runs already.
    BlockedStart,
    /// Nothing is there.
    Fresh,
    /// Something is missing or broken that nobody but the user can give.
    Recovery,
    /// It can go on.
    Resumable,
}

/// The gate's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// In one word.
    pub decision: GateDecision,
    /// Symbolic reason.
    pub reason: &'static str,
    /// In sentences.
    pub reasons: Vec<String>,
    /// Whether the run is driven now.
    pub running: bool,
}

impl Gate {
    /// Whether a start may go on.
    #[must_use]
    pub const fn may_start(&self) -> bool {
        matches!(self.decision, GateDecision::Fresh | GateDecision::Resumable)
    }

    /// The predecessor's JSON answer.
    #[must_use]
    pub fn to_value(&self, layout: &Layout) -> Value {
        let path = |name: &FileName| layout.path(name).to_string_lossy().into_owned();
        json!({
            "decision": self.decision, "reason": self.reason, "reasons": self.reasons, "runtime_running": self.running,
            "paths": {
                "repo": layout.repo().to_string_lossy(), "launch": path(&FileName::Launch),
                "runtime": path(&FileName::Runtime), "runtime_log": path(&FileName::RuntimeLog),
                "state": path(&FileName::State), "events": path(&FileName::Events), "lessons": path(&FileName::Lessons),
                "plan": path(&FileName::Plan), "tasks": path(&FileName::Tasks),
                "reports": layout.reports().to_string_lossy(),
            },
        })
    }
}

/// Decides; the first row of the table that fits.
#[must_use]
pub fn decide(facts: &GateFacts, ignore_running: bool) -> Gate {
    let gate = |decision, reason, reasons: Vec<String>| Gate { decision, reason, reasons, running: facts.running };
    let named = [
        ("harness-launch.json", &facts.launch),
        ("harness-state.json", &facts.state),
        ("tasks.json", &facts.tasks),
        ("plan.md", &facts.plan),
        ("harness-events.tsv", &facts.events),
    ];
    let missing = |names: &[&str]| -> Vec<String> {
        let gone = named.iter().filter(|(name, found)| names.contains(name) && **found == Presence::Missing);
        gone.map(|(name, _)| format!("{name} is missing")).collect()
    };
    if facts.running && !ignore_running {
        return gate(GateDecision::BlockedStart, "already_running", vec!["the run is driven already".to_owned()]);
    }
    if named.iter().all(|(_, found)| **found == Presence::Missing) {
        return gate(GateDecision::Fresh, "fresh_start", Vec::new());
    }
    if facts.launch == Presence::Missing {
        return gate(GateDecision::Recovery, "launch_manifest_missing", missing(&["harness-launch.json"]));
    }
    let invalid: Vec<String> = named[..3]
        .iter()
        .filter_map(|(name, found)| match found {
            Presence::Invalid(why) => Some(format!("{name}: {why}")),
            Presence::Missing | Presence::Good => None,
        })
        .collect();
    if !invalid.is_empty() {
        return gate(GateDecision::Recovery, "invalid_artifact", invalid);
    }
    let incomplete = missing(&["tasks.json", "plan.md"]);
    if !incomplete.is_empty() {
        return gate(GateDecision::Recovery, "incomplete_artifacts", incomplete);
    }
    let local = missing(&["harness-state.json", "harness-events.tsv"]);
    if !local.is_empty() {
        return gate(GateDecision::Resumable, "bootstrap_missing_run_local_artifacts", local);
    }
    gate(GateDecision::Resumable, "full_resume", Vec::new())
}

/// Reads the facts of a repository; `running` comes from the store.
///
/// # Errors
/// [`FileError`] when a file is there and cannot be read.
pub fn read_facts(layout: &Layout, running: bool) -> Result<GateFacts, FileError> {
    let json = |name: FileName| -> Result<Presence, FileError> {
        Ok(match read(&layout.path(&name))? {
            None => Presence::Missing,
            Some(bytes) => match serde_json::from_slice::<Value>(&bytes) {
                Ok(Value::Object(_)) => Presence::Good,
                Ok(_) => Presence::Invalid("it is no JSON object".to_owned()),
                Err(error) => Presence::Invalid(format!("it is no JSON: {error}")),
            },
        })
    };
    let there = |name: FileName| if layout.path(&name).exists() { Presence::Good } else { Presence::Missing };
    Ok(GateFacts {
        running,
        launch: json(FileName::Launch)?,
        state: json(FileName::State)?,
        tasks: json(FileName::Tasks)?,
        plan: there(FileName::Plan),
        events: there(FileName::Events),
    })
}
