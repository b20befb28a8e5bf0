//! The frame of a turn as data, for agents that read data instead of prose (`command`, `offline`).

use harness_proto::ids::Millis;
use harness_proto::vocab::Role;
use serde_json::{Value, json};

use super::parts::{PLAN_DIR, feedback};
use crate::dag::{check_to_value, render_tasks_json};
use crate::gate::expected_checks;
use crate::policy::Policy;
use crate::state::{Attempt, RunState};

/// Tasks above this number are not repeated in a task's frame; the planner has the file.
const TASKS_MAX: usize = 500;

/// The frame of a planner turn: `goal scope plan_dir revision base_commit reason detail incident proposals tasks policy`.
#[must_use]
pub fn planner_context(state: &RunState, policy: &Policy) -> Value {
    let head = &state.head;
    let mut frame = common(state, policy);
    let more = json!({
        "plan_dir": PLAN_DIR,
        "revision": head.plan_revision.saturating_add(1),
        "base_commit": head.head,
        "trial_commit": "",
        "reason": if head.planner.pending.is_empty() { "initial_plan" } else { &head.planner.pending },
        "detail": head.planner.detail,
        "errors": head.planner.errors,
        "incident": head.incident,
        "proposals": head.proposals,
        "tasks": tasks(state),
        "task": Value::Null,
        "feedback": "",
        "evidence": [],
    });
    merge(&mut frame, more);
    frame
}

/// The frame of an implementer's or verifier's turn; members as in [`planner_context`], with `task`, `feedback` and `evidence` filled.
#[must_use]
pub fn attempt_context(state: &RunState, policy: &Policy, attempt: &Attempt, role: Role) -> Value {
    let mut frame = common(state, policy);
    let task = state.tasks.get(&attempt.task);
    let about = task.map(|task| {
        let plan = &task.plan;
        let criteria: Vec<Value> = plan
            .acceptance_criteria
            .iter()
            .enumerate()
            .map(|(place, text)| json!({"id": format!("C{}", place + 1), "text": text}))
            .collect();
        let checks: Vec<Value> = expected_checks(policy, plan).iter().map(check_to_value).collect();
        json!({
            "id": plan.id,
            "title": plan.title,
            "description": plan.description,
            "acceptance_criteria": plan.acceptance_criteria,
            "criteria": criteria,
            "verification": checks,
            "files_touched": plan.files_touched,
            "requirements": plan.requirements,
            "dependencies": plan.dependencies,
            "attempts": task.attempts,
        })
    });
    let evidence: Vec<Value> = attempt
        .evidence
        .iter()
        .filter(|record| !record.setup)
        .map(|record| json!({"command": record.command, "exit_code": record.exit_code, "result": record.result, "tests": record.tests}))
        .collect();
    let verifying = role == Role::Verifier;
    let more = json!({
        "plan_dir": "",
        "revision": state.head.plan_revision,
        "base_commit": attempt.base,
        "trial_commit": attempt.trial,
        "tasks": if state.tasks.len() <= TASKS_MAX { tasks(state) } else { json!([]) },
        "task": about,
        "feedback": task.map(|task| feedback(&task.feedback)).unwrap_or_default(),
        "summary": if verifying { attempt.summary.as_str() } else { "" },
        "changed": if verifying { &attempt.changed[..] } else { &[] },
        "evidence": evidence,
    });
    merge(&mut frame, more);
    frame
}

fn common(state: &RunState, policy: &Policy) -> Value {
    let brief = &state.head.brief;
    json!({
        "run_id": brief.run,
        "goal": brief.goal,
        "original_goal": brief.original_goal,
        "scope": brief.scope,
        "stop_condition": policy.stop_condition,
        "verify": policy.verify.iter().map(check_to_value).collect::<Vec<_>>(),
        "protected_paths": policy.protected_paths,
    })
}

fn tasks(state: &RunState) -> Value {
    let mut plan = render_tasks_json("", 0, &state.tasks, Millis(0), Millis(0));
    plan["tasks"].take()
}

fn merge(frame: &mut Value, more: Value) {
    if let (Value::Object(frame), Value::Object(more)) = (frame, more) {
        frame.extend(more);
    }
}
