//! What a human's edit of `tasks.json` becomes.

use std::collections::BTreeMap;

use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::TaskStatus;
use serde_json::{Value, json};

use super::tests::entry;
use super::*;
use crate::fixtures::{by_id, id, policy, task};
use crate::state::Task;

fn written(current: &BTreeMap<TaskId, Task>, revision: i64) -> Value {
    render_tasks_json("g", revision, current, Millis(0), Millis(0))
}

#[test]
fn topology_is_the_humans_status_is_the_stores() {
    let mut current = by_id(vec![task("A", &[], TaskStatus::Ready), task("B", &["A"], TaskStatus::Pending)]);
    let base = written(&current, 1);
    let mut edited = base.clone();
    edited["tasks"][1]["title"] = json!("Better");
    edited["tasks"].as_array_mut().expect("list").push(entry("C", &["B"], "pending"));
    // Meanwhile the store went on.
    current.get_mut(&id("A")).expect("there").status = TaskStatus::Done;
    let merged = merge_user_edit(&current, &edited.to_string(), &base.to_string(), &policy(), 2).expect("merges");
    assert_eq!((merged.added, merged.updated), (vec![id("C")], vec![id("B")]));
    assert!(merged.requeued.is_empty() && merged.removed.is_empty() && merged.closed.is_empty());
}

#[test]
fn a_task_that_both_changed_is_refused_with_a_diff() {
    let mut current = by_id(vec![task("A", &[], TaskStatus::Ready)]);
    let base = written(&current, 1);
    let mut edited = base.clone();
    edited["tasks"][0]["description"] = json!("The human's words");
    current.get_mut(&id("A")).expect("there").plan.description = "The planner's words".into();
    let found = merge_user_edit(&current, &edited.to_string(), &base.to_string(), &policy(), 2).expect_err("refused");
    assert_eq!(
        found,
        [
            "task `A` was changed in the file and in the run:\n--- run\n+++ file\n-  \"description\": \"The planner's words\"\n+  \"description\": \"The human's words\""
        ]
    );
}

#[test]
fn an_edit_of_an_older_revision_is_refused_only_where_it_would_undo_something() {
    let old = written(&by_id(vec![task("A", &[], TaskStatus::Ready)]), 1);
    let mut current = by_id(vec![task("A", &[], TaskStatus::Ready)]);
    let same = written(&current, 2);
    assert!(merge_user_edit(&current, &old.to_string(), &same.to_string(), &policy(), 3).is_ok());
    current.get_mut(&id("A")).expect("there").plan.description = "New".into();
    let now = written(&current, 2);
    let found = merge_user_edit(&current, &old.to_string(), &now.to_string(), &policy(), 3).expect_err("refused");
    assert!(found[0].contains("edited from revision 1, the plan is at revision 2"), "{found:?}");
    assert!(found[1].contains("-  \"description\": \"New\""));
}

#[test]
fn a_human_may_put_back_close_and_remove() {
    let current = by_id(vec![
        task("A", &[], TaskStatus::Failed),
        task("B", &[], TaskStatus::Ready),
        task("C", &[], TaskStatus::Ready),
    ]);
    let base = written(&current, 1);
    let mut edited = base.clone();
    edited["tasks"][0]["status"] = json!("ready");
    edited["tasks"][1]["status"] = json!("skipped");
    edited["tasks"].as_array_mut().expect("list").pop();
    let merged = merge_user_edit(&current, &edited.to_string(), &base.to_string(), &policy(), 2).expect("merges");
    assert_eq!(merged.requeued, [id("A")]);
    assert_eq!(merged.closed, [(id("B"), TaskStatus::Skipped)]);
    assert_eq!(merged.removed, [id("C")]);
}

#[test]
fn a_task_that_came_in_meanwhile_is_not_removed_by_an_older_file() {
    let base = written(&by_id(vec![task("A", &[], TaskStatus::Ready)]), 1);
    let current = by_id(vec![task("A", &[], TaskStatus::Ready), task("N", &[], TaskStatus::Ready)]);
    let mut edited = base.clone();
    edited["tasks"][0]["title"] = json!("Better");
    let merged = merge_user_edit(&current, &edited.to_string(), &base.to_string(), &policy(), 2).expect("merges");
    assert_eq!((merged.updated, merged.removed), (vec![id("A")], vec![]));
}

#[test]
fn a_skipped_task_is_not_reopened_below_work_that_was_built_on_it() {
    let current = by_id(vec![task("A", &[], TaskStatus::Skipped), task("B", &["A"], TaskStatus::InProgress)]);
    let base = written(&current, 1);
    let mut edited = base.clone();
    edited["tasks"][0]["status"] = json!("ready");
    let found = merge_user_edit(&current, &edited.to_string(), &base.to_string(), &policy(), 2).expect_err("refused");
    assert_eq!(found, ["task `A` cannot be put back: `B` depends on it and is in_progress"]);
}
