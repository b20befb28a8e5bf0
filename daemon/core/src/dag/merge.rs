//! A human's edit of `tasks.json`: topology from the human, status from the store (DESIGN 4).

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::vocab::TaskStatus;
use serde_json::Value;

use super::import::{Import, ImportSource, apply, changed_members};
use super::read::{FilePlan, FileTask, read};
use super::render::render_task;
use crate::policy::Policy;
use crate::state::Task;

/// Most lines of one task's diff.
const DIFF_LINES_MAX: usize = 60;

/// Merges three ways: `current` is what the store has, `last_written_text` what the runtime wrote into the file last (empty when
/// it wrote none), `text` what stands there now. A task that the human left alone is taken from the store; a status counts as a
/// wish only where the human changed it.
///
/// # Errors
/// As [`super::import`], or, where the human changed a task (or an older revision) that changed in the store too, a readable
/// diff for each such task.
pub fn merge_user_edit(
    current: &BTreeMap<TaskId, Task>,
    text: &str,
    last_written_text: &str,
    policy: &Policy,
    revision: i64,
) -> Result<Import, Vec<String>> {
    let edited = read(text)?;
    let base = match read(last_written_text) {
        Ok(plan) if !last_written_text.is_empty() => plan,
        // What we wrote last is unknown: then the store is the only thing to compare with.
        _ => FilePlan { revision: edited.revision, tasks: current.values().map(as_file).collect() },
    };
    let stale = edited.revision < base.revision;
    let base_tasks: BTreeMap<&TaskId, &FileTask> = base.tasks.iter().map(|file| (&file.task.id, file)).collect();
    let mut conflicts = Vec::new();
    let mut merged = Vec::with_capacity(edited.tasks.len());
    for file in &edited.tasks {
        let id = &file.task.id;
        let (theirs, ours) = (base_tasks.get(id), current.get(id));
        let by_human = theirs.is_none_or(|theirs| differs(&file.task, &theirs.task));
        let by_store = match (theirs, ours) {
            (Some(theirs), Some(ours)) => differs(&theirs.task, &ours.plan),
            (None, None) => false,
            (None, Some(_)) | (Some(_), None) => true,
        };
        let apart = ours.is_some_and(|ours| differs(&file.task, &ours.plan));
        if apart && by_human && (by_store || stale) {
            conflicts.push(conflict(id, ours, Some(file)));
        }
        merged.push(take(file, theirs.copied(), ours, by_human));
    }
    let names: BTreeSet<&TaskId> = edited.tasks.iter().map(|file| &file.task.id).collect();
    for (id, task) in current.iter().filter(|(id, _)| !names.contains(id)) {
        match base_tasks.get(id) {
            // It came into the store after the human's base: not removed by the human.
            None => merged.push(as_file(task)),
            Some(theirs) if stale || differs(&theirs.task, &task.plan) => {
                if !task.status.is_closed() {
                    conflicts.push(conflict(id, Some(task), None));
                }
            }
            Some(_) => {}
        }
    }
    if !conflicts.is_empty() {
        if stale {
            conflicts.insert(
                0,
                format!(
                    "tasks.json was edited from revision {}, the plan is at revision {}; edit the current file again",
                    edited.revision, base.revision
                ),
            );
        }
        return Err(conflicts);
    }
    apply(current, FilePlan { revision: edited.revision, tasks: merged }, ImportSource::User, policy, revision)
}

/// Whether two forms of a task ask for different things; statuses and runtime members do not count.
fn differs(a: &PlannedTask, b: &PlannedTask) -> bool {
    a.title != b.title || a.priority != b.priority || a.extra != b.extra || !changed_members(a, b).is_empty()
}

fn take(file: &FileTask, theirs: Option<&FileTask>, ours: Option<&Task>, by_human: bool) -> FileTask {
    let wish = theirs.is_none_or(|theirs| theirs.task.status != file.task.status);
    let mut taken = match ours {
        Some(ours) if !by_human => as_file(ours),
        _ => file.clone(),
    };
    if let Some(ours) = ours {
        taken.task.status = if wish { file.task.status } else { ours.status };
        // `ready` and `pending` follow from the dependencies; a file that is behind says nothing by them.
        let open = |status| matches!(status, TaskStatus::Pending | TaskStatus::Ready);
        if theirs.is_some_and(|theirs| open(theirs.task.status) && open(file.task.status)) {
            taken.task.status = ours.status;
        }
    }
    taken
}

fn as_file(task: &Task) -> FileTask {
    let mut planned = task.plan.clone();
    planned.status = task.status;
    FileTask { task: planned, given: BTreeSet::from(["verification", "setup", "requirements", "files_touched"]) }
}

/// A diff of one task: `-` is the plan of the run, `+` is the edited file.
fn conflict(id: &TaskId, ours: Option<&Task>, file: Option<&FileTask>) -> String {
    let member_lines = |value: Option<Value>| -> BTreeMap<String, String> {
        let Some(Value::Object(map)) = value else {
            return BTreeMap::new();
        };
        map.into_iter().filter(|(name, _)| !is_runtime(name)).map(|(k, v)| (k, v.to_string())).collect()
    };
    let old = member_lines(ours.map(render_task));
    let new = member_lines(file.map(|file| {
        let mut task = ours.cloned().unwrap_or_else(|| blank(&file.task));
        task.plan = file.task.clone();
        render_task(&task)
    }));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let mut lines = vec![
        format!("task `{id}` was changed in the file and in the run:"),
        "--- run".to_owned(),
        "+++ file".to_owned(),
    ];
    for name in names {
        let (before, after) = (old.get(name), new.get(name));
        if before == after {
            continue;
        }
        let cut = |text: &String| text.chars().take(300).collect::<String>();
        lines.extend(before.map(|text| format!("-  \"{name}\": {}", cut(text))));
        lines.extend(after.map(|text| format!("+  \"{name}\": {}", cut(text))));
    }
    lines.truncate(DIFF_LINES_MAX);
    lines.join("\n")
}

fn is_runtime(name: &str) -> bool {
    matches!(
        name,
        "status"
            | "attempts"
            | "last_attempt_commit"
            | "last_verdict"
            | "last_integrated_commit"
            | "blocked_reason"
            | "integration_conflict"
            | "resolved_by_task_id"
    )
}

fn blank(plan: &PlannedTask) -> Task {
    Task {
        plan: plan.clone(),
        status: plan.status,
        attempts: 0,
        attempts_max: 0,
        last_attempt_commit: String::new(),
        last_verdict: None,
        integrated_commit: String::new(),
        blocked_reason: String::new(),
        integration_conflict: Value::Null,
        resolved_by: None,
        feedback: crate::state::Feedback::default(),
        signatures: Vec::new(),
        session: None,
        requeues: 0,
        unproven: false,
    }
}
