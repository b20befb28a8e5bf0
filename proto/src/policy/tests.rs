//! Tests of the policy table.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::field::{Built, Field, PRESETS, Preset};
use super::table::{ALIASES, FIELDS, field};
use super::value;
use super::values::{PolicyError, PolicyValues};
use crate::plan::Check;

fn refused(assignment: &str) -> String {
    PolicyValues::of(Preset::Dag).set(assignment).unwrap_err().to_string()
}

#[test]
fn every_default_is_allowed_by_its_own_row() {
    for row in FIELDS {
        let open = Field { built: Built::Yes, ..*row };
        for preset in PRESETS {
            let text = row.defaults[preset.column()];
            assert!(value::from_text(&open, text).is_ok(), "{} {}: {text}", row.key, preset.as_str());
        }
        assert!(value::from_text(row, row.defaults[0]).is_ok(), "the dag value of {} must be available", row.key);
    }
}

#[test]
fn keys_are_unique_and_aliases_lead_to_rows() {
    let mut keys: Vec<&str> = FIELDS.iter().map(|f| f.key).chain(ALIASES.iter().map(|a| a.0)).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), all);
    for (alias, key) in ALIASES {
        assert_eq!(field(alias).unwrap().key, *key);
    }
}

#[test]
fn every_preset_has_values_that_go_together() {
    PolicyValues::of(Preset::Dag).validate().unwrap();
    for preset in PRESETS {
        super::validate::combinations(&PolicyValues::of(preset)).unwrap();
    }
}

#[test]
fn only_dag_can_be_chosen_now() {
    assert!(PolicyValues::preset("dag").is_ok());
    let error = PolicyValues::preset("scored").unwrap_err();
    assert_eq!(error.code(), "NOT_AVAILABLE");
    assert_eq!(error.to_string(), "`profile=scored` is not available yet: available is dag");
    assert_eq!(
        PolicyValues::preset("dags").unwrap_err().to_string(),
        "`dags` is no profile: known are dag, app-builder, sprint, scored"
    );
}

#[test]
fn errors_name_key_value_and_what_is_allowed() {
    assert_eq!(
        refused("evidence.timeout=60"),
        "`evidence.timeout` is no key of the policy: did you mean `evidence.timeout_s`?"
    );
    assert_eq!(refused("max_attempts=2"), "`max_attempts` is no key of the policy: did you mean `retry.max_attempts`?");
    assert_eq!(refused("zzzzzzzz=2"), "`zzzzzzzz` is no key of the policy");
    assert_eq!(refused("land"), "`land` is no KEY=VALUE");
    assert_eq!(refused("land=never"), "`land` cannot be `never`: allowed are each, end, manual");
    assert_eq!(refused("fault.retries=many"), "`fault.retries` must be a whole number from 0 to 100, not `many`");
    assert_eq!(refused("fault.retries=101"), "`fault.retries` cannot be 101: it must be from 0 to 100");
    assert_eq!(refused("retry.max_attempts=0"), "`retry.max_attempts` cannot be 0: it must be from 1 to 100");
    assert_eq!(refused("max_parallel=2"), "`max_parallel=2` is not available yet: available is up to 1");
    assert_eq!(refused("max_parallel=65"), "`max_parallel` cannot be 65: it must be from 1 to 64");
    assert_eq!(
        refused("on_exhausted=skip"),
        "`on_exhausted=skip` is not available yet: available is replan, block, pause"
    );
    assert_eq!(refused("flaky=retry_once"), "`flaky=retry_once` is not available yet: available is off");
    assert_eq!(
        refused("retry.loop_detect=signature:1"),
        "`retry.loop_detect` must be off or signature:N with N from 2 to 100, not `signature:1`"
    );
}

#[test]
fn a_field_that_is_not_built_takes_its_dag_value_only() {
    let mut values = PolicyValues::of(Preset::Dag);
    for row in FIELDS.iter().filter(|f| !f.is_built()) {
        values.set(&format!("{}={}", row.key, row.defaults[0])).unwrap();
    }
    values.validate().unwrap();
    assert!(matches!(values.set("risk.level=Q2"), Err(PolicyError::NotAvailable { .. })));
}

#[test]
fn commands_come_as_text_or_as_objects() {
    let mut values = PolicyValues::of(Preset::Dag);
    values.set("verify=grep -c a,b x.txt").unwrap();
    assert_eq!(values.checks("verify"), [Check::shell("grep -c a,b x.txt")]);
    values.set("verify=[ -f x ]").unwrap();
    assert_eq!(values.checks("verify"), [Check::shell("[ -f x ]")]);
    values
        .set(r#"verify=["make", {"argv": ["cargo", "test"], "timeout_s": 5, "env": {"A": "b"}, "cwd": "sub"}]"#)
        .unwrap();
    let checks = values.checks("verify");
    assert_eq!((checks.len(), checks[1].timeout_s, checks[1].env.len()), (2, Some(5), 1));
    for bad in [
        r#"["a", ""]"#,
        r#"[{"cmd": "a", "argv": ["b"]}]"#,
        r#"[{"cmd": "a", "cwd": "../x"}]"#,
        r#"[{"cmd": "a", "tmo": 1}]"#,
    ] {
        assert!(values.set(&format!("setup={bad}")).is_err(), "{bad}");
    }
}

#[test]
fn stored_values_of_an_older_version_get_defaults() {
    let stored = [("land".to_owned(), json!("manual")), ("verify".to_owned(), json!(["make test"]))].into();
    let values = PolicyValues::from_stored(&stored).unwrap();
    assert_eq!((values.text("land"), values.int("retry.max_attempts"), values.loop_limit()), ("manual", 3, 3));
    let text = serde_json::to_string(&values).unwrap();
    assert_eq!(serde_json::from_str::<PolicyValues>(&text).unwrap(), values);
}

#[test]
fn contradictions_are_refused() {
    let mut values = PolicyValues::of(Preset::Dag);
    values.set("agent=openai").unwrap();
    assert!(values.validate().unwrap_err().to_string().contains("edits=file_map"));
    let mut values = PolicyValues::of(Preset::Dag);
    values.set("agent.env=GOOD,1BAD").unwrap();
    assert!(values.validate().unwrap_err().to_string().contains("1BAD"));
    let mut values = PolicyValues::of(Preset::Dag);
    values.set("agent.verifier=command:").unwrap();
    assert!(values.validate().is_err());
}

#[test]
fn the_page_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/policy.md");
    if std::env::var_os("HARNESS_BLESS").is_some() {
        std::fs::write(path, super::markdown()).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        page,
        super::markdown(),
        "docs/policy.md differs from the table: HARNESS_BLESS=1 cargo test -p harness-proto policy"
    );
}
