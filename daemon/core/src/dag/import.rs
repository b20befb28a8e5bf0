//! A new revision of the plan, checked against what the store knows (DESIGN 4; S4-021, S4-033).

use std::collections::{BTreeMap, BTreeSet};

use harness_proto::ids::TaskId;
use harness_proto::plan::PlannedTask;
use harness_proto::vocab::{Switch, TaskStatus};

use super::graph::{check, digest};
use super::read::{Errors, FilePlan, FileTask, read};
use crate::policy::Policy;
use crate::state::Task;

/// Who wrote the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportSource {
    /// A planner turn.
    Planner,
    /// A human, in a running run.
    User,
    /// It stood there when the run was started.
    Found,
}

impl ImportSource {
    /// The word in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::User => "user",
            Self::Found => "found",
        }
    }
}

/// A plan that may be taken over as it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// The revision that it becomes.
    pub revision: i64,
    /// Every task, unchanged and kept ones too, in id order. `status` is the stored plan's for a task that the run has, so that an
    /// equal task is an unchanged one; what happens to statuses is in `closed`, `removed` and `requeued`.
    pub tasks: Vec<PlannedTask>,
    /// Tasks that are new.
    pub added: Vec<TaskId>,
    /// Tasks whose plan changed.
    pub updated: Vec<TaskId>,
    /// Tasks that the plan closed, and how. `done` only for new tasks of a found plan, taken at its word.
    pub closed: Vec<(TaskId, TaskStatus)>,
    /// Tasks that the file no longer has: their rows stay, superseded.
    pub removed: Vec<TaskId>,
    /// Failed, blocked or timed-out tasks that the plan puts back.
    pub requeued: Vec<TaskId>,
    /// [`crate::dag::topology_digest`] of `tasks`.
    pub topology_digest: String,
}

impl Import {
    /// Whether anything differs from what the store has.
    #[must_use]
    pub fn changes_anything(&self) -> bool {
        !self.closed.is_empty()
            || [&self.added, &self.updated, &self.removed, &self.requeued].iter().any(|list| !list.is_empty())
    }
}

/// Checks the text of a `tasks.json` against the current tasks.
///
/// # Errors
/// Every reason why it cannot be taken, each naming its task; the predecessor's messages come alone and first.
pub fn import(
    current: &BTreeMap<TaskId, Task>,
    text: &str,
    source: ImportSource,
    policy: &Policy,
    revision: i64,
) -> Result<Import, Vec<String>> {
    apply(current, read(text)?, source, policy, revision)
}

/// The same for a plan that was read (and merged) already.
pub(super) fn apply(
    current: &BTreeMap<TaskId, Task>,
    plan: FilePlan,
    source: ImportSource,
    policy: &Policy,
    revision: i64,
) -> Result<Import, Vec<String>> {
    let mut errors = Errors::default();
    let mut import = Import {
        revision,
        tasks: Vec::with_capacity(plan.tasks.len()),
        added: Vec::new(),
        updated: Vec::new(),
        closed: Vec::new(),
        removed: Vec::new(),
        requeued: Vec::new(),
        topology_digest: String::new(),
    };
    let folded: BTreeMap<String, &TaskId> = current.keys().map(|id| (id.as_str().to_ascii_lowercase(), id)).collect();
    let names: BTreeSet<TaskId> = plan.tasks.iter().map(|file| file.task.id.clone()).collect();
    for file in plan.tasks {
        if let Some(other) = folded.get(&file.task.id.as_str().to_ascii_lowercase())
            && **other != file.task.id
        {
            let id = &file.task.id;
            errors.push(format!("task id `{id}` differs only in case from `{other}`, which the run had before"));
            continue;
        }
        let planned = match current.get(&file.task.id) {
            None => added(file, current, source, policy, &mut import, &mut errors),
            Some(task) => existing(file, task, source, &mut import, &mut errors),
        };
        import.tasks.push(planned);
    }
    check(&import.tasks, &current.keys().collect(), &mut errors);
    reopened(&import, current, &mut errors);
    let closed = |id: &TaskId| {
        import.closed.iter().any(|(closed, _)| closed == id)
            || current.get(id).is_some_and(|task| task.status.is_closed()) && !import.requeued.contains(id)
    };
    provable(&import.tasks, policy, closed, &mut errors);
    for (id, task) in current.iter().filter(|(id, _)| !names.contains(*id)) {
        removed(id, task, &mut import, &mut errors);
        import.tasks.push(task.plan.clone());
    }
    import.tasks.sort_by(|a, b| a.id.cmp(&b.id));
    let mut closed: BTreeSet<&TaskId> = import.removed.iter().collect();
    closed.extend(import.closed.iter().filter(|(_, how)| *how != TaskStatus::Done).map(|(id, _)| id));
    let gone = |id: &TaskId| {
        let stored = current.get(id).is_some_and(|task| task.status.is_closed() && task.status != TaskStatus::Done);
        closed.contains(id) || (stored && !import.requeued.contains(id))
    };
    import.topology_digest = digest(import.tasks.iter().map(|task| (task, gone(&task.id))));
    errors.into_result(import)
}

/// A task that was left out is not put back below work that has begun without it.
fn reopened(import: &Import, current: &BTreeMap<TaskId, Task>, errors: &mut Errors) {
    let closed = |id: &&TaskId| current.get(*id).is_some_and(|task| task.status.is_closed());
    for id in import.requeued.iter().filter(closed) {
        let begun = |task: &&Task| {
            matches!(task.status, TaskStatus::InProgress | TaskStatus::InReview | TaskStatus::Done)
                && task.plan.dependencies.contains(id)
        };
        if let Some(task) = current.values().find(begun) {
            errors.push(format!(
                "task `{id}` cannot be put back: `{}` depends on it and is {}",
                task.plan.id, task.status
            ));
        }
    }
}

/// A plan without any command proves nothing (DESIGN 8).
fn provable(tasks: &[PlannedTask], policy: &Policy, closed: impl Fn(&TaskId) -> bool, errors: &mut Errors) {
    if policy.no_verification || !policy.verify.is_empty() {
        return;
    }
    for task in tasks.iter().filter(|task| task.verification.is_empty() && !closed(&task.id)) {
        errors.push(format!(
            "task `{}` has no `verification` and the launch names no `--verify`: nothing could prove it",
            task.id
        ));
    }
}

fn added(
    file: FileTask,
    current: &BTreeMap<TaskId, Task>,
    source: ImportSource,
    policy: &Policy,
    import: &mut Import,
    errors: &mut Errors,
) -> PlannedTask {
    let mut task = file.task;
    let id = &task.id;
    let repairs = task
        .repair_target
        .as_ref()
        .and_then(|target| current.get(target))
        .is_some_and(|target| !target.integration_conflict.is_null());
    let expansion = source == ImportSource::Planner && policy.expansion == Switch::Disabled && !current.is_empty();
    if expansion && !repairs {
        errors.push(format!(
            "task `{id}` is new, and this run does not allow new tasks except repairs of a conflicted task (`repair_target_task_id`)"
        ));
    }
    import.added.push(id.clone());
    let (wish, id) = (task.status, task.id.clone());
    task.status = TaskStatus::Pending;
    match (wish, source) {
        (TaskStatus::Done, ImportSource::Planner | ImportSource::User) => {
            errors.push(format!("task `{id}` is new and cannot be `done`: only an accepted commit makes a task done"));
        }
        (TaskStatus::Cancelled, ImportSource::Planner) => {
            errors.push(format!("task `{id}`: only the user cancels; use `skipped` or `superseded`"));
        }
        (TaskStatus::Done | TaskStatus::Skipped | TaskStatus::Superseded | TaskStatus::Cancelled, _) => {
            import.closed.push((id, wish))
        }
        // Where an attempt of somebody else's run stood means nothing here: the task begins anew.
        (
            TaskStatus::Pending
            | TaskStatus::Ready
            | TaskStatus::InProgress
            | TaskStatus::InReview
            | TaskStatus::Blocked
            | TaskStatus::Failed
            | TaskStatus::TimedOut,
            _,
        ) => {}
    }
    task
}

fn existing(
    file: FileTask,
    task: &Task,
    source: ImportSource,
    import: &mut Import,
    errors: &mut Errors,
) -> PlannedTask {
    let FileTask { task: mut planned, given } = file;
    let fixed = matches!(task.status, TaskStatus::InProgress | TaskStatus::InReview | TaskStatus::Done);
    if fixed {
        inherit(&mut planned, &given, &task.plan);
        for member in changed_members(&planned, &task.plan) {
            errors.push(format!(
                "task `{}` is {} and its `{member}` cannot be changed; add a new task instead",
                planned.id, task.status
            ));
        }
    }
    let wish = planned.status;
    planned.status = task.plan.status;
    if planned != task.plan {
        import.updated.push(planned.id.clone());
    }
    wished_status(&planned.id, task.status, wish, source, import, errors);
    planned
}

/// A planner that rewrites the file in the predecessor's form leaves our optional members out; on a task that cannot be
/// changed any more that is no wish to change it.
fn inherit(planned: &mut PlannedTask, given: &BTreeSet<&'static str>, kept: &PlannedTask) {
    if !given.contains("verification") {
        planned.verification.clone_from(&kept.verification);
    }
    if !given.contains("setup") {
        planned.setup.clone_from(&kept.setup);
    }
    if !given.contains("requirements") {
        planned.requirements.clone_from(&kept.requirements);
    }
    if !given.contains("files_touched") {
        planned.files_touched.clone_from(&kept.files_touched);
    }
    if planned.repair_target.is_none() {
        planned.repair_target.clone_from(&kept.repair_target);
    }
}

/// Members that a started or done task must keep; title, priority and unknown members may change.
pub(super) fn changed_members(new: &PlannedTask, old: &PlannedTask) -> Vec<&'static str> {
    let sorted = |task: &PlannedTask| task.dependencies.iter().cloned().collect::<BTreeSet<TaskId>>();
    [
        ("description", new.description != old.description),
        ("acceptance_criteria", new.acceptance_criteria != old.acceptance_criteria),
        ("dependencies", sorted(new) != sorted(old)),
        ("verification", new.verification != old.verification),
        ("setup", new.setup != old.setup),
        ("requirements", new.requirements != old.requirements),
        ("files_touched", new.files_touched != old.files_touched),
        ("repair_target_task_id", new.repair_target != old.repair_target),
    ]
    .into_iter()
    .filter_map(|(name, differs)| differs.then_some(name))
    .collect()
}

/// What a file's status asks for an existing task: the store's stays, except where the plan puts it back or closes it. A human's
/// file may be a moment behind the store, so there an open status of a task that is done meanwhile asks for nothing.
fn wished_status(
    id: &TaskId,
    now: TaskStatus,
    wish: TaskStatus,
    source: ImportSource,
    import: &mut Import,
    errors: &mut Errors,
) {
    use TaskStatus::{
        Blocked, Cancelled, Done, Failed, InProgress, InReview, Pending, Ready, Skipped, Superseded, TimedOut,
    };
    let human = source == ImportSource::User;
    let put_back = matches!(wish, Pending | Ready);
    let closing = matches!(wish, Skipped | Superseded | Cancelled);
    match now {
        _ if now == wish => {}
        Done if closing || (put_back && !human) => {
            errors.push(format!("task `{id}` is done and cannot become `{wish}`; add a new task instead"));
        }
        InProgress | InReview if closing => {
            errors.push(format!("task `{id}` is {now} and cannot be closed by the plan: run `harnessctl skip {id}`"));
        }
        Done => {}
        Pending | Ready | InProgress | InReview | Blocked | Failed | TimedOut if wish == Done => {
            errors.push(format!(
                "task `{id}` is {now} and cannot be set `done`: only an accepted commit does that; `skipped` or `superseded` close it"
            ));
        }
        Pending | Ready | Blocked | Failed | TimedOut if wish == Cancelled && !human => {
            errors.push(format!("task `{id}`: only the user cancels; use `skipped` or `superseded`"));
        }
        Pending | Ready | Blocked | Failed | TimedOut if closing => import.closed.push((id.clone(), wish)),
        Blocked | Failed | TimedOut if put_back => import.requeued.push(id.clone()),
        Skipped | Superseded | Cancelled if put_back && human => import.requeued.push(id.clone()),
        Skipped | Superseded | Cancelled if put_back || wish == Done => {
            errors.push(format!("task `{id}` is {now} and stays so; give new work a new id"));
        }
        Pending | Ready | InProgress | InReview | Blocked | Failed | TimedOut | Skipped | Superseded | Cancelled => {}
    }
}

fn removed(id: &TaskId, task: &Task, import: &mut Import, errors: &mut Errors) {
    match task.status {
        TaskStatus::Done | TaskStatus::InProgress | TaskStatus::InReview => {
            errors.push(format!("task `{id}` is {} and cannot be removed from the plan", task.status));
        }
        TaskStatus::Pending | TaskStatus::Ready | TaskStatus::Blocked | TaskStatus::Failed | TaskStatus::TimedOut => {
            import.removed.push(id.clone())
        }
        TaskStatus::Skipped | TaskStatus::Superseded | TaskStatus::Cancelled => {}
    }
}
