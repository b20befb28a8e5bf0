//! The verifier's turn: looks at the trial commit in its own tree and shows each criterion by running the tool.
//!
//! Invariant: `accept` only when the files are there, every verification command passed here, the runtime's evidence has
//! no failure, and every criterion was shown; a criterion it cannot check is `skip` and the verdict is `revert`.

use std::path::Path;

use serde_json::{Value, json};

use super::criteria;
use super::fault::{self, Effect};
use super::goal::{self, Tool};
use super::part::{Part, TestNames};
use super::probe::{self, Seen};
use super::python;
use super::render;
use super::step::Probe;
use super::turn::{Criterion, Task, TurnSpec};

/// The exit code of a shell that does not find the program.
const NOT_FOUND: i32 = 127;

#[derive(Debug, Default)]
struct Findings {
    list: Vec<Value>,
    environment: bool,
}

impl Findings {
    fn push(&mut self, severity: &str, file: &str, description: String, recommendation: &str) {
        self.list.push(json!({
            "description": description, "severity": severity, "file": file, "recommendation": recommendation,
        }));
    }
}

/// Checks the task in the current folder and returns the report.
pub(super) fn take(spec: &TurnSpec, effect: Option<&Effect>) -> Result<Value, String> {
    let tree = std::env::current_dir().map_err(|error| format!("the current folder cannot be found: {error}"))?;
    let task = spec.task()?;
    if matches!(effect, Some(Effect::FalseAccept)) {
        let claimed = task.criteria_with_ids().into_iter().map(|one| result(&one, "pass", "It looks right."));
        return Ok(report(spec, "accept", "none", "Everything is fine.".to_owned(), &[], claimed.collect()));
    }
    let mut findings = Findings::default();
    missing_files(task, &tree, &mut findings);
    runtime_evidence(spec, &mut findings);
    let suite = suite(task, &tree, &mut findings);
    let (results, skipped) = judge_all(spec, task, &tree, &suite, &mut findings);
    if results.is_empty() {
        let text = "The task has no acceptance criteria.".to_owned();
        findings.push("high", "", text, "Let the planner name them.");
    }
    if matches!(effect, Some(Effect::Revert)) {
        findings.push("high", "", "Reverted by a fault rule.".to_owned(), "Try again.");
    }
    let clean = findings.list.is_empty();
    let signal = match (findings.environment, skipped && clean) {
        (true, _) => "environment_blocked",
        (false, true) => "ambiguous_acceptance_criteria",
        (false, false) => "none",
    };
    let verdict = if clean && !skipped { "accept" } else { "revert" };
    let shown = results.iter().filter(|one| one["result"] == "pass").count();
    let (all, found) = (results.len(), findings.list.len());
    let mut summary = format!("{shown} of {all} criteria shown, {found} findings.");
    if matches!(effect, Some(Effect::Outside)) {
        summary.push_str(&fault::write_outside(&tree));
    }
    Ok(report(spec, verdict, signal, summary, &findings.list, results))
}

/// Returns the result of each criterion, and whether one could not be checked.
fn judge_all(spec: &TurnSpec, task: &Task, tree: &Path, suite: &Seen, findings: &mut Findings) -> (Vec<Value>, bool) {
    let tool = goal::parse(&spec.context.goal).ok();
    let tool = tool.map(|tool| render::with_commands_of(&tool, tree));
    let known = tool.and_then(|tool| Part::of_task(&tool, task).map(|(part, names)| (tool, part, names)));
    let mut results = Vec::new();
    let mut skipped = false;
    for criterion in task.criteria_with_ids() {
        let Some(seen) = known.as_ref().and_then(|known| judge(known, &criterion, tree, suite)) else {
            skipped = true;
            let text = "The offline verifier has no check for this criterion.";
            results.push(result(&criterion, "skip", text));
            continue;
        };
        let word = if seen.passed { "pass" } else { "fail" };
        results.push(result(&criterion, word, &seen.evidence));
        if !seen.passed {
            let text = format!("{} is not met: {}", criterion.id, seen.evidence);
            findings.push("high", "", text, "Make the tool behave as the criterion says.");
        }
    }
    (results, skipped)
}

fn report(
    spec: &TurnSpec,
    verdict: &str,
    signal: &str,
    summary: String,
    findings: &[Value],
    results: Vec<Value>,
) -> Value {
    json!({
        "role": "verifier",
        "task_id": spec.task_id,
        "attempt": spec.attempt,
        "commit": spec.context.trial_commit,
        "verdict": verdict,
        "recovery_signal": signal,
        "summary": summary,
        "findings": findings,
        "criteria_results": results,
        "proposed_tasks": [],
    })
}

fn result(criterion: &Criterion, result: &str, evidence: &str) -> Value {
    json!({"criterion": criterion.id, "result": result, "evidence": evidence})
}

fn missing_files(task: &Task, tree: &Path, findings: &mut Findings) {
    for file in &task.files_touched {
        if !tree.join(file).is_file() {
            findings.push("critical", file, format!("`{file}` is not in the commit."), "Write the file.");
        }
    }
}

fn runtime_evidence(spec: &TurnSpec, findings: &mut Findings) {
    for record in &spec.context.evidence {
        let failed =
            record.exit_code.is_some_and(|code| code != 0) || !matches!(record.result.as_str(), "" | "PASS" | "pass");
        if failed {
            let command = record.command.as_str().map_or_else(|| record.command.to_string(), str::to_owned);
            let text = format!("The runtime's own evidence failed: `{command}` ({}).", record.result);
            findings.push("critical", "", text, "Make the command pass.");
        }
    }
}

/// Runs the verification commands of the task.
fn suite(task: &Task, tree: &Path, findings: &mut Findings) -> Seen {
    let mut sentences = Vec::new();
    let mut passed = !task.verification.is_empty();
    for entry in &task.verification {
        let (shown, mut command, folder) = match verification(entry) {
            Ok(parts) => parts,
            Err(problem) => {
                passed = false;
                findings.push("medium", "", problem, "Write the command as text, or as `cmd` or `argv`.");
                continue;
            }
        };
        match python::run(&mut command, &tree.join(folder)) {
            Ok(ran) => {
                let counted = ran.stderr.lines().find(|line| line.starts_with("Ran "));
                let counted = counted.map(|line| format!(", {line}")).unwrap_or_default();
                sentences.push(format!("`{shown}` ended with {}{counted}", ran.ending()));
                let empty = ran.stderr.lines().any(|line| line.starts_with("Ran 0 tests"));
                if !ran.passed() || empty {
                    passed = false;
                    findings.environment |= ran.exit == Some(NOT_FOUND);
                    let text = format!("`{shown}` ended with {}: {}", ran.ending(), ran.tail());
                    findings.push("critical", "", text, "Make the command pass.");
                }
            }
            Err(error) => {
                passed = false;
                findings.environment = true;
                findings.push(
                    "critical",
                    "",
                    format!("`{shown}` could not be started: {error}"),
                    "Install the program.",
                );
            }
        }
    }
    if task.verification.is_empty() {
        sentences.push("the task has no verification commands".to_owned());
    }
    Seen { passed, evidence: sentences.join("; ") }
}

/// Returns the text, the command and the folder of a verification entry: a text, or an object with `cmd` or `argv`.
fn verification(entry: &Value) -> Result<(String, std::process::Command, String), String> {
    let folder = entry.get("cwd").and_then(Value::as_str).unwrap_or(".").to_owned();
    if let Some(line) = entry.as_str().or_else(|| entry.get("cmd").and_then(Value::as_str)) {
        return Ok((line.to_owned(), python::shell(line), folder));
    }
    let argv = entry
        .get("argv")
        .and_then(Value::as_array)
        .map(|words| words.iter().filter_map(Value::as_str).collect::<Vec<_>>());
    match argv.as_deref() {
        Some([program, args @ ..]) => {
            let mut command = python::program(program);
            command.args(args);
            Ok((format!("{program} {}", args.join(" ")), command, folder))
        }
        _ => Err(format!("The verification entry `{entry}` is not understood.")),
    }
}

/// Shows one criterion; `None` when it is none of those the planner writes.
fn judge(
    (tool, part, names): &(Tool, Part, TestNames),
    criterion: &Criterion,
    tree: &Path,
    suite: &Seen,
) -> Option<Seen> {
    let wanted = folded(&criterion.text);
    let promise =
        criteria::promises(tool, *part, *names).into_iter().find(|promise| folded(&promise.text) == wanted)?;
    Some(match promise.probe {
        Probe::Suite => suite.clone(),
        Probe::Readme => readme(tool, tree),
        Probe::Session { seed, steps } => probe::session(tool, tree, seed, &steps),
    })
}

fn readme(tool: &Tool, tree: &Path) -> Seen {
    let text = std::fs::read_to_string(tree.join("README.md")).unwrap_or_default();
    let calls: Vec<String> =
        tool.verbs.iter().map(|verb| format!("python3 -m {} {}", tool.package, verb.word)).collect();
    match calls.iter().find(|call| !text.contains(call.as_str())) {
        Some(call) => Seen::failed(format!("README.md does not show `{call}`")),
        None => Seen { passed: true, evidence: format!("README.md shows {}", calls.join(", ")) },
    }
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
