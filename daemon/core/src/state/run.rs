//! A whole run in memory: its rows and the indexes over them.

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::{EffectId, Millis, TaskId};
use harness_proto::vocab::{Lifecycle, TaskStatus};

use super::{Attempt, RunHead, Task};
use crate::effect::Effect;

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
