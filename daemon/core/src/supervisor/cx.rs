//! What one step has in hand: the state, the policy, the time, and what it has decided so far.

use harness_proto::event::Event;
use harness_proto::ids::{EffectId, Millis, Seq, TaskId};
use harness_proto::vocab::{HoldKind, Owner, TaskStatus};
use serde_json::Value;

use crate::effect::{Effect, EffectKind};
use crate::output::head;
use crate::policy::Policy;
use crate::state::{Attempt, Hold, Incident, RunState, Stage, Task};
use crate::step::{Cancel, Change, Lesson, Step};

/// Characters that are kept of what an agent says in one place: the whole is in the report and the transcript (weaknesses 36).
pub(super) const WORDS_MAX: usize = 4_000;

/// One step in the making.
pub(super) struct Cx<'a> {
    pub(super) state: &'a mut RunState,
    pub(super) policy: &'a Policy,
    pub(super) at: Millis,
    pub(super) out: Step,
}

/// A row of history in the making; `role` is `runtime` unless said.
pub(super) struct Draft {
    event: Event,
}

/// Starts a row: `status`, `decision`, sentence.
pub(super) fn draft(status: &str, decision: &str, description: impl Into<String>) -> Draft {
    Draft {
        event: Event {
            seq: Seq(0),
            at: Millis(0),
            role: "runtime".into(),
            task_id: String::new(),
            attempt: 0,
            commit: String::new(),
            status: status.into(),
            decision: decision.into(),
            description: description.into(),
            data: Value::Null,
        },
    }
}

impl Draft {
    pub(super) fn role(mut self, role: impl Into<String>) -> Self {
        self.event.role = role.into();
        self
    }
    pub(super) fn task(mut self, task: &TaskId, attempt: u32) -> Self {
        self.event.task_id = task.as_str().into();
        self.event.attempt = attempt;
        self
    }
    pub(super) fn commit(mut self, commit: &str) -> Self {
        self.event.commit = commit.into();
        self
    }
    pub(super) fn data(mut self, data: Value) -> Self {
        self.event.data = data;
        self
    }
}

impl<'a> Cx<'a> {
    pub(super) fn new(state: &'a mut RunState, policy: &'a Policy, at: Millis) -> Self {
        Self { state, policy, at, out: Step::default() }
    }

    /// Ends the step: the run's row is written whenever anything else is.
    pub(super) fn finish(mut self) -> Step {
        let idle = self.out.changes.is_empty()
            && self.out.events.is_empty()
            && self.out.effects.is_empty()
            && self.out.finished.is_empty();
        if !idle {
            self.state.head.updated_at = self.at;
            self.touch(Change::Run);
        }
        self.out
    }

    /// Names a row to write, once.
    pub(super) fn touch(&mut self, change: Change) {
        let keyed = matches!(change, Change::Run | Change::Task(_) | Change::Attempt(_));
        if !(keyed && self.out.changes.contains(&change)) {
            self.out.changes.push(change);
        }
    }

    /// Appends a row of history and returns its number.
    pub(super) fn event(&mut self, draft: Draft) -> Seq {
        let mut event = draft.event;
        self.state.head.seq = Seq(self.state.head.seq.0 + 1);
        event.seq = self.state.head.seq;
        event.at = self.at;
        if event.description.trim().is_empty() {
            event.description = format!("{} {}", event.status, event.decision);
        }
        event.description = head(&event.description, WORDS_MAX);
        let seq = event.seq;
        self.out.events.push(event);
        seq
    }

    /// Asks for an effect.
    pub(super) fn effect(&mut self, kind: EffectKind) -> EffectId {
        self.state.head.last_effect = EffectId(self.state.head.last_effect.0 + 1);
        let effect = Effect { id: self.state.head.last_effect, at: self.at, kind };
        self.out.effects.push(effect.clone());
        let id = effect.id;
        self.state.pending.insert(id, effect);
        id
    }

    /// Takes a finished effect out of the pending ones.
    pub(super) fn take(&mut self, id: EffectId) -> Option<Effect> {
        let effect = self.state.pending.remove(&id)?;
        self.out.finished.push(id);
        Some(effect)
    }

    /// Interrupts whatever may be interrupted.
    pub(super) fn cancel_all(&mut self, now: bool) {
        let running: Vec<EffectId> =
            self.state.pending.values().filter(|e| e.kind.interruptible()).map(|e| e.id).collect();
        self.out.cancel.extend(running.into_iter().map(|effect| Cancel { effect, now }));
    }

    /// A task that must exist because an open attempt or the plan names it.
    pub(super) fn task(&self, id: &TaskId) -> &Task {
        self.state.tasks.get(id).expect("BUG: an attempt's task is in the plan")
    }

    /// Changes a task's row.
    pub(super) fn edit_task(&mut self, id: &TaskId, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.state.tasks.get_mut(id) {
            change(task);
            self.touch(Change::Task(id.clone()));
        }
    }

    /// Changes an open attempt's row.
    pub(super) fn edit_attempt(&mut self, id: &TaskId, change: impl FnOnce(&mut Attempt)) {
        if let Some(attempt) = self.state.attempts.get_mut(id) {
            change(attempt);
            self.touch(Change::Attempt(id.clone()));
        }
    }

    /// Moves an attempt to a stage with nothing in flight and no fault counted.
    pub(super) fn stage(&mut self, id: &TaskId, stage: Stage) {
        self.edit_attempt(id, |a| {
            a.stage = stage;
            a.effect = None;
            a.retry_at = None;
            a.faults = 0;
            a.report_errors.clear();
        });
    }

    /// Changes a task's status and everything that follows from it: indexes, and readiness of those that wait for it.
    pub(super) fn set_status(&mut self, id: &TaskId, status: TaskStatus) {
        let Some(task) = self.state.tasks.get_mut(id) else { return };
        let before = task.status;
        task.status = status;
        let key = (task.plan.priority, id.clone());
        let open = self.state.attempts.contains_key(id);
        if status == TaskStatus::Ready && !open {
            self.state.ready.insert(key);
        } else {
            self.state.ready.remove(&key);
        }
        if before.is_closed() != status.is_closed() {
            if status.is_closed() { self.state.open_count -= 1 } else { self.state.open_count += 1 }
        }
        if (before == TaskStatus::Done) != (status == TaskStatus::Done) {
            if status == TaskStatus::Done { self.state.done_count += 1 } else { self.state.done_count -= 1 }
        }
        self.touch(Change::Task(id.clone()));
        if before.satisfies_dependants() != status.satisfies_dependants() {
            for dependant in self.state.dependants.get(id).cloned().unwrap_or_default() {
                self.refresh(&dependant);
            }
        }
    }

    /// Whether every dependency of a task is satisfied.
    pub(super) fn satisfied(&self, id: &TaskId) -> bool {
        self.task(id)
            .plan
            .dependencies
            .iter()
            .all(|dependency| self.state.tasks.get(dependency).is_some_and(|t| t.status.satisfies_dependants()))
    }

    /// Sets pending ↔ ready by the dependencies (S4-052); other statuses stay.
    pub(super) fn refresh(&mut self, id: &TaskId) {
        let status = match self.state.tasks.get(id).map(|t| t.status) {
            Some(TaskStatus::Pending | TaskStatus::Ready) if self.satisfied(id) => TaskStatus::Ready,
            Some(TaskStatus::Pending | TaskStatus::Ready) => TaskStatus::Pending,
            _ => return,
        };
        if self.task(id).status != status {
            self.set_status(id, status);
        }
    }

    /// Holds the run. The first reason stays: what happens after it is a consequence.
    pub(super) fn hold(&mut self, kind: HoldKind, owner: Owner, reason: &str, detail: &str, next: String) {
        self.hold_until(kind, owner, reason, detail, next, None);
    }

    /// Holds the run until an instant.
    pub(super) fn hold_until(
        &mut self,
        kind: HoldKind,
        owner: Owner,
        reason: &str,
        detail: &str,
        next: String,
        until: Option<Millis>,
    ) {
        if self.state.head.hold.is_some() {
            return;
        }
        self.state.head.hold = Some(Hold {
            kind,
            owner,
            reason: reason.into(),
            detail: detail.into(),
            until,
            next: next.clone(),
            since: self.at,
        });
        self.state.head.last.error = if kind == HoldKind::Paused { String::new() } else { detail.into() };
        let data = serde_json::json!({"reason": reason, "owner": owner, "until": until, "next": next});
        self.event(draft("run", &format!("held:{kind}"), format!("{reason}: {detail}")).data(data));
    }

    /// Records a problem that somebody has to solve; one is open at a time, the newest.
    pub(super) fn incident(&mut self, incident: Incident) {
        self.state.head.counts.recovery_requests += 1;
        self.state.head.last.status = "recovery".into();
        let mut row = draft("incident", "opened", incident.reason.clone()).commit(&incident.commit);
        if let Some(task) = &incident.task {
            row = row.task(task, incident.attempt);
        }
        self.event(row.data(incident.details.clone()));
        self.touch(Change::Incident { incident: Box::new(incident.clone()), closed: false });
        self.state.head.incident = Some(incident);
    }

    /// Ends the open incident.
    pub(super) fn close_incident(&mut self) {
        if let Some(incident) = self.state.head.incident.take() {
            self.event(draft("incident", "closed", format!("{} is over", incident.reason)));
            self.touch(Change::Incident { incident: Box::new(incident), closed: true });
        }
    }

    /// Appends a lesson (artifacts 1.7).
    pub(super) fn lesson(&mut self, title: String, category: &str, strategy: String, outcome: &str, insight: String) {
        let role = self.state.head.last.role.clone();
        let lesson = Lesson {
            title,
            category: category.into(),
            strategy: head(&strategy, WORDS_MAX),
            outcome: outcome.into(),
            insight: head(&insight, WORDS_MAX),
            role,
            iteration: self.state.head.seq.0,
            at: self.at,
        };
        self.touch(Change::Lesson(lesson));
    }

    /// The command that continues this run, for holds.
    pub(super) fn start_command(&self) -> String {
        format!("harnessctl start {}", self.state.head.brief.run)
    }

    /// Delay before the repeat number `count` (from 1), in milliseconds: doubles, at most 5 minutes.
    pub(super) fn backoff_ms(&self, count: u32) -> i64 {
        let first = i64::from(self.policy.fault_delay_s) * 1000;
        first.saturating_mul(1 << count.saturating_sub(1).min(8)).min(300_000)
    }
}
