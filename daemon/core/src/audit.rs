//! An independent checker of a run's state: what must hold after every step, computed from the rows alone (style 2.7, corrections 42).
//!
//! It shares no code with `step`; where both would have the same bug, neither would find it.

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::{EffectId, TaskId};
use harness_proto::vocab::{Lifecycle, Role, TaskStatus};

use crate::dag::naive_ready;
use crate::effect::EffectKind;
use crate::policy::Policy;
use crate::state::{Attempt, RunState, Stage, Task};

/// Every invariant that `state` breaks, in words; empty for a sound state. Cost grows with the number of tasks: for tests, loads and
/// `doctor`, not for every step of a release build.
#[must_use]
pub fn audit(state: &RunState, policy: &Policy) -> Vec<String> {
    let mut found = Vec::new();
    effects(state, &mut found);
    attempts(state, policy, &mut found);
    tasks(state, &mut found);
    indexes(state, &mut found);
    run(state, &mut found);
    found
}

/// Who waits for which effect.
fn owners(state: &RunState) -> Vec<(String, EffectId)> {
    let mut owners: Vec<(String, EffectId)> = state
        .attempts
        .values()
        .filter_map(|a| a.effect.map(|id| (format!("attempt {} of {}", a.number, a.task), id)))
        .collect();
    let head = &state.head;
    for (who, effect) in
        [("planner", head.planner.effect), ("baseline", head.baseline.effect), ("landing", head.landing.effect)]
    {
        owners.extend(effect.map(|id| (who.to_owned(), id)));
    }
    owners
}

fn effects(state: &RunState, found: &mut Vec<String>) {
    let mut owned: BTreeMap<EffectId, String> = BTreeMap::new();
    for (who, id) in owners(state) {
        if !state.pending.contains_key(&id) {
            found.push(format!("{who} waits for effect {id}, which is not pending"));
        }
        if let Some(other) = owned.insert(id, who.clone()) {
            found.push(format!("{who} and {other} wait for the same effect {id}"));
        }
    }
    for (id, effect) in &state.pending {
        if effect.id != *id {
            found.push(format!("effect {} is stored under {id}", effect.id));
        }
        if *id > state.head.last_effect || id.0 < 1 {
            found.push(format!("effect {id} is outside 1 to {}", state.head.last_effect));
        }
        if !owned.contains_key(id)
            && let Some(problem) = unowned(state, &effect.kind)
        {
            found.push(format!("nobody waits for effect {id}: {problem}"));
        }
    }
}

/// Effects of an attempt that the user took away meanwhile end without anybody waiting; others must have an owner.
fn unowned(state: &RunState, kind: &EffectKind) -> Option<String> {
    match kind {
        EffectKind::RemoveTree { .. } | EffectKind::Finish | EffectKind::PrepareTree { .. } => None,
        EffectKind::RunSetup { tree, .. } => state
            .attempts
            .values()
            .any(|attempt| attempt.tree == *tree)
            .then(|| format!("setup in {tree} of an open attempt")),
        EffectKind::RunTurn(turn) => match &turn.task {
            None => Some("a planner turn".to_owned()),
            Some(task) => {
                open(state, task, turn.attempt).then(|| format!("a {} turn of open attempt of {task}", turn.role))
            }
        },
        EffectKind::CollectEvidence(request) => match &request.task {
            None => Some("evidence of no task".to_owned()),
            Some(task) => open(state, task, request.attempt).then(|| format!("evidence of open attempt of {task}")),
        },
        EffectKind::BuildCandidate(request) => open(state, &request.task, request.attempt)
            .then(|| format!("a candidate of open attempt of {}", request.task)),
        EffectKind::AdvanceIntegration { .. } | EffectKind::Land { .. } | EffectKind::Restack { .. } => {
            Some(kind.name().to_owned())
        }
    }
}

fn open(state: &RunState, task: &TaskId, number: u32) -> bool {
    state.attempts.get(task).is_some_and(|attempt| attempt.number == number)
}

fn attempts(state: &RunState, policy: &Policy, found: &mut Vec<String>) {
    if state.attempts.len() > policy.max_parallel as usize {
        found.push(format!("{} attempts are open, max_parallel is {}", state.attempts.len(), policy.max_parallel));
    }
    if state.head.planner.effect.is_some() && !state.attempts.is_empty() {
        found.push("a planner turn runs beside an open attempt".to_owned());
    }
    let integrating = state
        .attempts
        .values()
        .filter(|a| a.stage > Stage::Building || (a.stage == Stage::Building && a.effect.is_some()))
        .count();
    if integrating > 1 {
        found.push(format!("{integrating} attempts integrate at once"));
    }
    for (id, attempt) in &state.attempts {
        if attempt.task != *id {
            found.push(format!("the attempt of {} is stored under {id}", attempt.task));
        }
        if !attempt.outcome.is_empty() {
            found.push(format!("the attempt of {id} is open and decided: {}", attempt.outcome));
        }
        match state.tasks.get(id) {
            None => found.push(format!("an attempt is open for {id}, which is no task")),
            Some(task) => attempt_of(state, task, attempt, found),
        }
        stage_matches(state, attempt, found);
    }
}

fn attempt_of(state: &RunState, task: &Task, attempt: &Attempt, found: &mut Vec<String>) {
    let id = &attempt.task;
    if !matches!(task.status, TaskStatus::InProgress | TaskStatus::InReview) {
        found.push(format!("an attempt of {id} is open, its status is {}", task.status));
    }
    if attempt.number > task.attempts_max || attempt.number < 1 {
        found.push(format!("attempt {} of {id} is outside 1 to {}", attempt.number, task.attempts_max));
    }
    unmet(state, task, found);
}

fn unmet(state: &RunState, task: &Task, found: &mut Vec<String>) {
    for dependency in &task.plan.dependencies {
        if !state.tasks.get(dependency).is_some_and(|d| d.status.satisfies_dependants()) {
            found.push(format!("{} is {} before its dependency {dependency} is done", task.plan.id, task.status));
        }
    }
}

/// The effect in flight is the one of the stage.
fn stage_matches(state: &RunState, attempt: &Attempt, found: &mut Vec<String>) {
    let Some(effect) = attempt.effect.and_then(|id| state.pending.get(&id)) else { return };
    let fits = match (&effect.kind, attempt.stage) {
        (EffectKind::PrepareTree { .. }, Stage::Preparing)
        | (EffectKind::RunSetup { .. }, Stage::Setup)
        | (EffectKind::CollectEvidence(_), Stage::Proving | Stage::Reproving)
        | (EffectKind::BuildCandidate(_), Stage::Building)
        | (EffectKind::AdvanceIntegration { .. }, Stage::Advancing) => true,
        (EffectKind::RunTurn(turn), Stage::Implementing) => turn.role == Role::Implementer,
        (EffectKind::RunTurn(turn), Stage::Verifying) => turn.role == Role::Verifier,
        _ => false,
    };
    if !fits {
        found.push(format!(
            "the attempt of {} is {:?} and waits for {}",
            attempt.task,
            attempt.stage,
            effect.kind.name()
        ));
    }
    let needs_trial = matches!(attempt.stage, Stage::Verifying | Stage::Building | Stage::Reproving | Stage::Advancing);
    if needs_trial && attempt.trial.is_empty() {
        found.push(format!("the attempt of {} is {:?} without a trial commit", attempt.task, attempt.stage));
    }
    if attempt.stage == Stage::Advancing && attempt.candidate.is_empty() {
        found.push(format!("the attempt of {} advances without a candidate", attempt.task));
    }
}

fn tasks(state: &RunState, found: &mut Vec<String>) {
    let mut folded: BTreeMap<String, &TaskId> = BTreeMap::new();
    for (id, task) in &state.tasks {
        if task.plan.id != *id {
            found.push(format!("task {} is stored under {id}", task.plan.id));
        }
        if let Some(other) = folded.insert(id.as_str().to_ascii_lowercase(), id) {
            found.push(format!("tasks {other} and {id} differ only in case"));
        }
        if task.attempts > task.attempts_max {
            found.push(format!("{id} made {} attempts, allowed are {}", task.attempts, task.attempts_max));
        }
        if task.plan.acceptance_criteria.is_empty() {
            found.push(format!("{id} has no criteria"));
        }
        let working = matches!(task.status, TaskStatus::InProgress | TaskStatus::InReview);
        if working && !state.attempts.contains_key(id) {
            found.push(format!("{id} is {} without an open attempt", task.status));
        }
        if task.status == TaskStatus::Done {
            done(state, task, found);
        }
    }
}

fn done(state: &RunState, task: &Task, found: &mut Vec<String>) {
    let id = &task.plan.id;
    // Without an attempt it came in as done with a found plan.
    let accounted =
        !task.integrated_commit.is_empty() || task.resolved_by.is_some() || task.unproven || task.attempts == 0;
    if !accounted {
        found.push(format!("{id} is done without an integrated commit"));
    }
    if let Some(by) = &task.resolved_by
        && state.tasks.get(by).is_none_or(|repair| repair.status != TaskStatus::Done)
    {
        found.push(format!("{id} is resolved by {by}, which is not done"));
    }
    if !task.integrated_commit.is_empty() && task.resolved_by.is_none() {
        unmet(state, task, found);
    }
}

fn indexes(state: &RunState, found: &mut Vec<String>) {
    let expected: Vec<TaskId> =
        naive_ready(&state.tasks).into_iter().filter(|id| !state.attempts.contains_key(id)).collect();
    let indexed: Vec<TaskId> = state.ready().cloned().collect();
    if expected != indexed {
        found.push(format!("ready tasks are {expected:?}, the index has {indexed:?}"));
    }
    for (id, task) in &state.tasks {
        let ready = expected.contains(id);
        if (task.status == TaskStatus::Ready) != ready && !state.attempts.contains_key(id) {
            found.push(format!(
                "{id} is {}, by its dependencies it is {}",
                task.status,
                if ready { "ready" } else { "not" }
            ));
        }
    }
    let open = state.tasks.values().filter(|task| !task.status.is_closed()).count();
    if open != state.open_count {
        found.push(format!("{open} tasks are open, the counter says {}", state.open_count));
    }
    let done = state.tasks.values().filter(|task| task.status == TaskStatus::Done).count();
    if done != state.done_count {
        found.push(format!("{done} tasks are done, the counter says {}", state.done_count));
    }
    let edges = |pairs: &mut dyn Iterator<Item = (TaskId, TaskId)>| pairs.collect::<BTreeSet<_>>();
    let expected =
        edges(&mut state.tasks.iter().flat_map(|(id, task)| {
            task.plan.dependencies.iter().map(move |dependency| (dependency.clone(), id.clone()))
        }));
    let indexed = edges(
        &mut state.dependants.iter().flat_map(|(id, list)| list.iter().map(move |other| (id.clone(), other.clone()))),
    );
    if expected != indexed {
        found.push("the index of dependants differs from the plan".to_owned());
    }
}

fn run(state: &RunState, found: &mut Vec<String>) {
    let head = &state.head;
    if let Some(hold) = &head.hold
        && (hold.next.trim().is_empty() || hold.reason.trim().is_empty() || hold.detail.trim().is_empty())
    {
        found.push(format!("the hold `{}` lacks a reason, a sentence or a next command", hold.reason));
    }
    if let Some(last) = head.unlanded.last()
        && *last != head.head
        && head.landing.restacked.is_none()
    {
        found.push(format!("the last commit to land is {last}, the integration head is {}", head.head));
    }
    let working = || state.pending.values().filter(|effect| effect.kind.interruptible());
    match head.lifecycle {
        Lifecycle::Registered | Lifecycle::Queued | Lifecycle::Running => {}
        Lifecycle::Stopped => {
            if let Some(effect) = working().next() {
                found.push(format!("the run is stopped and effect {} ({}) is pending", effect.id, effect.kind.name()));
            }
        }
        Lifecycle::Completed | Lifecycle::Cancelled => {
            if !state.attempts.is_empty() {
                found.push(format!("the run is {} with open attempts", head.lifecycle));
            }
            // A landing that waits for the user goes on after the end, with its evidence.
            if let Some(effect) = working().find(|effect| head.landing.effect != Some(effect.id)) {
                found.push(format!(
                    "the run is {} and effect {} ({}) is pending",
                    head.lifecycle,
                    effect.id,
                    effect.kind.name()
                ));
            }
            if head.lifecycle == Lifecycle::Completed && state.open_count > 0 {
                found.push(format!("the run is completed with {} open tasks", state.open_count));
            }
        }
        Lifecycle::Failed => {
            if let Some(effect) = state.pending.values().find(|e| matches!(e.kind, EffectKind::RunTurn(_))) {
                found.push(format!("the run has failed and turn effect {} is pending", effect.id));
            }
        }
    }
    if matches!(head.lifecycle, Lifecycle::Completed | Lifecycle::Cancelled | Lifecycle::Failed)
        && head.terminal_reason.is_empty()
    {
        found.push(format!("the run is {} without a reason", head.lifecycle));
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
