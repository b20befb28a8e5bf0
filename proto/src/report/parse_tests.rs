//! What is a report and what is not.

use serde_json::json;

use super::*;
use crate::vocab::{CriterionOutcome, Verdict};

fn verdict() -> Value {
    json!({
        "role": "verifier", "task_id": "T-1", "attempt": 1, "commit": "abcdef0", "verdict": "accept",
        "recovery_signal": "none", "summary": "It holds.",
        "findings": [{"description": "d", "severity": "low", "file": "", "recommendation": "r"}],
        "criteria_results": [{"criterion": "C1", "result": "pass", "evidence": "seen"}],
        "proposed_tasks": [{"title": "t", "reason": "r", "depends_on": ["T-1"], "introduced_by": "verifier"}],
    })
}

fn errors(role: Role, value: &Value) -> Vec<String> {
    parse(role, &value.to_string()).expect_err("must be refused")
}

#[test]
fn a_complete_report_of_each_role_parses() {
    let Report::Verifier(report) = parse(Role::Verifier, &verdict().to_string()).expect("valid") else {
        panic!("wrong role")
    };
    assert_eq!(report.verdict, Verdict::Accept);
    assert_eq!(report.criteria_results[0].result, CriterionOutcome::Pass);
    let plan = json!({"role": "planner", "revision": 2.0, "summary": "s",
        "task_changes": {"added": ["a"], "updated": [], "closed": []}, "planner_requested_reason": ""});
    assert!(parse(Role::Planner, &plan.to_string()).is_ok());
    let work = json!({"role": "implementer", "task_id": "T", "attempt": 1, "commit": "", "summary": "s",
        "files_changed": [], "checks_run": ["x"], "proposed_tasks": []});
    assert!(parse(Role::Implementer, &work.to_string()).is_ok());
}

#[test]
fn every_error_is_listed_with_its_place() {
    let mut value = verdict();
    value["findings"][0]["severity"] = json!("grave");
    value["criteria_results"][0]["more"] = json!(1);
    value["attempt"] = json!("1");
    value["extra"] = json!(true);
    value["proposed_tasks"][0]["depends_on"] = json!([1]);
    value.as_object_mut().expect("object").remove("summary");
    let found = errors(Role::Verifier, &value).join("\n");
    for part in [
        "findings[0].severity: must be critical",
        "criteria_results[0].more: unknown member",
        "attempt: must be an integer, is a text",
        "extra: unknown member",
        "proposed_tasks[0].depends_on[0]: must be a text, is a number",
        "summary: missing",
    ] {
        assert!(found.contains(part), "{part} is not in\n{found}");
    }
    assert_eq!(found.lines().count(), 6);
}

#[test]
fn aliases_and_a_missing_signal_are_taken() {
    let mut value = verdict();
    let map = value.as_object_mut().expect("object");
    map.remove("recovery_signal");
    map.remove("commit");
    map.insert("evaluated_commit".into(), json!("1234567"));
    let Report::Verifier(report) = parse(Role::Verifier, &value.to_string()).expect("valid") else { panic!("role") };
    assert_eq!((report.commit.as_str(), report.recovery_signal), ("1234567", RecoverySignal::None));
    value["commit"] = json!("7654321");
    assert!(errors(Role::Verifier, &value)[0].starts_with("evaluated_commit: differs"));
}

#[test]
fn another_roles_report_is_refused() {
    assert_eq!(
        errors(Role::Implementer, &verdict()),
        ["role: this is a turn of the implementer, the report says \"verifier\""]
    );
}

#[test]
fn verdicts_and_signals_are_closed() {
    let mut value = verdict();
    value["verdict"] = json!("ACCEPT");
    value["recovery_signal"] = json!("tired");
    let found = errors(Role::Verifier, &value);
    assert!(found[0].contains("Verifier verdict must be accept or revert."));
    assert!(found[1].contains("Verifier recovery_signal must be none, environment_blocked, or ambiguous"));
}

#[test]
fn fences_are_read_only_around_the_whole() {
    let report = verdict().to_string();
    assert!(parse(Role::Verifier, &format!("Here it is:\n```json\n{report}\n```\nDone.")).is_ok());
    let mut value = verdict();
    value["summary"] = json!("it printed\n```json\n{\"role\": \"planner\"}\n```\n");
    let Report::Verifier(plain) = parse(Role::Verifier, &value.to_string()).expect("valid") else { panic!("role") };
    assert!(plain.summary.contains("planner"), "a fence inside a text is text");
    let inside = format!("```json\n{value}\n```");
    assert_eq!(parse(Role::Verifier, &inside), Ok(Report::Verifier(plain)));
}

#[test]
fn odd_outputs_have_clear_errors() {
    let first = |text: &str| parse(Role::Planner, text).expect_err("refused")[0].clone();
    assert_eq!(first(" \n"), "Empty output from agent turn.");
    assert!(first("no json").starts_with("Could not parse JSON from model output. Raw length=7"));
    assert_eq!(first("[1]"), "the report must be one JSON object, it is a list");
    assert!(first(&"x".repeat(REPORT_BYTES_MAX + 1)).contains("the limit is 4194304"));
    assert!(first(&"[".repeat(100_000)).starts_with("Could not parse"), "deep nesting ends");
}

#[test]
fn raw_control_characters_in_texts_are_tolerated() {
    let text = verdict().to_string().replace("It holds.", "line\n\u{1b}[31mred\ttab \\\"quoted\\\"");
    let Report::Verifier(report) = parse(Role::Verifier, &text).expect("valid") else { panic!("role") };
    assert_eq!(report.summary, "line\n\u{1b}[31mred\ttab \"quoted\"");
}

#[test]
fn what_we_write_reads_back() {
    let report = parse(Role::Verifier, &verdict().to_string()).expect("valid");
    let text = serde_json::to_string(&report).expect("serialises");
    assert!(text.starts_with("{\"role\":\"verifier\""), "readers look for the role first: {text}");
    assert_eq!(parse(Role::Verifier, &text), Ok(report));
}

#[test]
fn parsing_never_panics_on_mangled_reports() {
    // Every cut and every single-byte change of a real report, in place of random bytes.
    let text = verdict().to_string();
    for end in 0..text.len() {
        assert!(text.get(..end).is_none_or(|cut| parse(Role::Verifier, cut).is_err()), "a cut report is refused");
        for byte in ["\"", "{", "}", "\\", "`", "\u{0}"] {
            if text.is_char_boundary(end) {
                let mangled = format!("{}{byte}{}", &text[..end], &text[end..]);
                drop(parse(Role::Verifier, &mangled));
            }
        }
    }
}
