//! JSON Schemas of bodies, inferred from a value of each type, so that they cannot drift from the types.
//!
//! No member is required and more may come: changes are additive only.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{answer, request, view};

/// Every schema by name.
#[must_use]
pub fn schemas() -> BTreeMap<&'static str, Value> {
    let hold = view::HoldView::default();
    let task =
        view::TaskView { hold: Some(hold.clone()), dependencies: vec![String::new()], ..view::TaskView::default() };
    let texts = vec![String::new()];
    let run = view::RunView {
        pid: Some(0),
        pgid: Some(0),
        hold: Some(hold),
        command: texts.clone(),
        tasks: vec![task.clone()],
        recovery: json!({}),
        ..view::RunView::default()
    };
    let evidence = view::EvidenceView { tests: Some(0), ..view::EvidenceView::default() };
    let attempt = view::AttemptView {
        changed: texts.clone(),
        blockers: texts.clone(),
        turns: vec![view::TurnView::default()],
        evidence: vec![evidence],
        ..view::AttemptView::default()
    };
    let event = view::EventView { data: json!({}), ..view::EventView::default() };
    let diagnosis =
        answer::DoctorAnswer { findings: vec![answer::Diagnosis::default()], ..answer::DoctorAnswer::default() };
    let logs = answer::LogPage { lines: vec![answer::LogLine::default()], ..answer::LogPage::default() };
    let kept = answer::RecoverAnswer { kept: vec![answer::KeptWork::default()], ..answer::RecoverAnswer::default() };
    let list = answer::RunList { runs: vec![run.clone()], ..answer::RunList::default() };
    let page = answer::EventPage { events: vec![event], ..answer::EventPage::default() };
    let shown = answer::TaskAnswer { task, attempts: vec![attempt], ..answer::TaskAnswer::default() };
    let control = answer::ControlAnswer { run: run.clone(), ..answer::ControlAnswer::default() };
    BTreeMap::from([
        ("CreateLaunch", of(&request::CreateLaunch::default())),
        ("Start", of(&request::Start::default())),
        ("Stop", of(&request::Stop::default())),
        ("Retry", of(&request::Retry::default())),
        ("Skip", of(&request::Skip::default())),
        ("Recover", of(&request::Recover::default())),
        ("CreateLaunchAnswer", of(&answer::CreateLaunchAnswer::default())),
        ("StartAnswer", of(&answer::StartAnswer::default())),
        ("StopAnswer", of(&answer::StopAnswer::default())),
        ("ControlAnswer", of(&control)),
        ("RunList", of(&list)),
        ("RunView", of(&run)),
        ("TaskAnswer", of(&shown)),
        ("EventPage", of(&page)),
        ("LogPage", of(&logs)),
        ("RecoverAnswer", of(&kept)),
        ("RebuildAnswer", of(&answer::RebuildAnswer::default())),
        ("DoctorAnswer", of(&diagnosis)),
        ("DbCheckAnswer", of(&answer::DbCheckAnswer::default())),
        ("PlanCheckAnswer", of(&answer::PlanCheckAnswer::default())),
        ("DaemonAnswer", of(&answer::DaemonAnswer::default())),
        ("DaemonStopAnswer", of(&answer::DaemonStopAnswer::default())),
        ("Problem", of(&crate::error::Problem::new("USAGE", ""))),
    ])
}

fn of<T: Serialize>(sample: &T) -> Value {
    infer(&serde_json::to_value(sample).unwrap_or(Value::Null))
}

fn infer(value: &Value) -> Value {
    match value {
        Value::Null => json!({}),
        Value::Bool(_) => json!({"type": "boolean"}),
        Value::Number(n) if n.is_f64() => json!({"type": "number"}),
        Value::Number(_) => json!({"type": "integer"}),
        Value::String(_) => json!({"type": "string"}),
        Value::Array(items) => json!({"type": "array", "items": items.first().map_or_else(|| json!({}), infer)}),
        Value::Object(map) => {
            let members: Map<String, Value> = map.iter().map(|(name, member)| (name.clone(), infer(member))).collect();
            json!({"type": "object", "properties": members})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::route::{Body, ROUTES};

    #[test]
    fn every_body_of_every_route_has_a_schema() {
        let schemas = schemas();
        for route in ROUTES {
            if let Body::Json(name) = route.body {
                assert!(schemas.contains_key(name), "{name}");
            }
            if !matches!(route.answer, "object" | "event-stream") {
                assert!(schemas.contains_key(route.answer), "{}", route.answer);
            }
        }
        let run = schemas["RunView"].to_string();
        assert!(run.contains("integration_head") && run.contains("terminal_reason") && run.len() < 20_000);
    }
}
