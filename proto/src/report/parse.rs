//! From an agent's last message to a report (S4-043 to S4-049).
//!
//! Everything that is wrong is listed, each with its place (`findings[2].severity`), so that one repair prompt is enough.

use serde_json::{Map, Value};

use super::read::Members;
use super::{
    CriterionResult, Finding, ImplementerReport, PlannerReport, ProposedTask, Report, TaskChanges, VerifierReport,
};
use crate::vocab::{RecoverySignal, Role};

/// Longest message that is looked at, in bytes.
pub const REPORT_BYTES_MAX: usize = 4 << 20;
/// Most errors that are listed.
const ERRORS_MAX: usize = 50;
/// Most fences and fence ends that are tried; a message is data of somebody else.
const FENCES_MAX: usize = 32;

/// Parses the message that a turn of `role` ended with.
///
/// Plain JSON, or the first ```` ```json ```` fence of a message that is no JSON as a whole. Aliases: `plan_revision`,
/// `trial_commit`, `evaluated_commit`; a missing `recovery_signal` means `none` (S4-048).
///
/// # Errors
/// Every broken rule, in words for the agent.
pub fn parse(role: Role, text: &str) -> Result<Report, Vec<String>> {
    let value = object_of(text).map_err(|error| vec![error])?;
    let mut map = value;
    let mut errors = Vec::new();
    aliases(role, &mut map, &mut errors);
    match map.get("role") {
        None => errors.push("role: missing".to_owned()),
        Some(Value::String(word)) if word == role.as_str() => {}
        Some(other) => {
            return Err(vec![format!("role: this is a turn of the {role}, the report says {}", short(other))]);
        }
    }
    let mut members = Members::new(String::new(), &map, &mut errors);
    members.skip("role");
    let report = match role {
        Role::Planner => Report::Planner(planner(&mut members)),
        Role::Implementer => Report::Implementer(implementer(&mut members)),
        Role::Verifier => Report::Verifier(verifier(&mut members)),
    };
    members.finish();
    if errors.is_empty() {
        return Ok(report);
    }
    if errors.len() > ERRORS_MAX {
        let more = errors.len() - ERRORS_MAX;
        errors.truncate(ERRORS_MAX);
        errors.push(format!("… and {more} more"));
    }
    Err(errors)
}

fn planner(members: &mut Members<'_>) -> PlannerReport {
    let mut report = PlannerReport {
        revision: members.integer("revision"),
        summary: members.text("summary"),
        task_changes: TaskChanges::default(),
        planner_requested_reason: members.text("planner_requested_reason"),
    };
    members.object("task_changes", |changes| {
        report.task_changes = TaskChanges {
            added: changes.texts("added"),
            updated: changes.texts("updated"),
            closed: changes.texts("closed"),
        };
    });
    report
}

fn implementer(members: &mut Members<'_>) -> ImplementerReport {
    ImplementerReport {
        task_id: members.text("task_id"),
        attempt: members.integer("attempt"),
        commit: members.text("commit"),
        summary: members.text("summary"),
        files_changed: members.texts("files_changed"),
        checks_run: members.texts("checks_run"),
        proposed_tasks: members.objects("proposed_tasks", proposal),
    }
}

fn verifier(members: &mut Members<'_>) -> VerifierReport {
    VerifierReport {
        task_id: members.text("task_id"),
        attempt: members.integer("attempt"),
        commit: members.text("commit"),
        verdict: members.word("verdict", "Verifier verdict must be accept or revert."),
        recovery_signal: if members.has("recovery_signal") {
            members.word(
                "recovery_signal",
                "Verifier recovery_signal must be none, environment_blocked, or ambiguous_acceptance_criteria.",
            )
        } else {
            RecoverySignal::None
        },
        summary: members.text("summary"),
        findings: members.objects("findings", |finding| Finding {
            description: finding.text("description"),
            severity: finding.word("severity", "must be critical, high, medium, low or info"),
            file: finding.text("file"),
            recommendation: finding.text("recommendation"),
        }),
        criteria_results: members.objects("criteria_results", |result| CriterionResult {
            criterion: result.text("criterion"),
            result: result.word("result", "must be pass, fail or skip"),
            evidence: result.text("evidence"),
        }),
        proposed_tasks: members.objects("proposed_tasks", proposal),
    }
}

fn proposal(members: &mut Members<'_>) -> ProposedTask {
    ProposedTask {
        title: members.text("title"),
        reason: members.text("reason"),
        depends_on: members.texts("depends_on"),
        introduced_by: members.text("introduced_by"),
    }
}

/// Renames aliases; the canonical member wins over an equal alias, two that differ are an error.
fn aliases(role: Role, map: &mut Map<String, Value>, errors: &mut Vec<String>) {
    let known: &[(&str, &str)] = match role {
        Role::Planner => &[("plan_revision", "revision")],
        Role::Implementer => &[("trial_commit", "commit")],
        Role::Verifier => &[("evaluated_commit", "commit"), ("trial_commit", "commit")],
    };
    for (alias, name) in known {
        let Some(value) = map.remove(*alias) else {
            continue;
        };
        match map.get(*name) {
            None => {
                map.insert((*name).to_owned(), value);
            }
            Some(canonical) if *canonical == value => {}
            Some(_) => errors.push(format!("{alias}: differs from `{name}`; give one of them")),
        }
    }
}

fn object_of(text: &str) -> Result<Map<String, Value>, String> {
    if text.len() > REPORT_BYTES_MAX {
        return Err(format!("the report has {} bytes, the limit is {REPORT_BYTES_MAX}", text.len()));
    }
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Err("Empty output from agent turn.".to_owned());
    }
    let value = match tolerant(text) {
        Ok(value) => value,
        Err(error) => fenced(text).ok_or_else(|| {
            format!("Could not parse JSON from model output. Raw length={}: {error}", text.chars().count())
        })?,
    };
    match value {
        Value::Object(map) => Ok(map),
        other => Err(format!("the report must be one JSON object, it is {}", kind(&other))),
    }
}

/// JSON, where control characters may stand unescaped in texts: agents copy terminal output into them.
fn tolerant(text: &str) -> Result<Value, serde_json::Error> {
    match serde_json::from_str(text) {
        Ok(value) => Ok(value),
        Err(error) => {
            let Some(escaped) = escape_controls(text) else {
                return Err(error);
            };
            serde_json::from_str(&escaped)
        }
    }
}

fn escape_controls(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len() + 64);
    let (mut inside, mut escaped, mut changed) = (false, false, false);
    for c in text.chars() {
        if inside && u32::from(c) < 0x20 {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
            changed = true;
            escaped = false;
            continue;
        }
        match c {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && c == '\\' && !escaped;
        out.push(c);
    }
    changed.then_some(out)
}

/// The first ```` ```json ```` block that is JSON. A fence end inside a text of the JSON does not end it.
fn fenced(text: &str) -> Option<Value> {
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    for _ in 0..FENCES_MAX {
        let open = from + lower[from..].find("```json")? + "```json".len();
        let mut end = open;
        for _ in 0..FENCES_MAX {
            let Some(next) = text[end..].find("```") else {
                break;
            };
            if let Ok(value) = tolerant(text[open..end + next].trim()) {
                return Some(value);
            }
            end += next + 3;
        }
        from = open;
    }
    None
}

/// The JSON kind of a value, for errors.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value cut to what an error can show.
pub(super) fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 60 { text } else { format!("{}…", text.chars().take(60).collect::<String>()) }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
