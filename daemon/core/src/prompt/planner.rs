//! The planner's prompt: goal, rules of a good plan, where to write it, why it is asked now.

use harness_proto::report::{PlannerReport, Report, TaskChanges};
use harness_proto::vocab::{Switch, TaskStatus};

use super::parts::{DATA_RULE, Prompt, answer, data, goal, line, template};
use crate::policy::Policy;
use crate::state::{Incident, RunState, Task};

const ROLE: &str = "$harness You are the planner of an unattended run. You own the plan, and only the plan: you may read the repository in the \
current folder, but you never write product code, never commit, and never start or stop anything. Nothing you change in the \
current folder is kept.\n";

const FILES: &str = "<files>
The folder named by the environment variable HARNESS_PLAN_DIR holds the plan. Write there, nowhere else:
Tasks: {{PLAN_DIR}}/tasks.json
Plan: {{PLAN_DIR}}/plan.md
`tasks.json` is the task graph; keep every task that is there unless it is to be left out, and keep members that you do not know. \
`plan.md` is its prose for people. A read-only `lessons.md` beside them tells what earlier attempts taught, where there is one.
</files>
";

const RULES: &str = "<rules>
- `tasks.json` is one JSON object: \"version\": 1, \"goal\", \"planner_revision\", \"tasks\".
- Each task has \"id\" (letters, digits, `.`, `_`, `-`, at most 64, unique ignoring case), \"title\", \"description\", \"acceptance_criteria\" \
(at least one, each testable), \"status\", \"priority\" (integer, smaller goes first), \"dependencies\" (ids that must be done before).
- \"verification\" is a list of commands that show that the task is done, for example [\"python3 -m unittest discover -s tests\"]; the runtime \
runs them itself in a clean tree, and exit 0 with at least one test is the only proof that counts. Name only commands that will exist in \
the task's own commit. Optional: \"requirements\", \"files_touched\" (relative paths), \"setup\".
- A task is small enough for one implementer turn and stands on its own: its commit must pass on top of its dependencies alone.
- Name a dependency only where one is needed; tasks without mutual dependencies may run in parallel.
- Status of a new task: \"ready\" without open dependencies, else \"pending\". No cycles, no unknown ids, no dependency on itself.
- A task that is done, in_progress or in_review stays as it is. To leave a task out set \"skipped\" or \"superseded\"; to try a failed or \
blocked task again set \"ready\" and say in its description what must be done differently. Only accepted commits make a task \"done\".
- Do not create harness-state.json or any other file of the runtime.
</rules>
";

const REPAIR_RULES: &str = "An accepted change did not fit on the integrated work. Add a new task that does the same work again on the current state:
- it has a new id and \"repair_target_task_id\": \"TARGET\";
- TARGET is not among its dependencies, directly or indirectly;
- it starts from a fresh tree of the current head; when it is accepted, TARGET becomes done with it.
Leave TARGET itself blocked.
";

/// The prompt of a planner turn.
#[must_use]
pub fn planner_prompt(state: &RunState, policy: &Policy) -> Prompt {
    let revision = state.head.plan_revision.saturating_add(1);
    let mut text = format!("{ROLE}{DATA_RULE}\n\n{}{FILES}{RULES}", goal(state, policy));
    if policy.expansion == Switch::Disabled && !state.tasks.is_empty() {
        text.push_str("This run does not take new tasks, except repairs of a conflicted task.\n");
    }
    if !policy.verify.is_empty() {
        text.push_str("The runtime runs these commands for every task besides the task's own:\n");
        for check in policy.verify.iter().take(20) {
            text.push_str(&format!("- `{}`\n", line(&check.command.display(), 400)));
        }
    } else if !policy.no_verification {
        text.push_str("The launch names no command, so every task needs \"verification\" of its own.\n");
    }
    if !policy.stop_condition.is_empty() {
        text.push_str(
            "If the stop condition is met, close what is left as \"skipped\" and say in the summary that it is met and why.\n",
        );
    }
    text.push_str(&reason(state));
    text.push_str(&format!("This plan becomes revision {revision}; set \"planner_revision\" to {revision}.\n\n"));
    text.push_str(&answer(&example(state, revision)));
    Prompt { text, template: template(&[ROLE, FILES, RULES, REPAIR_RULES]) }
}

fn example(state: &RunState, revision: i64) -> Report {
    let first = state.tasks.is_empty();
    Report::Planner(PlannerReport {
        revision,
        summary: if first { "Planned 3 tasks." } else { "Put the failed task back with a clearer description." }
            .to_owned(),
        task_changes: TaskChanges {
            added: if first { vec!["T-001".into(), "T-002".into(), "T-003".into()] } else { Vec::new() },
            updated: Vec::new(),
            closed: Vec::new(),
        },
        planner_requested_reason: if first { "initial_plan".into() } else { line(&state.head.planner.pending, 80) },
    })
}

fn reason(state: &RunState) -> String {
    let planner = &state.head.planner;
    let mut text = format!("<reason>\nAsked because: {}\n", line(or(&planner.pending, "initial_plan"), 200));
    if !planner.detail.is_empty() {
        text.push_str(&format!("{}\n", data(&planner.detail, 4_000)));
    }
    if let Some(incident) = &state.head.incident {
        text.push_str(&incident_text(incident));
    }
    let stuck: Vec<&Task> = state.tasks.values().filter(|task| is_stuck(task.status)).collect();
    if !stuck.is_empty() {
        text.push_str("Tasks that do not go on by themselves:\n");
        for task in stuck.iter().take(50) {
            text.push_str(&stuck_line(task));
        }
        if stuck.len() > 50 {
            text.push_str(&format!("- … and {} more, see tasks.json\n", stuck.len() - 50));
        }
    }
    if !state.head.proposals.is_empty() {
        text.push_str("Proposals of implementers and verifiers; take over what the goal needs, in your own words:\n");
        for proposal in state.head.proposals.iter().take(30) {
            text.push_str(&format!(
                "- {} | reason: {} | depends_on: {} | introduced_by: {}\n",
                line(&proposal.title, 200),
                line(&proposal.reason, 500),
                line(&proposal.depends_on.join(", "), 200),
                line(&proposal.introduced_by, 60)
            ));
        }
    }
    text.push_str("</reason>\n");
    text
}

const fn is_stuck(status: TaskStatus) -> bool {
    matches!(status, TaskStatus::Failed | TaskStatus::Blocked | TaskStatus::TimedOut)
}

fn stuck_line(task: &Task) -> String {
    format!(
        "- {}: status={}, attempts={}, last_verdict={}, last_attempt_commit={}, blocked_reason={}\n",
        task.plan.id,
        task.status,
        task.attempts,
        task.last_verdict.map_or("-", |verdict| verdict.as_str()),
        or(&task.last_attempt_commit, "-"),
        or(&line(&task.blocked_reason, 1_000), "-")
    )
}

fn incident_text(incident: &Incident) -> String {
    let task = incident.task.as_ref().map_or("-", |task| task.as_str());
    let mut text = format!(
        "Recovery is pending: owner={}, reason={}, resume target role=planner, task={task}, attempt={}, commit={}\n",
        incident.owner,
        line(&incident.reason, 80),
        incident.attempt,
        or(&line(&incident.commit, 64), "-")
    );
    if !incident.details.is_null() {
        text.push_str(&format!("Details:\n{}\n", data(&incident.details.to_string(), 4_000)));
    }
    if incident.reason.starts_with("integration_") {
        text.push_str(&REPAIR_RULES.replace("TARGET", task));
    }
    text
}

fn or<'a>(text: &'a str, instead: &'a str) -> &'a str {
    if text.is_empty() { instead } else { text }
}
