//! From the text of `tasks.json` to tasks: the predecessor's messages first, then the rules it did not have.

use std::collections::BTreeSet;

use harness_proto::ids::TaskId;
use harness_proto::plan::{Check, DEFAULT_PRIORITY, PLAN_VERSION, PlannedTask};
use harness_proto::vocab::TaskStatus;
use serde_json::{Map, Value};

use super::check::{check_from_value, escaping_path};
use super::text::{kind, quoted, shown};

/// Longest `tasks.json`, in bytes.
pub const PLAN_BYTES_MAX: usize = 16 << 20;
/// Most tasks of a plan.
pub const TASKS_MAX: usize = 10_000;
const CRITERIA_MAX: usize = 1_000;
const CHECKS_MAX: usize = 200;
const FILES_MAX: usize = 10_000;
const TITLE_CHARS_MAX: usize = 300;
const CRITERION_BYTES_MAX: usize = 16 << 10;
const DESCRIPTION_BYTES_MAX: usize = 256 << 10;
/// Most errors that are listed.
const ERRORS_MAX: usize = 50;

/// A JSON object.
type Object = Map<String, Value>;

/// Members that the predecessor requires, in the order of its message.
const REQUIRED: [&str; 7] = ["id", "title", "description", "acceptance_criteria", "status", "priority", "dependencies"];
/// Members that only the runtime writes; a planner's copy of them is not read.
const RUNTIME: [&str; 7] = [
    "attempts",
    "last_attempt_commit",
    "last_verdict",
    "last_integrated_commit",
    "blocked_reason",
    "integration_conflict",
    "resolved_by_task_id",
];
/// Names of the repair target; the first non-empty one wins.
const REPAIR: [&str; 3] = ["repair_target_task_id", "repair_for_task_id", "repair_target"];
/// Members that are neither required nor the runtime's.
const OPTIONAL: [&str; 4] = ["verification", "setup", "requirements", "files_touched"];

/// A plan as a file says it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FilePlan {
    /// `planner_revision`; 0 when absent.
    pub(super) revision: i64,
    /// Tasks in file order.
    pub(super) tasks: Vec<FileTask>,
}

/// A task as a file says it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct FileTask {
    /// The task.
    pub(super) task: PlannedTask,
    /// Optional members that the file has.
    pub(super) given: BTreeSet<&'static str>,
}

/// Reads a plan; graph rules are checked elsewhere.
pub(super) fn read(text: &str) -> Result<FilePlan, Vec<String>> {
    let (plan, entries) = shape(text).map_err(|error| vec![error])?;
    let mut errors = Errors::default();
    if let Some(version) = plan.get("planner_revision")
        && version.as_i64().is_none()
    {
        errors.push(format!("`planner_revision` must be an integer, is {}", kind(version)));
    }
    if entries.len() > TASKS_MAX {
        return Err(vec![format!("the plan has {} tasks, the limit is {TASKS_MAX}", entries.len())]);
    }
    let mut tasks = Vec::with_capacity(entries.len());
    let mut seen: std::collections::BTreeMap<String, String> = std::collections::BTreeMap::new();
    for (place, entry) in entries.iter().enumerate() {
        let Some(task) = task(place, entry, &mut errors) else {
            continue;
        };
        let id = task.task.id.as_str().to_owned();
        if let Some(other) = seen.insert(id.to_ascii_lowercase(), id.clone()) {
            errors.push(format!("task ids `{other}` and `{id}` differ only in case; ids must be unique ignoring case"));
        }
        tasks.push(task);
    }
    let revision = plan.get("planner_revision").and_then(Value::as_i64).unwrap_or(0);
    errors.into_result(FilePlan { revision, tasks })
}

/// Errors, capped.
#[derive(Debug, Default)]
pub(super) struct Errors {
    list: Vec<String>,
    more: usize,
}

impl Errors {
    pub(super) fn push(&mut self, error: String) {
        if self.list.len() < ERRORS_MAX {
            self.list.push(error);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_result<T>(mut self, value: T) -> Result<T, Vec<String>> {
        if self.list.is_empty() {
            return Ok(value);
        }
        if self.more > 0 {
            self.list.push(format!("… and {} more", self.more));
        }
        Err(self.list)
    }
}

/// The predecessor's checks, in its order and words; the first failure wins (artifacts.md 1.6).
fn shape(text: &str) -> Result<(Object, Vec<Object>), String> {
    if text.len() > PLAN_BYTES_MAX {
        return Err(format!("tasks.json has {} bytes, the limit is {PLAN_BYTES_MAX}", text.len()));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let value: Value = serde_json::from_str(text).map_err(|error| format!("Invalid JSON in tasks.json: {error}"))?;
    let Value::Object(mut plan) = value else {
        return Err("Expected JSON object in tasks.json".to_owned());
    };
    if plan.get("version").and_then(Value::as_i64) != Some(PLAN_VERSION) {
        return Err("Unsupported tasks.json version.".to_owned());
    }
    let Some(Value::Array(items)) = plan.remove("tasks") else {
        return Err("tasks.json must contain a tasks list.".to_owned());
    };
    let mut entries = Vec::with_capacity(items.len());
    let mut ids = BTreeSet::new();
    for item in items {
        let Value::Object(entry) = item else {
            return Err("Each task must be an object.".to_owned());
        };
        let missing: Vec<&str> = REQUIRED.iter().copied().filter(|name| !entry.contains_key(*name)).collect();
        if !missing.is_empty() {
            return Err(format!("Task is missing required fields: {}", missing.join(", ")));
        }
        let status = &entry["status"];
        if status.as_str().and_then(|word| word.parse::<TaskStatus>().ok()).is_none() {
            return Err(format!("Unsupported task status: {}", quoted(status)));
        }
        if !entry["acceptance_criteria"].is_array() {
            return Err("Task acceptance_criteria must be a list.".to_owned());
        }
        if !entry["dependencies"].is_array() {
            return Err("Task dependencies must be a list.".to_owned());
        }
        let id = match &entry["id"] {
            Value::String(id) => id.clone(),
            other => other.to_string(),
        };
        if !ids.insert(id.clone()) {
            return Err(format!("Duplicate task id: {}", shown(&id)));
        }
        entries.push(entry);
    }
    Ok((plan, entries))
}

fn task(place: usize, entry: &Map<String, Value>, errors: &mut Errors) -> Option<FileTask> {
    let id = match &entry["id"] {
        Value::String(text) => match TaskId::parse(text) {
            Ok(id) => id,
            Err(error) => {
                errors.push(error.to_string());
                return None;
            }
        },
        other => {
            errors.push(format!("tasks[{place}]: `id` must be a text, is {}", kind(other)));
            return None;
        }
    };
    let mut reader = Reader { id: id.as_str().to_owned(), entry, errors };
    let title = reader.text("title", TITLE_CHARS_MAX * 4);
    if title.trim().is_empty() || title.chars().count() > TITLE_CHARS_MAX {
        reader.fail(&format!("`title` must have 1 to {TITLE_CHARS_MAX} characters"));
    }
    let acceptance_criteria = reader.criteria();
    let task = PlannedTask {
        title,
        description: reader.text("description", DESCRIPTION_BYTES_MAX),
        acceptance_criteria,
        status: entry["status"].as_str().and_then(|s| s.parse().ok()).unwrap_or(TaskStatus::Pending),
        priority: reader.priority(),
        dependencies: reader.dependencies(),
        verification: reader.checks("verification"),
        setup: reader.checks("setup"),
        requirements: reader.texts("requirements"),
        files_touched: reader.paths("files_touched"),
        repair_target: reader.repair_target(),
        extra: extra(entry),
        id,
    };
    reader.attempts();
    let given = OPTIONAL.iter().copied().filter(|name| entry.contains_key(*name)).collect();
    Some(FileTask { task, given })
}

fn extra(entry: &Map<String, Value>) -> Map<String, Value> {
    let known = |name: &str| {
        REQUIRED.contains(&name) || RUNTIME.contains(&name) || OPTIONAL.contains(&name) || REPAIR.contains(&name)
    };
    entry.iter().filter(|(name, _)| !known(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Reads the members of one task; every error names the task.
struct Reader<'a> {
    id: String,
    entry: &'a Map<String, Value>,
    errors: &'a mut Errors,
}

impl Reader<'_> {
    fn fail(&mut self, what: &str) {
        self.errors.push(format!("task `{}`: {what}", self.id));
    }

    fn text(&mut self, name: &str, bytes_max: usize) -> String {
        match &self.entry[name] {
            Value::String(text) if text.len() <= bytes_max => text.clone(),
            Value::String(text) => {
                self.fail(&format!("`{name}` has {} bytes, the limit is {bytes_max}", text.len()));
                text.chars().take(1).collect()
            }
            other => {
                let what = format!("`{name}` must be a text, is {}", kind(other));
                self.fail(&what);
                "?".to_owned()
            }
        }
    }

    fn priority(&mut self) -> i64 {
        match &self.entry["priority"] {
            Value::Null => DEFAULT_PRIORITY,
            value => value.as_i64().unwrap_or_else(|| {
                let what = format!("`priority` must be an integer, is {}", quoted(value));
                self.fail(&what);
                DEFAULT_PRIORITY
            }),
        }
    }

    fn attempts(&mut self) {
        if let Some(value) = self.entry.get("attempts").filter(|value| !value.is_null())
            && value.as_u64().is_none()
        {
            let what = format!("`attempts` must be an integer of at least 0, is {}", quoted(value));
            self.fail(&what);
        }
    }

    fn criteria(&mut self) -> Vec<String> {
        let items = self.entry["acceptance_criteria"].as_array().map_or(&[][..], Vec::as_slice);
        if items.is_empty() {
            self.fail("`acceptance_criteria` is empty: name at least one testable criterion");
        }
        if items.len() > CRITERIA_MAX {
            self.fail(&format!("has {} acceptance criteria, the limit is {CRITERIA_MAX}", items.len()));
            return Vec::new();
        }
        let mut out = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match item {
                Value::String(text) if text.trim().is_empty() => {
                    self.fail(&format!("`acceptance_criteria[{place}]` is empty"));
                }
                Value::String(text) if text.len() > CRITERION_BYTES_MAX => {
                    self.fail(&format!("`acceptance_criteria[{place}]` is longer than {CRITERION_BYTES_MAX} bytes"));
                }
                Value::String(text) => out.push(text.clone()),
                other => self.fail(&format!("`acceptance_criteria[{place}]` must be a text, is {}", kind(other))),
            }
        }
        out
    }

    fn dependencies(&mut self) -> Vec<TaskId> {
        let mut out = Vec::new();
        for item in self.entry["dependencies"].as_array().map_or(&[][..], Vec::as_slice) {
            match item.as_str().map(TaskId::parse) {
                Some(Ok(id)) if id.as_str() == self.id => self.fail("depends on itself"),
                Some(Ok(id)) if out.contains(&id) => {}
                Some(Ok(id)) => out.push(id),
                Some(Err(_)) => self.fail(&format!("depends on unknown task {}", quoted(item))),
                None => self.fail(&format!("`dependencies` must be a list of ids, has {}", kind(item))),
            }
        }
        out
    }

    fn checks(&mut self, name: &str) -> Vec<Check> {
        let items = self.list(name, CHECKS_MAX);
        let mut out = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match check_from_value(item) {
                Ok(check) => out.push(check),
                Err(errors) => {
                    for error in errors {
                        self.fail(&format!("`{name}[{place}]`: {error}"));
                    }
                }
            }
        }
        out
    }

    fn texts(&mut self, name: &str) -> Vec<String> {
        let items = self.list(name, FILES_MAX);
        let mut out = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            match item {
                Value::String(text) if text.len() <= 4096 => out.push(text.clone()),
                _ => self.fail(&format!("`{name}[{place}]` must be a text of at most 4096 bytes")),
            }
        }
        out
    }

    fn paths(&mut self, name: &str) -> Vec<String> {
        let paths = self.texts(name);
        for path in &paths {
            if let Some(why) = escaping_path(path) {
                self.fail(&format!("`{name}` path `{}` {why}; paths are relative to the repository", shown(path)));
            }
        }
        paths
    }

    fn repair_target(&mut self) -> Option<TaskId> {
        let text = REPAIR.iter().find_map(|name| self.entry.get(*name)?.as_str().filter(|text| !text.is_empty()))?;
        match TaskId::parse(text) {
            Ok(id) if id.as_str() == self.id => {
                self.fail("`repair_target_task_id` names the task itself");
                None
            }
            Ok(id) => Some(id),
            Err(_) => {
                let what = format!("Repair task '{}' references missing repair target '{}'.", self.id, shown(text));
                self.errors.push(what);
                None
            }
        }
    }

    fn list(&mut self, name: &str, max: usize) -> Vec<Value> {
        match self.entry.get(name) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(items)) if items.len() <= max => items.clone(),
            Some(Value::Array(items)) => {
                self.fail(&format!("`{name}` has {} entries, the limit is {max}", items.len()));
                Vec::new()
            }
            Some(other) => {
                let what = format!("`{name}` must be a list, is {}", kind(other));
                self.fail(&what);
                Vec::new()
            }
        }
    }
}
