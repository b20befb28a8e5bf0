//! `tasks.json` as a projection: the planner's topology with the store's status (artifacts.md 1.6; S4-032).

use harness_core::state::{RunState, Task};
use harness_proto::event::timestamp;
use harness_proto::ids::Millis;
use harness_proto::plan::{Check, CommandLine, PLAN_VERSION};
use serde_json::{Map, Value, json};

/// The whole document, tasks by priority and id. Members of a task that we do not know are kept.
#[must_use]
pub fn tasks_value(state: &RunState, created_at: Millis) -> Value {
    let mut tasks: Vec<&Task> = state.tasks.values().collect();
    tasks.sort_by(|a, b| (a.plan.priority, &a.plan.id).cmp(&(b.plan.priority, &b.plan.id)));
    json!({
        "version": PLAN_VERSION,
        "goal": state.head.brief.goal,
        "planner_revision": state.head.plan_revision,
        "tasks": tasks.into_iter().map(task_value).collect::<Vec<_>>(),
        "created_at": timestamp(created_at),
        "updated_at": timestamp(state.head.updated_at),
    })
}

fn task_value(task: &Task) -> Value {
    let plan = &task.plan;
    let mut members: Map<String, Value> = plan.extra.clone();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    put("id", json!(plan.id));
    put("title", json!(plan.title));
    put("description", json!(plan.description));
    put("acceptance_criteria", json!(plan.acceptance_criteria));
    put("status", json!(task.status));
    put("priority", json!(plan.priority));
    put("dependencies", json!(plan.dependencies));
    put("attempts", json!(task.attempts));
    let optional = [
        ("verification", list(plan.verification.iter().map(check_value))),
        ("setup", list(plan.setup.iter().map(check_value))),
        ("requirements", list(plan.requirements.iter().map(|text| json!(text)))),
        ("files_touched", list(plan.files_touched.iter().map(|text| json!(text)))),
        ("repair_target_task_id", plan.repair_target.as_ref().map(|id| json!(id))),
        ("last_attempt_commit", word(&task.last_attempt_commit)),
        ("last_verdict", task.last_verdict.map(|verdict| json!(verdict))),
        ("last_integrated_commit", word(&task.integrated_commit)),
        ("blocked_reason", word(&task.blocked_reason)),
        ("integration_conflict", Some(task.integration_conflict.clone()).filter(|value| !value.is_null())),
        ("resolved_by_task_id", task.resolved_by.as_ref().map(|id| json!(id))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            put(key, value);
        }
    }
    Value::Object(members)
}

/// The short form where it says the same: a text for a command without options.
fn check_value(check: &Check) -> Value {
    if let CommandLine::Cmd(text) = &check.command
        && *check == Check::shell(text.clone())
    {
        return json!(text);
    }
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| members.insert(key.to_owned(), value);
    match &check.command {
        CommandLine::Cmd(text) => put("cmd", json!(text)),
        CommandLine::Argv(words) => put("argv", json!(words)),
    };
    let optional = [
        ("timeout_s", check.timeout_s.map(|n| json!(n))),
        ("cwd", check.cwd.as_ref().map(|path| json!(path))),
        ("env", Some(json!(check.env)).filter(|_| !check.env.is_empty())),
        ("network", check.network.map(|on| json!(on))),
        ("expect_tests_min", check.expect_tests_min.map(|n| json!(n))),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            put(key, value);
        }
    }
    Value::Object(members)
}

fn list(items: impl Iterator<Item = Value>) -> Option<Value> {
    let items: Vec<Value> = items.collect();
    (!items.is_empty()).then_some(Value::Array(items))
}

fn word(text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!(text))
}
