//! The JSON Schemas of the three reports, strict: every member required, no others (artifacts.md 10; S4-046).
//!
//! They keep to the subset that structured-output APIs take: objects, arrays with `items`, scalar types, `enum`.

use serde_json::{Value, json};

use crate::vocab::{CriterionOutcome, RecoverySignal, Role, Severity, Verdict};

/// Most criterion ids that are put into a schema as an `enum`; APIs refuse large ones.
const ENUM_MAX: usize = 200;

/// The schema of a role's report.
#[must_use]
pub fn schema(role: Role) -> Value {
    match role {
        Role::Planner => planner(),
        Role::Implementer => implementer(&text(), &integer()),
        Role::Verifier => verifier(&text(), &integer(), &text()),
    }
}

/// The schema narrowed to one turn: task, attempt and criterion ids are fixed, so that an agent that obeys it cannot answer
/// for another turn. An empty `task_id` or no `criteria_ids` leave that member open.
#[must_use]
pub fn schema_for(role: Role, task_id: &str, attempt: u32, criteria_ids: &[String]) -> Value {
    let task = if task_id.is_empty() { text() } else { words(&[task_id]) };
    let number = if task_id.is_empty() { integer() } else { json!({"type": "integer", "enum": [attempt]}) };
    match role {
        Role::Planner => planner(),
        Role::Implementer => implementer(&task, &number),
        Role::Verifier => {
            let ids: Vec<&str> = criteria_ids.iter().map(String::as_str).collect();
            let criterion = if ids.is_empty() || ids.len() > ENUM_MAX { text() } else { words(&ids) };
            verifier(&task, &number, &criterion)
        }
    }
}

fn planner() -> Value {
    object(&[
        ("role", words(&[Role::Planner.as_str()])),
        ("revision", integer()),
        ("summary", text()),
        ("task_changes", object(&[("added", texts()), ("updated", texts()), ("closed", texts())])),
        ("planner_requested_reason", text()),
    ])
}

fn implementer(task: &Value, attempt: &Value) -> Value {
    object(&[
        ("role", words(&[Role::Implementer.as_str()])),
        ("task_id", task.clone()),
        ("attempt", attempt.clone()),
        ("commit", text()),
        ("summary", text()),
        ("files_changed", texts()),
        ("checks_run", texts()),
        ("proposed_tasks", array(proposal())),
    ])
}

fn verifier(task: &Value, attempt: &Value, criterion: &Value) -> Value {
    let finding = object(&[
        ("description", text()),
        ("severity", words(&Severity::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>())),
        ("file", text()),
        ("recommendation", text()),
    ]);
    let result = object(&[
        ("criterion", criterion.clone()),
        ("result", words(&CriterionOutcome::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>())),
        ("evidence", text()),
    ]);
    object(&[
        ("role", words(&[Role::Verifier.as_str()])),
        ("task_id", task.clone()),
        ("attempt", attempt.clone()),
        ("commit", text()),
        ("verdict", words(&Verdict::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>())),
        ("recovery_signal", words(&RecoverySignal::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>())),
        ("summary", text()),
        ("findings", array(finding)),
        ("criteria_results", array(result)),
        ("proposed_tasks", array(proposal())),
    ])
}

fn proposal() -> Value {
    object(&[("title", text()), ("reason", text()), ("depends_on", texts()), ("introduced_by", text())])
}

fn object(members: &[(&str, Value)]) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> =
        members.iter().map(|(name, rule)| ((*name).to_owned(), rule.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn array(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn texts() -> Value {
    array(text())
}

fn text() -> Value {
    json!({"type": "string"})
}

fn integer() -> Value {
    json!({"type": "integer"})
}

fn words(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(schema: &Value, path: &str) {
        match schema["type"].as_str() {
            Some("object") => {
                assert_eq!(schema["additionalProperties"], json!(false), "{path}");
                let properties = schema["properties"].as_object().expect(path);
                let required = schema["required"].as_array().expect(path);
                assert_eq!(properties.len(), required.len(), "{path}: all members are required");
                for name in required {
                    let name = name.as_str().expect(path);
                    walk(&properties[name], &format!("{path}.{name}"));
                }
            }
            Some("array") => walk(&schema["items"], &format!("{path}[]")),
            Some("string" | "integer") => {}
            other => panic!("{path} has type {other:?}"),
        }
    }

    #[test]
    fn every_object_of_every_schema_is_strict() {
        for role in Role::ALL {
            walk(&schema(*role), role.as_str());
            walk(&schema_for(*role, "T-1", 2, &["C1".into()]), role.as_str());
        }
    }

    #[test]
    fn a_turns_schema_fixes_task_attempt_and_criteria() {
        let schema = schema_for(Role::Verifier, "T-1", 2, &["C1".into(), "C2".into()]);
        assert_eq!(schema["properties"]["task_id"]["enum"], json!(["T-1"]));
        assert_eq!(schema["properties"]["attempt"]["enum"], json!([2]));
        let criterion = &schema["properties"]["criteria_results"]["items"]["properties"]["criterion"];
        assert_eq!(criterion["enum"], json!(["C1", "C2"]));
    }

    #[test]
    fn a_plan_report_has_no_task_list() {
        assert!(schema(Role::Planner)["properties"].get("tasks").is_none(), "corrections 10");
    }
}
