//! The planner's turn on a plan that was started: gives a failed task one more chance, and says so when it cannot help.

use serde_json::{Value, json};

use super::criteria;
use super::goal::{self, Tool};
use super::part::Part;
use super::planner;
use super::turn::{Task, TurnSpec};

/// The words that mark a task that had its second chance; they stand in the description, where a person sees them.
const MARK: &str = "Second chance from the planner";

/// Writes the plan as it is, with failed tasks made ready once, and returns the report.
pub(super) fn take(spec: &TurnSpec) -> Result<Value, String> {
    let tool = goal::parse(&spec.context.goal)
        .map_err(|error| format!("the offline agent cannot plan this goal: {error}; {}", goal::understood()))?;
    let mut tasks = spec.context.tasks.clone();
    let (mut updated, mut given_up) = (Vec::new(), Vec::new());
    for task in &mut tasks {
        let status = task["status"].as_str().unwrap_or_default().to_owned();
        if !matches!(status.as_str(), "failed" | "blocked" | "timed_out") {
            continue;
        }
        let id = task["id"].as_str().unwrap_or_default().to_owned();
        let description = task["description"].as_str().unwrap_or_default().to_owned();
        if description.contains(MARK) {
            given_up.push(format!("{id} is {status} again after its second chance"));
            continue;
        }
        let refined = refined(spec, &tool, task, &description);
        task["description"] = json!(refined);
        task["status"] = json!("ready");
        updated.push(id);
    }
    let reason = reason(&updated, &given_up);
    let summary = if updated.is_empty() {
        format!("Changed nothing: {reason}")
    } else {
        format!("Made ready once more, with what went wrong in the description: {}.", updated.join(", "))
    };
    let document = json!({
        "version": 1, "goal": spec.context.goal, "planner_revision": spec.context.revision, "tasks": tasks,
    });
    planner::write_plan(spec, &document, &prose(spec, &tasks, &summary))?;
    Ok(planner::report(spec, &summary, &[], &updated, &reason))
}

fn reason(updated: &[String], given_up: &[String]) -> String {
    if !given_up.is_empty() {
        return format!("{}; the offline planner has no other way to do it.", given_up.join("; "));
    }
    if updated.is_empty() {
        return "No task failed or is blocked, so the offline planner has nothing to change.".to_owned();
    }
    String::new()
}

/// Returns the description with the mark and what went wrong; criteria nobody can check are put back as planned.
fn refined(spec: &TurnSpec, tool: &Tool, task: &mut Value, description: &str) -> String {
    let known: Option<Task> = serde_json::from_value(task.clone()).ok();
    if let Some((part, names)) =
        known.as_ref().and_then(|known| Part::of_task(tool, known)).filter(|(part, _)| *part != Part::Guide)
    {
        let promised = criteria::promises(tool, part, names);
        task["acceptance_criteria"] = json!(promised.into_iter().map(|promise| promise.text).collect::<Vec<_>>());
    }
    let blocked = task["blocked_reason"].as_str().unwrap_or_default();
    let told = [spec.context.feedback.trim(), blocked].into_iter().find(|text| !text.is_empty());
    let told: String = told.unwrap_or("no reason was given").chars().take(600).collect();
    format!("{description}\n\n{MARK}. What went wrong before: {told}")
}

fn prose(spec: &TurnSpec, tasks: &[Value], summary: &str) -> String {
    let mut text =
        format!("# Plan, revision {}\n\nGoal: {}\n\n{summary}\n\n", spec.context.revision, spec.context.goal.trim());
    for task in tasks {
        let word = |name: &str| task[name].as_str().unwrap_or("-");
        text.push_str(&format!("- {} ({}): {}\n", word("id"), word("status"), word("title")));
    }
    text
}
