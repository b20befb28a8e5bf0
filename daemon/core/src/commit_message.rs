//! The message of an accepted commit (DESIGN 6): subject, summary, trailers.
//!
//! Invariant: the trailers are the runtime's; no text of an agent can add or forge one.

use crate::gate::{expected_checks, unproven};
use crate::output::strip_ansi;
use crate::policy::Policy;
use crate::state::{Attempt, RunState};

/// Longest subject, in characters.
const SUBJECT_CHARS: usize = 72;
/// Column at which the body wraps.
const WRAP: usize = 72;
/// Most lines of the body.
const BODY_LINES: usize = 60;
/// Most requirements that get a trailer.
const REQUIREMENTS_MAX: usize = 50;

/// The complete message: `<task id>: <title>`, the implementer's summary, then `Harness-Run`, `Harness-Task`, `Harness-Attempt`,
/// `Harness-Requirement` for each requirement, and `Harness-Unproven: yes` where no command proved it.
#[must_use]
pub fn commit_message(state: &RunState, policy: &Policy, attempt: &Attempt) -> String {
    let task = state.tasks.get(&attempt.task).map(|task| &task.plan);
    let title = task.map_or("", |task| &task.title);
    let mut message = subject(attempt.task.as_str(), title);
    let body = body(&attempt.summary);
    if !body.is_empty() {
        message.push_str("\n\n");
        message.push_str(&body);
    }
    message.push_str(&format!(
        "\n\nHarness-Run: {}\nHarness-Task: {}\nHarness-Attempt: {}\n",
        state.head.brief.run, attempt.task, attempt.number
    ));
    for requirement in task.into_iter().flat_map(|task| &task.requirements).take(REQUIREMENTS_MAX) {
        let requirement = one_line(requirement);
        if !requirement.is_empty() {
            message.push_str(&format!("Harness-Requirement: {}\n", cut(&requirement, 100)));
        }
    }
    if task.is_none_or(|task| unproven(policy, &expected_checks(policy, task))) {
        message.push_str("Harness-Unproven: yes\n");
    }
    message
}

fn subject(id: &str, title: &str) -> String {
    let title = one_line(title);
    cut(format!("{id}: {title}").trim_end_matches([' ', ':']), SUBJECT_CHARS)
}

/// One line of visible characters.
fn one_line(text: &str) -> String {
    let visible: String =
        strip_ansi(text).chars().map(|c| if c.is_control() || is_format(c) { ' ' } else { c }).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Characters that change how text is shown without being seen (bidirectional overrides, zero widths, separators).
const fn is_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn cut(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars - 1).collect();
    format!("{}…", kept.trim_end())
}

/// The summary, wrapped. A line that git could read as a trailer, a comment, a scissors line or a patch is set in.
fn body(summary: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in summary.replace("\r\n", "\n").split(['\n', '\r']) {
        let text = one_line(paragraph);
        if text.is_empty() {
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push(String::new());
            }
            continue;
        }
        lines.extend(wrapped(&text).into_iter().map(|line| if is_special(&line) { format!("  {line}") } else { line }));
    }
    if lines.len() > BODY_LINES {
        lines.truncate(BODY_LINES);
        lines.push("…".to_owned());
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    // An empty line inside would make the last paragraph look like a trailer block; ours follows in any case.
    lines.join("\n")
}

fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        for piece in pieces(word) {
            let at_end = lines.last().map_or(0, |line| line.chars().count());
            match lines.last_mut() {
                Some(line) if at_end > 0 && at_end + 1 + piece.chars().count() <= WRAP => {
                    line.push(' ');
                    line.push_str(&piece);
                }
                Some(line) if at_end == 0 => line.push_str(&piece),
                _ => lines.push(piece),
            }
        }
    }
    lines
}

/// A word that is longer than any line, in pieces; others as they are up to 1,000 characters (links stay whole).
fn pieces(word: &str) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    if chars.len() <= 1_000 {
        return vec![word.to_owned()];
    }
    chars.chunks(WRAP).map(|piece| piece.iter().collect()).collect()
}

fn is_special(line: &str) -> bool {
    let token = line.split([':', '#', ' ', '=']).next().unwrap_or_default();
    let trailer = line.contains(':')
        && !token.is_empty()
        && token.len() < line.len()
        && token.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    let patch = ["diff ", "---", "+++", "index ", "From ", "@@", "Index:", "(cherry picked"];
    trailer || line.starts_with(['#', ';', '*']) || patch.iter().any(|start| line.starts_with(start))
}

#[cfg(test)]
#[path = "commit_message_tests.rs"]
mod tests;
