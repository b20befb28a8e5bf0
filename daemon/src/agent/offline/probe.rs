//! Carries out a probe in the tree at hand and says what was seen.

use std::path::Path;

use super::goal::Tool;
use super::python;
use super::step::{Seed, Step};

/// What came of a probe, with the sentence that goes into the report.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) passed: bool,
    pub(super) evidence: String,
}

impl Seen {
    pub(super) fn failed(evidence: String) -> Self {
        Self { passed: false, evidence }
    }
}

/// Runs a session on a data file in a folder of its own.
pub(super) fn session(tool: &Tool, tree: &Path, seed: Seed, steps: &[Step]) -> Seen {
    let folder = match tempfile::Builder::new().prefix("offline-").tempdir() {
        Ok(folder) => folder,
        Err(error) => return Seen::failed(format!("cannot make a temporary folder: {error}")),
    };
    let store = folder.path().join(format!("{}.json", tool.package));
    if let Some(text) = seed_text(tool, seed)
        && let Err(error) = std::fs::write(&store, text)
    {
        return Seen::failed(format!("cannot write the data file of the check: {error}"));
    }
    let mut sentences = Vec::new();
    for step in steps {
        match one(tool, tree, folder.path(), &store, step) {
            Ok(sentence) => sentences.push(sentence),
            Err(sentence) => {
                sentences.push(sentence);
                return Seen::failed(sentences.join("; "));
            }
        }
    }
    Seen { passed: true, evidence: sentences.join("; ") }
}

fn seed_text(tool: &Tool, seed: Seed) -> Option<String> {
    match seed {
        Seed::Absent => None,
        Seed::Corrupt => Some("not json".to_owned()),
        Seed::TwoItems => {
            let items = serde_json::json!([
                {"id": 1, "text": format!("first {}", tool.entity)},
                {"id": 2, "text": format!("second {} ☕", tool.entity)},
            ]);
            // One line per member, as the tool writes it, so that a check may look for `"next_id": 3`.
            Some(format!("{{\n  \"version\": 1,\n  \"next_id\": 3,\n  \"items\": {items}\n}}\n"))
        }
    }
}

/// Runs one step; `Ok` and `Err` both carry the sentence that says what was seen.
fn one(tool: &Tool, tree: &Path, folder: &Path, store: &Path, step: &Step) -> Result<String, String> {
    let args: Vec<String> = step.args.iter().map(|arg| arg.replace("{dir}", &folder.to_string_lossy())).collect();
    let shown = shown(&step.args);
    let mut command = python::python(&tool.variable(), store);
    command.args(&args);
    let ran = python::run(&mut command, tree).map_err(|error| format!("`{shown}` could not be started: {error}"))?;
    let printed = short(if ran.stdout.trim().is_empty() { &ran.stderr } else { &ran.stdout });
    let saw = format!("`{shown}` ended with {} and printed `{printed}`", ran.ending());
    if ran.exit != Some(step.code) {
        return Err(format!("{saw}, expected exit {}", step.code));
    }
    if let Some(text) = step.out.iter().find(|text| !ran.stdout.contains(text.as_str())) {
        return Err(format!("{saw}, expected `{}` on stdout", text.trim()));
    }
    if let Some(text) = step.not_out.iter().find(|text| ran.stdout.contains(text.as_str())) {
        return Err(format!("{saw}, which must not contain `{}`", text.trim()));
    }
    if let Some(text) = step.err.iter().find(|text| !ran.stderr.contains(text.as_str())) {
        return Err(format!("{saw}, expected `{text}` on stderr"));
    }
    held(store, step, saw)
}

/// Looks at the data file after a step; adds what it holds to what was seen.
fn held(store: &Path, step: &Step, saw: String) -> Result<String, String> {
    if step.kept.is_empty() && step.gone.is_empty() {
        return Ok(saw);
    }
    let held =
        std::fs::read_to_string(store).map_err(|error| format!("{saw}, and the data file cannot be read: {error}"))?;
    if let Some(text) = step.kept.iter().find(|text| !held.contains(text.as_str())) {
        return Err(format!("{saw}, and the data file does not hold `{text}`"));
    }
    if let Some(text) = step.gone.iter().find(|text| held.contains(text.as_str())) {
        return Err(format!("{saw}, and the data file still holds `{text}`"));
    }
    let kept: Vec<String> = step.kept.iter().map(|text| format!("`{text}`")).collect();
    let gone: Vec<String> = step.gone.iter().map(|text| format!("`{text}`")).collect();
    let mut held = Vec::new();
    if !kept.is_empty() {
        held.push(format!("the data file holds {}", kept.join(", ")));
    }
    if !gone.is_empty() {
        held.push(format!("it does not hold {}", gone.join(", ")));
    }
    Ok(format!("{saw}; {}", held.join(" and ")))
}

/// Returns the call as a reader would type it; a script of several lines is named, not quoted.
fn shown(args: &[String]) -> String {
    let quoted = args.iter().map(|arg| match arg.as_str() {
        script if script.contains('\n') => "SCRIPT".to_owned(),
        plain if !plain.is_empty() && plain.chars().all(|c| c.is_alphanumeric() || "-_./{}".contains(c)) => {
            plain.to_owned()
        }
        other => format!("'{}'", other.replace('\'', "'\\''")),
    });
    std::iter::once("python3".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Returns the start and the end of an output on one line.
fn short(text: &str) -> String {
    let line = text.trim().replace('\n', " ⏎ ");
    let letters: Vec<char> = line.chars().collect();
    if letters.len() <= 240 {
        return line;
    }
    let (head, tail): (String, String) =
        (letters[..80].iter().collect(), letters[letters.len() - 150..].iter().collect());
    format!("{head} … {tail}")
}
