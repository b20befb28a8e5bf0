//! The implementer's prompt: one task, its tree, what an earlier attempt was told.

use harness_proto::plan::PlannedTask;
use harness_proto::report::{ImplementerReport, Report};

use super::parts::{DATA_RULE, Prompt, answer, checks, criteria, data, feedback, goal, line, template};
use crate::policy::Policy;
use crate::state::{Attempt, RunState};

const ROLE: &str = "$harness You are the implementer of one task. You work in the current folder, a tree of the repository made for \
this attempt; it is yours alone.\n";

const RULES: &str = "<rules>
- Do this one task and nothing else. Work that you find besides goes into `proposed_tasks`.
- Do not edit tasks.json, plan.md or any file whose name begins with `harness-`; they belong to the runtime.
- Stay in the current folder. Do not switch branches, do not push, do not rewrite the commit that you start from.
- Write tests for what you add where the project has tests, and run the checks before you commit; note them in `checks_run`.
- Create exactly one commit with everything that belongs to the task, and report its full id. If you cannot commit, leave the changes in the \
tree and report an empty `commit`: the runtime commits them.
- Afterwards the runtime runs the commands below itself in a clean tree of the commit. What is not committed does not count, and no report \
makes up for a command that fails.
</rules>
";

/// The prompt of an implementer turn.
#[must_use]
pub fn implementer_prompt(state: &RunState, policy: &Policy, attempt: &Attempt) -> Prompt {
    let template = template(&[ROLE, RULES]);
    let Some(task) = state.tasks.get(&attempt.task) else { return Prompt { text: String::new(), template } };
    let plan = &task.plan;
    let mut text = feedback(&task.feedback);
    text.push_str(ROLE);
    text.push_str(DATA_RULE);
    text.push_str(&format!(
        "\n\nAssigned task: {}\nAttempt: {}\nBase commit: {}\n\n",
        attempt.task, attempt.number, attempt.base
    ));
    if !task.feedback.summary.is_empty() {
        text.push_str("An earlier attempt was not taken; the feedback above says why. The tree is fresh, on the current state of the run.\n");
    }
    text.push_str(&goal(state, policy));
    text.push_str(&about(plan));
    text.push_str(&format!("Acceptance criteria:\n{}</task>\n", criteria(plan)));
    text.push_str(&dependencies(state, plan));
    text.push_str(RULES);
    text.push_str(&format!("<checks>\n{}</checks>\n", checks(policy, plan)));
    if !policy.protected_paths.is_empty() {
        let paths: Vec<String> = policy.protected_paths.iter().take(50).map(|path| line(path, 200)).collect();
        text.push_str(&format!("Paths that must not change: {}\n", paths.join(", ")));
    }
    let example = Report::Implementer(ImplementerReport {
        task_id: attempt.task.to_string(),
        attempt: i64::from(attempt.number),
        // An agent that copies the example must not claim a commit; an empty one claims nothing.
        commit: String::new(),
        summary: "Added the search command with tests.".to_owned(),
        files_changed: vec!["src/search.py".to_owned(), "tests/test_search.py".to_owned()],
        checks_run: vec!["python3 -m unittest discover -s tests".to_owned()],
        proposed_tasks: Vec::new(),
    });
    text.push('\n');
    text.push_str(&answer(&example));
    Prompt { text, template }
}

/// Title, description and expected files of a task.
pub(super) fn about(plan: &PlannedTask) -> String {
    let mut text =
        format!("<task>\nTitle: {}\nDescription:\n{}\n", line(&plan.title, 300), data(&plan.description, 12_000));
    if !plan.files_touched.is_empty() {
        let files: Vec<String> = plan.files_touched.iter().take(100).map(|path| line(path, 200)).collect();
        text.push_str(&format!("Files it is expected to touch: {}\n", files.join(", ")));
    }
    if !plan.requirements.is_empty() {
        let names: Vec<String> = plan.requirements.iter().take(50).map(|name| line(name, 200)).collect();
        text.push_str(&format!("Requirements: {}\n", names.join(", ")));
    }
    text
}

fn dependencies(state: &RunState, plan: &PlannedTask) -> String {
    if plan.dependencies.is_empty() {
        return String::new();
    }
    let mut text = "<dependencies>\nThe tree has the results of:\n".to_owned();
    for id in plan.dependencies.iter().take(50) {
        let title = state
            .tasks
            .get(id)
            .map_or(String::new(), |task| format!("{} ({})", line(&task.plan.title, 200), task.status));
        text.push_str(&format!("- {id}: {title}\n"));
    }
    text.push_str("</dependencies>\n");
    text
}
