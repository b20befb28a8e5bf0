//! The planner's turn: reads the goal and the tree, writes `tasks.json` and `plan.md`.

use std::path::Path;

use serde_json::{Value, json};

use super::criteria;
use super::fault::{self, Effect, PlanFlaw};
use super::goal::{self, Tool};
use super::part::{self, Part, TestNames};
use super::render;
use super::replan;
use super::turn::TurnSpec;

/// Plans, or changes the plan when a task of it was started, and returns the report.
pub(super) fn take(spec: &TurnSpec, effect: Option<&Effect>) -> Result<Value, String> {
    let started = |task: &Value| !matches!(task["status"].as_str(), None | Some("pending" | "ready" | "superseded"));
    if spec.context.tasks.iter().any(started) {
        return replan::take(spec);
    }
    let tree = std::env::current_dir().map_err(|error| format!("the current folder cannot be found: {error}"))?;
    let tool = goal::parse(&spec.context.goal)
        .map_err(|error| format!("the offline agent cannot plan this goal: {error}; {}", goal::understood()))?;
    check_scope(&spec.context.scope, &tree)?;
    let parts = parts(&tool, &tree)?;
    let whole = render::with_commands_of(&tool, &tree);
    let mut tasks = tasks(&tool, &whole, &parts, &tree);
    if let Some(Effect::BadPlan(flaw)) = effect {
        spoil(&mut tasks, *flaw);
    }
    let document = json!({
        "version": 1, "goal": spec.context.goal, "planner_revision": spec.context.revision, "tasks": tasks,
    });
    write_plan(spec, &document, &prose(spec, &tool, &tasks))?;
    let before: Vec<&str> = spec.context.tasks.iter().filter_map(|task| task["id"].as_str()).collect();
    let ids: Vec<&str> = tasks.iter().filter_map(|task| task["id"].as_str()).collect();
    let mut summary = format!("Planned {} tasks for `{}`.", tasks.len(), tool.package);
    if matches!(effect, Some(Effect::Outside)) {
        summary.push_str(&fault::write_outside(&tree));
    }
    let again = spec.kind == "replan" && before == ids;
    let reason = if again { "No task was started, so the plan is the same as before." } else { "" };
    let added: Vec<_> = ids.iter().filter(|id| !before.contains(id)).collect();
    let updated: Vec<_> = ids.iter().filter(|id| before.contains(id)).collect();
    Ok(report(spec, &summary, &added, &updated, reason))
}

/// Returns a planner report.
pub(super) fn report<T: serde::Serialize>(
    spec: &TurnSpec,
    summary: &str,
    added: &[T],
    updated: &[T],
    reason: &str,
) -> Value {
    json!({
        "role": "planner",
        "revision": spec.context.revision,
        "summary": summary,
        "task_changes": {"added": added, "updated": updated, "closed": []},
        "planner_requested_reason": reason,
    })
}

/// Writes both files of the plan into the plan folder.
pub(super) fn write_plan(spec: &TurnSpec, document: &Value, prose: &str) -> Result<(), String> {
    let folder = spec.plan_dir()?;
    let text =
        serde_json::to_string_pretty(document).map_err(|error| format!("the plan cannot be written: {error}"))?;
    for (name, text) in [("tasks.json", format!("{text}\n").as_str()), ("plan.md", prose)] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
    }
    Ok(())
}

/// Refuses a scope that is a folder: the files of a tool stand at the top of the repository. Other texts are prose.
fn check_scope(scope: &str, tree: &Path) -> Result<(), String> {
    let folder = scope.trim().trim_start_matches("./").trim_end_matches('/');
    let whole = folder.is_empty() || folder == "." || Path::new(folder).is_absolute();
    if whole || !(scope.trim().ends_with('/') || tree.join(folder).is_dir()) {
        return Ok(());
    }
    Err(format!("the scope is the folder `{folder}`, and the offline agent works at the top of the repository only"))
}

/// Returns what the tree lacks: a later run adds commands to a tool that is there.
fn parts(tool: &Tool, tree: &Path) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    if !tool.installed(tree)? {
        parts.push(Part::Storage);
    }
    parts.extend(tool.verbs.iter().filter(|verb| !tool.has_command(tree, **verb)).map(|verb| Part::Command(*verb)));
    if parts.is_empty() {
        return Err(format!(
            "there is nothing to plan: `{}` is in this repository with all the commands the goal names",
            tool.package
        ));
    }
    parts.push(Part::Guide);
    Ok(parts)
}

fn tasks(tool: &Tool, whole: &Tool, parts: &[Part], tree: &Path) -> Vec<Value> {
    let id = |index: usize| format!("T-{:03}", index + 1);
    let numbered: Vec<(String, Part)> = parts.iter().enumerate().map(|(index, part)| (id(index), *part)).collect();
    let of = |wanted: fn(&Part) -> bool| -> Vec<&str> {
        numbered.iter().filter(|(_, part)| wanted(part)).map(|(id, _)| id.as_str()).collect()
    };
    let mut tasks = Vec::new();
    for (index, (id, part)) in numbered.iter().enumerate() {
        let dependencies = match part {
            Part::Storage => Vec::new(),
            Part::Command(_) => of(|part| *part == Part::Storage),
            Part::Guide => of(|part| matches!(part, Part::Command(_))),
        };
        let subject = if *part == Part::Guide { whole } else { tool };
        let (title, description) = wording(subject, *part);
        let names = TestNames::choose(tool, *part, tree);
        let promised = criteria::promises(subject, *part, names);
        tasks.push(json!({
            "id": id,
            "title": title,
            "description": description,
            "acceptance_criteria": promised.into_iter().map(|promise| promise.text).collect::<Vec<_>>(),
            "status": if dependencies.is_empty() { "ready" } else { "pending" },
            "priority": index + 1,
            "dependencies": dependencies,
            "attempts": 0,
            "verification": [verification(whole, *part, tree)],
            "files_touched": part.files(tool, names),
            "requirements": [format!("REQ-{:03}", index + 1)],
        }));
    }
    tasks
}

/// Returns the command that proves a part; the last part proves the whole.
fn verification(whole: &Tool, part: Part, tree: &Path) -> String {
    let modules = if part == Part::Guide {
        part::all_modules(whole, tree)
    } else {
        vec![part.test_module(whole, TestNames::choose(whole, part, tree))]
    };
    format!("python3 -m unittest -v {}", modules.join(" "))
}

/// Returns title and description of a part.
pub(super) fn wording(tool: &Tool, part: Part) -> (String, String) {
    let (package, entity, plural) = (&tool.package, &tool.entity, &tool.plural);
    match part {
        Part::Storage => (
            format!("Store {plural} in a JSON file and lay out the package"),
            format!(
                "Write the Python package `{package}` (standard library only): a store that keeps {plural} in one JSON file, replaced \
                 as a whole, its path from `--file`, `${}` or `~/.{package}.json`; a command line that finds its commands in \
                 `{package}/commands/`, one module each, and turns errors into messages and exit codes.",
                tool.variable()
            ),
        ),
        Part::Command(verb) => (
            format!("Add the command `{}`", verb.word),
            format!(
                "Write `{package}/commands/{}.py` with its tests. It works on the {plural} in the store and touches no other file: \
                 the command line finds the module by itself.",
                verb.module()
            ),
        ),
        Part::Guide => (
            format!("Show how to use `{package}` and test it end to end"),
            format!(
                "Put the usage of `{package}` into README.md, other text left as it is, and write a test that runs a whole session of \
                 the program, one process for each command, on one file of {plural}; one {entity} must survive from command to command."
            ),
        ),
    }
}

fn prose(spec: &TurnSpec, tool: &Tool, tasks: &[Value]) -> String {
    let words: Vec<String> = tool.verbs.iter().map(|verb| format!("`{}`", verb.word)).collect();
    let mut text = format!(
        "# Plan, revision {}\n\nGoal: {}\n\nRead as: a Python command-line tool `{}` that keeps {} in one JSON file, with the commands {}.\n\n\
         Each command is a module of its own that the command line finds by itself, so tasks of commands touch no common file.\n\n\
         | task | what | after | requirement | proof |\n| --- | --- | --- | --- | --- |\n",
        spec.context.revision,
        spec.context.goal.trim(),
        tool.package,
        tool.plural,
        words.join(", ")
    );
    for task in tasks {
        let list = |name: &str| {
            let words = task[name].as_array().into_iter().flatten().filter_map(Value::as_str);
            words.collect::<Vec<_>>().join(", ")
        };
        let (id, title) = (task["id"].as_str().unwrap_or("-"), task["title"].as_str().unwrap_or("-"));
        text.push_str(&format!(
            "| {id} | {title} | {} | {} | `{}` |\n",
            list("dependencies"),
            list("requirements"),
            list("verification")
        ));
    }
    text
}

/// Makes a plan that must be refused.
fn spoil(tasks: &mut Vec<Value>, flaw: PlanFlaw) {
    let last = tasks.last().map_or(Value::Null, |task| task["id"].clone());
    let Some(first) = tasks.first_mut() else {
        return;
    };
    match flaw {
        PlanFlaw::Cycle => first["dependencies"] = json!([last]),
        PlanFlaw::Dangling => first["dependencies"] = json!(["T-999"]),
        PlanFlaw::Duplicate => {
            let copy = first.clone();
            tasks.push(copy);
        }
    }
}
