//! Which values go together (profiles.md 2.1, the line below the table).

use super::field::Preset;
use super::values::{PolicyError, PolicyValues};

/// Refuses values that contradict each other.
pub(super) fn combinations(values: &PolicyValues) -> Result<(), PolicyError> {
    let is = |key: &str, word: &str| values.text(key) == word;
    let refuse = |text: &str| Err(PolicyError::Combination(text.to_owned()));
    let roles = ["planner", "implementer", "verifier"];
    if values.agent_of("implementer") == "openai" && !is("edits", "file_map") {
        return refuse("agent `openai` needs edits=file_map: it cannot edit files itself");
    }
    let scored = PolicyValues::of(Preset::Scored);
    let custom_weights = values
        .get("scoring.weights")
        .as_object()
        .is_some_and(|w| !w.is_empty() && values.get("scoring.weights") != scored.get("scoring.weights"));
    if values.flag("scoring.skip") && custom_weights {
        return refuse("scoring.skip=true and scoring.weights do not go together: nothing is scored");
    }
    if is("ledger", "off") && is("completion", "ledger_pass") {
        return refuse("completion=ledger_pass needs a ledger: set ledger=requirements or ledger=features");
    }
    if !is("risk.level", "off") && is("evidence.commands", "task_and_suite") {
        return refuse("a risk level needs evidence.commands=required_tests: it never runs a whole suite");
    }
    if (is("layout", "root") || is("layout", "flat")) && !is("runs_per_repo", "one") {
        return refuse("layout root or flat needs runs_per_repo=one: the files of two runs would stand in one place");
    }
    for (min, max) in [
        ("plan.size.min", "plan.size.max"),
        ("plan.size.hard_min", "plan.size.hard_max"),
        ("contract.items.min", "contract.items.max"),
    ] {
        if values.int(max) != 0 && values.int(min) > values.int(max) {
            return Err(PolicyError::Combination(format!("{min} is larger than {max}")));
        }
    }
    for name in values.list("agent.env") {
        let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !plain || name.as_bytes()[0].is_ascii_digit() {
            return Err(PolicyError::Combination(format!("`{name}` in agent.env is no name of a variable")));
        }
    }
    for role in roles {
        if values.agent_of(role).ends_with(':') {
            return Err(PolicyError::Combination(format!("the agent of role {role} names no program after `:`")));
        }
    }
    Ok(())
}
