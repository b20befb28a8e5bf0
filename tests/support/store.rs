//! The truth of the store, asked for in the way a user asks: `harnessctl … --json`.

use serde_json::Value;

use crate::env::TestEnv;
use crate::wait::wait_for;

/// A run as the store has it.
#[derive(Debug, Clone, Copy)]
pub struct Store<'a> {
    env: &'a TestEnv,
    run: &'a str,
}

impl TestEnv {
    /// Looks at a run: its id, a prefix or `@last`.
    #[must_use]
    pub fn store<'a>(&'a self, run: &'a str) -> Store<'a> {
        Store { env: self, run }
    }
}

impl Store<'_> {
    /// The run (`RunView`).
    #[must_use]
    pub fn status(&self) -> Value {
        self.env.harnessctl(&["status", self.run, "--json"]).json()
    }

    /// A task with attempts, turns and evidence (`TaskAnswer`).
    #[must_use]
    pub fn task(&self, task: &str) -> Value {
        self.env.harnessctl(&["show", task, "--run", self.run, "--json"]).success().json()
    }

    /// Every event, oldest first (`EventView`).
    #[must_use]
    pub fn events(&self) -> Vec<Value> {
        let done = self.env.harnessctl(&["events", self.run, "--format", "jsonl"]).success();
        done.stdout.lines().map(|line| serde_json::from_str(line).expect("an event is a JSON line")).collect()
    }

    /// Waits until the lifecycle is one of these and returns the run.
    #[must_use]
    pub fn wait_lifecycle(&self, words: &[&str]) -> Value {
        wait_for(&format!("run {} is one of {words:?}", self.run), || {
            let done = self.env.harnessctl(&["status", self.run, "--json"]);
            let run: Value = serde_json::from_str(&done.stdout).ok()?;
            words.iter().any(|word| run["lifecycle"] == *word).then_some(run)
        })
    }
}
