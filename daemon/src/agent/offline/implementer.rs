//! The implementer's turn: generates the files of one part, with tests, and runs those tests.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::fault::{self, Effect};
use super::goal::{self, Tool};
use super::part::{self, Part, TestNames};
use super::python;
use super::render::{self, SourceFile};
use super::turn::TurnSpec;

/// Does the task in the current folder and returns the report, or says why it cannot.
pub(super) fn take(spec: &TurnSpec, effect: Option<&Effect>) -> Result<Value, String> {
    let tree = std::env::current_dir().map_err(|error| format!("the current folder cannot be found: {error}"))?;
    let task = spec.task()?;
    let tool = goal::parse(&spec.context.goal)
        .map_err(|error| format!("the offline agent cannot work on this goal: {error}; {}", goal::understood()))?;
    let Some((part, names)) = Part::of_task(&tool, task) else {
        return Err(format!(
            "the offline agent cannot do task `{}` ({}): it implements the storage, one command, or the usage text of a tool; {}",
            task.id,
            task.title,
            goal::understood()
        ));
    };
    check_ground(&tool, part, names, &tree)?;
    let mut files = render::files(&tool, part, names, &tree)?;
    damage(&mut files, effect);
    let planned: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let changed = if matches!(effect, Some(Effect::NoChange)) { planned } else { write_all(&tree, &files)? };
    let mut summary = summary(spec, part, &tool, &changed);
    match effect {
        Some(Effect::TouchPlan) => {
            write_all(
                &tree,
                &[SourceFile { path: "tasks.json".to_owned(), text: "{\"version\": 1, \"tasks\": []}\n".to_owned() }],
            )?;
        }
        Some(Effect::Outside) => summary.push_str(&fault::write_outside(&tree)),
        _ => {}
    }
    let line = format!("python3 -m unittest -v {}", part.test_module(&tool, names));
    let lying = matches!(effect, Some(Effect::SyntaxError | Effect::FailingTest | Effect::NoChange));
    let checks = if lying { format!("{line}: exit 0") } else { check(&line, &tree)? };
    Ok(json!({
        "role": "implementer",
        "task_id": spec.task_id,
        "attempt": spec.attempt,
        "commit": "",
        "summary": summary,
        "files_changed": changed,
        "checks_run": [checks],
        "proposed_tasks": [],
    }))
}

/// Refuses when the tree is not what the part builds on, or holds files of somebody else in its place.
fn check_ground(tool: &Tool, part: Part, names: TestNames, tree: &Path) -> Result<(), String> {
    let installed = tool.installed(tree)?;
    if part != Part::Storage && !installed {
        return Err(format!(
            "package `{}` is not in this tree: its storage task must be integrated first",
            tool.package
        ));
    }
    let test = part.test_file(tool, names);
    match std::fs::read_to_string(tree.join(&test)) {
        Ok(text) if !text.trim().is_empty() && !part::belongs_to(tool, &text) => {
            Err(format!("`{test}` exists, is not a test of `{}`, and is not overwritten", tool.package))
        }
        _ => Ok(()),
    }
}

/// Returns the paths whose content is new. Nothing is written through a symbolic link.
fn write_all(tree: &Path, files: &[SourceFile]) -> Result<Vec<String>, String> {
    let mut changed = Vec::new();
    for file in files {
        let mut at = PathBuf::from(tree);
        for step in Path::new(&file.path).components() {
            at.push(step);
            if std::fs::symlink_metadata(&at).is_ok_and(|kind| kind.file_type().is_symlink()) {
                return Err(format!("`{}` is reached through a symbolic link and is not written", file.path));
            }
        }
        if std::fs::read(&at).is_ok_and(|before| before == file.text.as_bytes()) {
            continue;
        }
        let folder = at.parent().unwrap_or(tree);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&at, &file.text))
            .map_err(|error| format!("cannot write `{}`: {error}", file.path))?;
        changed.push(file.path.clone());
    }
    Ok(changed)
}

fn damage(files: &mut [SourceFile], effect: Option<&Effect>) {
    let Some(test) = files.last_mut() else { return };
    match effect {
        Some(Effect::SyntaxError) => test.text.push_str("\n\ndef broken(:\n    pass\n"),
        Some(Effect::FailingTest) => {
            let case = "\n\nimport unittest\n\n\nclass FaultTest(unittest.TestCase):\n    def test_fails(self):\n        self.assertEqual(1 + 1, 3)\n";
            test.text.push_str(case);
        }
        _ => {}
    }
}

fn check(line: &str, tree: &Path) -> Result<String, String> {
    let ran = python::run(&mut python::shell(line), tree).map_err(|error| format!("cannot run `{line}`: {error}"))?;
    let counted = ran.stderr.lines().find(|text| text.starts_with("Ran ")).unwrap_or("no test was counted");
    Ok(format!("{line}: {} ({counted})", ran.ending()))
}

fn summary(spec: &TurnSpec, part: Part, tool: &Tool, changed: &[String]) -> String {
    let what = match part {
        Part::Storage => format!("Laid out package `{}` with its store, command line and tests.", tool.package),
        Part::Command(verb) => format!("Wrote the command `{} {}` and its tests.", tool.package, verb.word),
        Part::Guide => format!("Wrote the usage of `{}` and its end-to-end test.", tool.package),
    };
    let what = if changed.is_empty() { format!("{what} Every file was there already, unchanged.") } else { what };
    match spec.context.feedback.lines().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => {
            let line: String = line.chars().take(200).collect();
            format!("{what} Generated again after this feedback: {line}")
        }
        None => what,
    }
}
