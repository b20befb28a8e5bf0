//! The simulated store: rows as text, exactly those that steps name. A crash is a reload from here.

use std::collections::BTreeMap;

use harness_core::input::Input;
use harness_core::state::{Attempt, RunHead, RunState, Task};
use harness_core::step::{Change, Step};
use harness_proto::event::Event;

/// Rows of one run.
#[derive(Default, Clone)]
pub struct Rows {
    head: String,
    tasks: BTreeMap<String, String>,
    attempts: BTreeMap<(String, u32), String>,
    effects: BTreeMap<i64, String>,
    pub events: Vec<Event>,
    pub inputs: Vec<String>,
}

fn text(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("rows serialise")
}

impl Rows {
    /// What `create-launch` writes down before the first step.
    pub fn register(state: &RunState) -> Self {
        Self { head: text(&state.head), ..Self::default() }
    }

    /// One transaction.
    pub fn commit(&mut self, input: Option<&Input>, step: &Step, state: &RunState) {
        for change in &step.changes {
            match change {
                Change::Run => self.head = text(&state.head),
                Change::Task(id) => {
                    self.tasks.insert(id.to_string(), text(&state.tasks[id]));
                }
                Change::TaskRemoved(id) => {
                    self.tasks.remove(id.as_str());
                }
                Change::Attempt(id) => {
                    if let Some(attempt) = state.attempts.get(id) {
                        self.attempts.insert((id.to_string(), attempt.number), text(attempt));
                    }
                }
                Change::AttemptClosed(attempt) => {
                    self.attempts.remove(&(attempt.task.to_string(), attempt.number));
                }
                _ => {}
            }
        }
        for effect in &step.effects {
            self.effects.insert(effect.id.0, text(effect));
        }
        for id in &step.finished {
            self.effects.remove(&id.0);
        }
        self.events.extend(step.events.iter().cloned());
        if let Some(input) = input {
            self.inputs.push(text(input));
        }
    }

    /// What a new daemon would read.
    pub fn load(&self) -> RunState {
        let head: RunHead = serde_json::from_str(&self.head).expect("head row");
        let tasks = self.tasks.values().map(|t| serde_json::from_str::<Task>(t).expect("task row"));
        let attempts = self.attempts.values().map(|a| serde_json::from_str::<Attempt>(a).expect("attempt row"));
        let effects = self.effects.values().map(|e| serde_json::from_str(e).expect("effect row"));
        RunState::from_rows(head, tasks, attempts, effects)
    }
}
