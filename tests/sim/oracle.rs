//! What must be true after every step, looked up in the world and not in what the engine says.

use std::collections::BTreeSet;

use harness_core::effect::EffectKind;
use harness_core::policy::Policy;
use harness_core::state::RunState;
use harness_core::step::Step;
use harness_proto::vocab::TaskStatus;

use crate::world::{World, tree_id};

/// Checks a step; the first broken promise is the answer.
pub(crate) fn check(world: &World, state: &RunState, step: &Step, policy: &Policy) -> Result<(), String> {
    let findings = harness_core::audit::audit(state, policy);
    if !findings.is_empty() {
        return Err(format!("audit: {}", findings.join("; ")));
    }
    if state.attempts.len() > policy.max_parallel as usize {
        return Err("more open attempts than max_parallel".into());
    }
    let turns = state.pending.values().filter(|e| matches!(e.kind, EffectKind::RunTurn(_))).count();
    if turns > policy.max_parallel as usize {
        return Err("more turns than max_parallel".into());
    }
    for task in state.tasks.values() {
        if task.attempts > task.attempts_max {
            return Err(format!("{} has {} attempts of {}", task.plan.id, task.attempts, task.attempts_max));
        }
    }
    for effect in &step.effects {
        if let EffectKind::AdvanceIntegration { to, .. } = &effect.kind {
            proven(world, state, policy, to)?;
        }
    }
    proven_target(world, state, policy)
}

/// P1: the head only moves to a tree on which every command passed.
fn proven(world: &World, state: &RunState, policy: &Policy, commit: &str) -> Result<(), String> {
    let tree = tree_id(&world.tree_of(commit));
    for check in &policy.verify {
        let command = check.command.display();
        if !world.passed.contains(&(tree.clone(), command.clone())) {
            return Err(format!("{commit} ({tree}) was to be integrated, `{command}` never passed on it"));
        }
    }
    let _ = state;
    Ok(())
}

/// P1 and P2: what the target holds was accepted, each task at most once.
fn proven_target(world: &World, state: &RunState, policy: &Policy) -> Result<(), String> {
    let tree = world.tree_of(&world.target);
    let mut tasks = BTreeSet::new();
    for change in tree.iter().filter(|c| c.starts_with("T-")) {
        let (task, _) = change.split_once('.').unwrap_or((change, ""));
        if !tasks.insert(task.to_owned()) {
            return Err(format!("{task} is on the target twice: {tree:?}"));
        }
        let id = harness_proto::ids::TaskId::parse(task).map_err(|e| e.to_string())?;
        let done = state.tasks.get(&id).is_some_and(|t| t.status == TaskStatus::Done);
        if !done {
            return Err(format!("{task} is on the target and not done"));
        }
    }
    if world.landed.contains(&world.target) {
        proven(world, state, policy, &world.target)?;
    }
    Ok(())
}

/// P2: at the end every done task is on the integration head.
pub(crate) fn check_end(world: &World, state: &RunState) -> Result<(), String> {
    let tree = world.tree_of(&world.head);
    for task in state.tasks.values().filter(|t| t.status == TaskStatus::Done) {
        let prefix = format!("{}.", task.plan.id);
        if task.resolved_by.is_none() && !tree.iter().any(|c| c.starts_with(&prefix)) {
            return Err(format!("{} is done and not on the head", task.plan.id));
        }
    }
    Ok(())
}
