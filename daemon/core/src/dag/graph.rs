//! Questions about the graph of a plan: unknown dependencies, cycles, readiness, its digest.

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::vocab::TaskStatus;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::check::check_to_value;
use super::read::Errors;
use crate::state::Task;

/// Most cycles that are named.
const CYCLES_MAX: usize = 5;
/// Most ids of one cycle that are named.
const CYCLE_IDS_MAX: usize = 30;

/// Checks dependencies and repair targets of a plan; `known` are ids outside it that a repair may still name.
pub(super) fn check(tasks: &[PlannedTask], known: &BTreeSet<&TaskId>, errors: &mut Errors) {
    let ids: BTreeMap<&TaskId, &PlannedTask> = tasks.iter().map(|task| (&task.id, task)).collect();
    for task in tasks {
        for dependency in task.dependencies.iter().filter(|id| !ids.contains_key(id)) {
            errors.push(format!("task `{}` depends on unknown task `{dependency}`", task.id));
        }
        let Some(target) = &task.repair_target else {
            continue;
        };
        if !ids.contains_key(target) && !known.contains(target) {
            errors.push(format!("Repair task '{}' references missing repair target '{target}'.", task.id));
        } else if reaches(&ids, &task.id, target) {
            errors.push(format!("task `{}` repairs `{target}` and must not depend on it", task.id));
        }
    }
    for cycle in cycles(&ids) {
        errors.push(format!("dependency cycle: {cycle}"));
    }
}

fn reaches(ids: &BTreeMap<&TaskId, &PlannedTask>, from: &TaskId, to: &TaskId) -> bool {
    let mut open = vec![from];
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        for next in ids.get(id).iter().flat_map(|task| &task.dependencies) {
            if next == to {
                return true;
            }
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    false
}

/// Cycles as `A -> B -> A`; walks with its own stack, a chain may be 10,000 long.
fn cycles(ids: &BTreeMap<&TaskId, &PlannedTask>) -> Vec<String> {
    let mut finished: BTreeSet<&TaskId> = BTreeSet::new();
    let mut found = Vec::new();
    for start in ids.keys() {
        let mut path: Vec<(&TaskId, usize)> = vec![(start, 0)];
        let mut on_path: BTreeSet<&TaskId> = BTreeSet::from([*start]);
        while let Some((id, next)) = path.last().copied() {
            let dependency = ids.get(id).and_then(|task| task.dependencies.get(next));
            let Some(dependency) = dependency.filter(|_| !finished.contains(id)) else {
                finished.insert(id);
                on_path.remove(id);
                path.pop();
                continue;
            };
            if let Some(top) = path.last_mut() {
                top.1 += 1;
            }
            if on_path.contains(dependency) {
                found.push(named(&path, dependency));
                if found.len() == CYCLES_MAX {
                    return found;
                }
            } else if ids.contains_key(dependency) && !finished.contains(dependency) {
                on_path.insert(dependency);
                path.push((dependency, 0));
            }
        }
    }
    found
}

fn named(path: &[(&TaskId, usize)], back_to: &TaskId) -> String {
    let mut ids: Vec<&str> =
        path.iter().map(|(id, _)| *id).skip_while(|id| *id != back_to).map(TaskId::as_str).collect();
    if ids.len() > CYCLE_IDS_MAX {
        ids.truncate(CYCLE_IDS_MAX);
        ids.push("…");
    }
    ids.push(back_to.as_str());
    ids.join(" -> ")
}

/// Which tasks may be begun, in dispatch order (priority, then id), computed from nothing but statuses and dependencies.
/// The oracle for the indexes that `step` keeps.
#[must_use]
pub fn naive_ready(tasks: &BTreeMap<TaskId, Task>) -> Vec<TaskId> {
    let mut ready: Vec<(i64, &TaskId)> = tasks
        .iter()
        .filter(|(_, task)| matches!(task.status, TaskStatus::Pending | TaskStatus::Ready))
        .filter(|(_, task)| {
            task.plan
                .dependencies
                .iter()
                .all(|id| tasks.get(id).is_some_and(|dependency| dependency.status.satisfies_dependants()))
        })
        .map(|(id, task)| (task.plan.priority, id))
        .collect();
    ready.sort();
    ready.into_iter().map(|(_, id)| id.clone()).collect()
}

/// sha256 of what a plan asks for: ids, dependencies, criteria, commands, repair targets and which tasks are closed. Titles,
/// prose, priorities and other statuses are not in it, so that a planner that only rewords or puts tasks back makes no progress.
#[must_use]
pub fn topology_digest(tasks: &BTreeMap<TaskId, Task>) -> String {
    // Done is the runtime's word, not the planner's.
    let closed = |task: &Task| task.status.is_closed() && task.status != TaskStatus::Done;
    digest(tasks.values().map(|task| (&task.plan, closed(task))))
}

/// The digest of tasks and whether each is closed.
pub(super) fn digest<'a>(tasks: impl Iterator<Item = (&'a PlannedTask, bool)>) -> String {
    let mut rows: BTreeMap<&TaskId, serde_json::Value> = BTreeMap::new();
    for (task, closed) in tasks {
        let mut dependencies: Vec<&str> = task.dependencies.iter().map(TaskId::as_str).collect();
        dependencies.sort_unstable();
        let checks = |list: &[harness_proto::plan::Check]| list.iter().map(check_to_value).collect::<Vec<_>>();
        rows.insert(
            &task.id,
            json!([
                task.id.as_str(),
                dependencies,
                task.acceptance_criteria,
                checks(&task.verification),
                checks(&task.setup),
                task.repair_target.as_ref().map(TaskId::as_str),
                closed
            ]),
        );
    }
    let mut hash = Sha256::new();
    for row in rows.values() {
        hash.update(row.to_string().as_bytes());
        hash.update(b"\n");
    }
    hex(&hash.finalize())
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
