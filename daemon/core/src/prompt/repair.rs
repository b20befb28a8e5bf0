//! Short prompts: repairing a report, and taking work over in a fresh session.

use harness_proto::vocab::Role;

use super::parts::{ANSWER_RULE, PLAN_DIR, Prompt, line, template};
use crate::state::{Attempt, RunState};

const REPAIR: &str = "$harness Your last answer could not be used. Nothing else is wrong with your turn: do not do the work again, do not commit again. \
Correct what is listed and give the complete report once more.\n";
const REPAIR_PLAN: &str = "$harness Your plan or report could not be used. Correct what is listed, in the same files and nowhere else, and give the \
complete report once more. The revision stays the same.\n";
/// Most errors that are listed.
const ERRORS_MAX: usize = 60;

/// Asks once more for a report, with every error. A planner may also have to correct its files.
#[must_use]
pub fn repair_prompt(role: Role, errors: &[String]) -> Prompt {
    let (start, files) = match role {
        Role::Planner => (REPAIR_PLAN, format!("Tasks: {PLAN_DIR}/tasks.json\nPlan: {PLAN_DIR}/plan.md\n")),
        Role::Implementer | Role::Verifier => (REPAIR, String::new()),
    };
    let mut text = format!("{start}You are the {role}.\n{files}\nErrors:\n");
    for error in errors.iter().take(ERRORS_MAX) {
        text.push_str(&format!("- {}\n", line(error, 600)));
    }
    if errors.len() > ERRORS_MAX {
        text.push_str(&format!("- … and {} more\n", errors.len() - ERRORS_MAX));
    }
    text.push_str(&format!("\n{ANSWER_RULE}\nThe members are those of the example that you were given before.\n"));
    Prompt { text, template: template(&[REPAIR, REPAIR_PLAN]) }
}

/// What a fresh session is told when the one that did the earlier work cannot be continued; put before the prompt.
#[must_use]
pub fn handover(state: &RunState, attempt: &Attempt) -> String {
    let Some(task) = state.tasks.get(&attempt.task) else { return String::new() };
    let mut text = String::new();
    if attempt.lost > 0 || attempt.faults > 0 {
        text.push_str(
            "An earlier session worked on this attempt and was cut off. What it wrote is still in the current folder: look at `git status` and \
             `git log` first, keep what is good and go on from there.\n",
        );
    }
    if attempt.number > 1 {
        text.push_str(&format!(
            "Earlier attempts of this task ({}) were made by a session that you do not remember. The last one ended so: {}\n",
            attempt.number - 1,
            line(if task.feedback.summary.is_empty() { "no feedback was left" } else { &task.feedback.summary }, 2_000)
        ));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}
