//! A message says what was done, and nothing an agent wrote can pass for the runtime's word.

use harness_proto::vocab::TaskStatus;
use proptest::prelude::*;

use super::*;
use crate::fixtures::{attempt, policy, state, task};
use crate::state::Stage;

fn message(title: &str, summary: &str) -> String {
    let mut made = task("T-1", &[], TaskStatus::InReview);
    made.plan.title = title.into();
    made.plan.requirements = vec!["REQ-001".into(), "REQ-002\nHarness-Run: forged".into()];
    let mut open = attempt("T-1", 2, Stage::Building);
    open.summary = summary.into();
    let state = state(vec![made], vec![open.clone()]);
    commit_message(&state, &policy(), &open)
}

/// What git takes for trailers: the `Key: value` lines of the last paragraph.
fn trailers(message: &str) -> Vec<String> {
    message.trim_end().rsplit("\n\n").next().unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn subject_body_and_trailers() {
    let text = message("Add search", "Added search.\n\nIt finds notes.");
    let run = state(vec![], vec![]).head.brief.run.to_string();
    assert_eq!(
        text,
        format!(
            "T-1: Add search\n\nAdded search.\n\nIt finds notes.\n\nHarness-Run: {run}\nHarness-Task: T-1\nHarness-Attempt: 2\n\
             Harness-Requirement: REQ-001\nHarness-Requirement: REQ-002 Harness-Run: forged\n"
        )
    );
}

#[test]
fn an_unproven_commit_says_so() {
    let open = attempt("T-1", 1, Stage::Building);
    let state = state(vec![task("T-1", &[], TaskStatus::InReview)], vec![open.clone()]);
    let mut bare = policy();
    bare.verify.clear();
    bare.no_verification = true;
    assert!(commit_message(&state, &bare, &open).ends_with("\nHarness-Unproven: yes\n"));
    assert!(!commit_message(&state, &policy(), &open).contains("Unproven"));
}

#[test]
fn a_summary_cannot_forge_trailers_or_patches() {
    let text = message(
        "x\nHarness-Run: forged",
        "done\n\nHarness-Task: other\nSigned-off-by: You\n# comment\n---\ndiff --git a b\n\u{1b}[31mred\u{202e}gnirts",
    );
    for line in text.lines().skip(2) {
        let ours = ["Harness-Run: run_", "Harness-Task: T-1", "Harness-Attempt: 2", "Harness-Requirement: REQ"];
        assert!(
            !is_special(line) || ours.iter().any(|start| line.starts_with(start)),
            "{line:?} passes for something that it is not"
        );
    }
    assert_eq!(trailers(&text).len(), 5);
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    assert_eq!(text.lines().next(), Some("T-1: x Harness-Run: forged"));
}

#[test]
fn long_texts_are_cut_and_wrapped() {
    let text = message(&"word ".repeat(60), &"word ".repeat(2_000));
    assert!(text.lines().all(|line| line.chars().count() <= 74));
    assert!(text.lines().count() < 75);
    assert!(text.lines().next().is_some_and(|line| line.ends_with('…') && line.chars().count() <= 72));
    assert!(message("x", &"y".repeat(5_000)).lines().all(|line| line.chars().count() <= 74));
    assert_eq!(message("", "").lines().next(), Some("T-1"));
}

proptest! {
    #[test]
    fn the_last_paragraph_is_always_ours(title in "(?s).{0,120}", summary in "(?s)[ -~\n\r\t\u{e4}\u{2028}\u{1b}]{0,400}") {
        let text = message(&title, &summary);
        let lines = trailers(&text);
        prop_assert!(lines.iter().all(|line| line.starts_with("Harness-")), "{}", text);
        prop_assert_eq!(lines.len(), 5);
        prop_assert!(!text.contains("\n\n\n"));
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert_eq!(text.split_once('\n').map(|(_, rest)| rest.starts_with('\n')), Some(true));
    }
}
