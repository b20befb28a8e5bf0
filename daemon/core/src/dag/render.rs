//! `tasks.json` as the runtime writes it: the planner's members, the runtime's, and every member that we do not know.

use std::collections::BTreeMap;

use harness_proto::event::timestamp;
use harness_proto::ids::{Millis, TaskId};
use harness_proto::plan::PLAN_VERSION;
use serde_json::{Map, Value, json};

use super::check::check_to_value;
use crate::state::Task;

/// The document, members sorted by name (artifacts.md 1.6). What [`super::import`] reads from it is the same plan.
#[must_use]
pub fn render_tasks_json(
    goal: &str,
    revision: i64,
    tasks: &BTreeMap<TaskId, Task>,
    created: Millis,
    updated: Millis,
) -> Value {
    let mut order: Vec<&Task> = tasks.values().collect();
    order.sort_by(|a, b| (a.plan.priority, &a.plan.id).cmp(&(b.plan.priority, &b.plan.id)));
    sorted(BTreeMap::from([
        ("created_at".to_owned(), json!(timestamp(created))),
        ("goal".to_owned(), json!(goal)),
        ("planner_revision".to_owned(), json!(revision)),
        ("tasks".to_owned(), Value::Array(order.into_iter().map(render_task).collect())),
        ("updated_at".to_owned(), json!(timestamp(updated))),
        ("version".to_owned(), json!(PLAN_VERSION)),
    ]))
}

/// One task of the document.
pub(super) fn render_task(task: &Task) -> Value {
    let plan = &task.plan;
    let mut map: BTreeMap<String, Value> = plan.extra.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut put = |name: &str, value: Value| {
        map.insert(name.to_owned(), value);
    };
    put("id", json!(plan.id.as_str()));
    put("title", json!(plan.title));
    put("description", json!(plan.description));
    put("acceptance_criteria", json!(plan.acceptance_criteria));
    put("status", json!(task.status.as_str()));
    put("priority", json!(plan.priority));
    put("dependencies", json!(plan.dependencies));
    put("attempts", json!(task.attempts));
    let mut text = |name: &str, value: &str| {
        if !value.is_empty() {
            put(name, json!(value));
        }
    };
    text("last_attempt_commit", &task.last_attempt_commit);
    text("last_integrated_commit", &task.integrated_commit);
    text("blocked_reason", &task.blocked_reason);
    text("last_verdict", task.last_verdict.map_or("", |verdict| verdict.as_str()));
    text("resolved_by_task_id", task.resolved_by.as_ref().map_or("", TaskId::as_str));
    text("repair_target_task_id", plan.repair_target.as_ref().map_or("", TaskId::as_str));
    let mut list = |name: &str, values: Vec<Value>| {
        if !values.is_empty() {
            put(name, Value::Array(values));
        }
    };
    list("verification", plan.verification.iter().map(check_to_value).collect());
    list("setup", plan.setup.iter().map(check_to_value).collect());
    list("requirements", plan.requirements.iter().map(|text| json!(text)).collect());
    list("files_touched", plan.files_touched.iter().map(|text| json!(text)).collect());
    if !task.integration_conflict.is_null() {
        put("integration_conflict", task.integration_conflict.clone());
    }
    sorted(map)
}

/// An object whose members are in order whatever map serde_json was built with.
fn sorted(map: BTreeMap<String, Value>) -> Value {
    Value::Object(map.into_iter().collect::<Map<String, Value>>())
}
