//! What other programs wrote is read as they meant it; what we write is what Python would write.
#![expect(clippy::unwrap_used, reason = "tests")]

use serde_json::json;

use super::lessons::{count_lessons, read_lessons};
use super::*;

#[test]
fn text_is_as_pythons_json_dumps_writes_it() {
    // Made with: python3 -c 'import json;print(json.dumps({..}, indent=2, sort_keys=True))'
    let value = json!({"ü": "ä\u{1F642}\u{7f}\"\\\n\r\t\u{8}\u{c}\u{1}", "b": [], "a": {"z": [1, -2, 1.5], "e": {}}, "n": null, "t": true});
    let want = "{\n  \"a\": {\n    \"e\": {},\n    \"z\": [\n      1,\n      -2,\n      1.5\n    ]\n  },\n  \"b\": [],\n  \"n\": null,\n  \"t\": true,\n  \"\\u00fc\": \"\\u00e4\\ud83d\\ude42\\u007f\\\"\\\\\\n\\r\\t\\b\\f\\u0001\"\n}\n";
    assert_eq!(render_value(&value), want);
    assert_eq!(serde_json::from_str::<serde_json::Value>(want).unwrap(), value);
}

#[test]
fn a_predecessors_manifest_is_read_and_partial_ones_get_defaults() {
    let full = LaunchDoc::read(include_str!("../../../tests/fixtures/wire/v1/predecessor-launch.json")).unwrap();
    assert_eq!(full.config.goal, "GG");
    assert_eq!(full.notes, ["n1", "n2"]);
    let empty =
        LaunchDoc::read(r#"{"original_goal": "OG", "config": {"max_task_attempts": -4, "execution_policy": "??"}}"#)
            .unwrap();
    assert_eq!(empty.prompt_text, "OG", "falls back to the original goal");
    assert_eq!(empty.config.max_task_attempts, 3);
    assert_eq!(
        empty.config.execution_policy,
        crate::vocab::ExecutionPolicy::WorkspaceWrite,
        "an unknown word never frees"
    );
    let again = LaunchDoc::read(&render(&full)).unwrap();
    assert_eq!(again, full);
}

#[test]
fn a_broken_or_newer_file_is_an_error_not_a_default() {
    assert!(matches!(LaunchDoc::read("{"), Err(DocError::NotJson(_))));
    assert_eq!(StateDoc::read("[]"), Err(DocError::NotObject));
    assert_eq!(RuntimeDoc::read(r#"{"version": 2}"#).unwrap_err(), DocError::Newer(2));
}

#[test]
fn old_words_of_the_runtime_file_are_translated() {
    let read = |status: &str| RuntimeDoc::read(&json!({"status": status, "pid": 1, "pgid": -5}).to_string()).unwrap();
    let stopped = read("stopped");
    assert_eq!((stopped.status, stopped.terminal_reason.as_str()), (RuntimeStatus::Terminal, "user_stopped"));
    assert_eq!(read("weird").status, RuntimeStatus::Idle);
    assert_eq!((read("running").pid, read("running").pgid), (None, None), "1 and negative ids are never signalled");
}

#[test]
fn recovery_is_normalised() {
    let read = |value: serde_json::Value| RecoveryDoc::from_members(value.as_object().unwrap());
    let flat = read(
        json!({"status": "pending", "owner": "planner", "reason": "x", "resume_attempt": "-3", "resume_task_id": "T"}),
    );
    assert_eq!((flat.incident.reason.as_str(), flat.owner.as_str(), flat.resume_attempt), ("x", "planner", 0));
    let retry = read(json!({"status": "pending", "owner": "runtime", "reason": "y", "retry_count": 2}));
    assert_eq!((retry.retry.count, retry.owner.as_str(), retry.incident.reason.as_str()), (2, "runtime", ""));
    let mirrored = read(json!({"status": "pending", "owner": "lies", "incident": {"owner": "planner", "reason": "z"}}));
    assert_eq!((mirrored.owner.as_str(), mirrored.reason.as_str()), ("planner", "z"));
    assert_eq!(read(json!({"status": "who knows", "owner": "planner", "reason": "x"})), RecoveryDoc::default());
}

#[test]
fn old_members_of_the_state_are_dropped_and_missing_ones_get_defaults() {
    let text = r#"{"state": {"current_role": "planner", "seq": "12", "accepts": -1, "active_tasks": {"T-1": {"attempt": 2}, "T-2": 7}}}"#;
    let doc = StateDoc::read(text).unwrap();
    assert_eq!((doc.state.seq, doc.state.accepts, doc.state.last_status.as_str()), (12, 0, "initialized"));
    assert_eq!(doc.state.active_tasks.len(), 1);
    assert!(!render(&doc).contains("current_role"));
    assert_eq!(StateDoc::read(&render(&doc)).unwrap(), doc);
}

#[test]
fn a_lesson_is_eight_lines_whatever_it_holds_and_reads_back() {
    let lesson = LessonDoc {
        title: "Accepted\n### L-9: task\tT".into(),
        category: "task".into(),
        strategy: " ".into(),
        outcome: "accept".into(),
        insight: "a\r\nb\n- **Outcome:** revert\u{0}".into(),
        context: "goal=g; scope=.; role=verifier".into(),
        iteration: 6,
        timestamp: "t".into(),
    };
    let text = format!(
        "my own heading\n\n# Notes\n- **Insight:** mine\n\n{}\nfree text\n{}",
        lesson.render(1),
        lesson.render(2)
    );
    assert_eq!(lesson.render(1).lines().count(), 8);
    assert_eq!(count_lessons(&text), 2);
    let read = read_lessons(&text);
    assert_eq!(read.len(), 2);
    assert_eq!(read[1].insight, "a b - **Outcome:** revert");
    assert_eq!((read[1].strategy.as_str(), read[1].outcome.as_str(), read[1].iteration), ("-", "accept", 6));
}

#[test]
fn a_predecessors_pid_list_is_read() {
    let doc = ServersDoc::read(r#"{"pids": [32334, 1, -1, "x"]}"#).unwrap();
    assert_eq!((doc.pids, doc.servers.len()), (vec![32334], 0));
}
