//! A row of a run's history and its line in `harness-events.tsv` (artifacts.md 1.5, 1.5b; S4-038).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{Millis, Seq};

/// The header of `harness-events.tsv`, without line end.
pub const TSV_HEADER: &str = "seq\ttimestamp\trole\ttask_id\tattempt\tcommit\tstatus\tdecision\tdescription";

/// One thing that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Place in the run's history.
    pub seq: Seq,
    /// When.
    pub at: Millis,
    /// Who: `runtime`, `user`, or a role.
    pub role: String,
    /// Task, empty when none.
    #[serde(default)]
    pub task_id: String,
    /// Attempt, 0 when none.
    #[serde(default)]
    pub attempt: u32,
    /// Commit, empty when none.
    #[serde(default)]
    pub commit: String,
    /// Kind of happening; the words of artifacts.md 1.5b.
    pub status: String,
    /// The finer word.
    pub decision: String,
    /// A sentence for people; never empty.
    pub description: String,
    /// Details for programs; null when none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// A line that is no event row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{line}` is no row of harness-events.tsv: {why}")]
pub struct TsvError {
    /// The line, cut.
    pub line: String,
    /// What is wrong.
    pub why: &'static str,
}

impl Event {
    /// The row, without line end. One line whatever the texts hold (weaknesses 41).
    #[must_use]
    pub fn to_tsv(&self) -> String {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { escape(text) };
        [
            self.seq.to_string(),
            timestamp(self.at),
            dash(&self.role),
            dash(&self.task_id),
            self.attempt.to_string(),
            dash(&self.commit),
            dash(&self.status),
            dash(&self.decision),
            dash(&self.description),
        ]
        .join("\t")
    }

    /// Reads a row back; `data` is not in the TSV.
    ///
    /// # Errors
    /// [`TsvError`] for a wrong number of columns or a number that is none.
    pub fn from_tsv(line: &str) -> Result<Self, TsvError> {
        let fail = |why| TsvError { line: line.chars().take(120).collect(), why };
        let columns: Vec<&str> = line.split('\t').collect();
        let [seq, at, role, task, attempt, commit, status, decision, description] = columns[..] else {
            return Err(fail("it must have nine columns"));
        };
        let text = |column: &str| if column == "-" { String::new() } else { unescape(column) };
        Ok(Self {
            seq: Seq(seq.parse().map_err(|_| fail("seq is no number"))?),
            at: at
                .parse::<jiff::Timestamp>()
                .map(|t| Millis(t.as_millisecond()))
                .map_err(|_| fail("timestamp is no time"))?,
            role: text(role),
            task_id: text(task),
            attempt: attempt.parse().map_err(|_| fail("attempt is no number"))?,
            commit: text(commit),
            status: text(status),
            decision: text(decision),
            description: text(description),
            data: Value::Null,
        })
    }
}

/// UTC, whole seconds, `2026-11-30T19:06:58+00:00`, as the predecessor writes times.
#[must_use]
pub fn timestamp(at: Millis) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .unwrap_or(jiff::Timestamp::UNIX_EPOCH)
        .strftime("%Y-%m-%dT%H:%M:%S+00:00")
        .to_string()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\\' => out.push_str("\\\\"),
            '\0' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('t') => out.push('\t'),
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some(other) => out.push(other),
            None => out.push('\\'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_one_line_and_reads_back() {
        let event = Event {
            seq: Seq(7),
            at: Millis(1_796_065_618_000),
            role: "verifier".into(),
            task_id: "T-1".into(),
            attempt: 2,
            commit: String::new(),
            status: "accept".into(),
            decision: "continue_after_accept".into(),
            description: "a\tb\nc\r\\d".into(),
            data: Value::Null,
        };
        let line = event.to_tsv();
        assert!(!line.contains('\n') && !line.contains('\r'));
        assert_eq!(line.split('\t').count(), TSV_HEADER.split('\t').count());
        assert_eq!(Event::from_tsv(&line), Ok(event));
    }

    #[test]
    fn a_torn_row_is_refused() {
        assert!(Event::from_tsv("7\t2026-11-30T19:06:58+00:00\trun").is_err());
    }
}
