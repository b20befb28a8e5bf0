//! `logs`: the run's own log and the transcripts of its turns, as lines.
//!
//! A cursor names how far each file was read, so that following loses and doubles nothing.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use harness_proto::api::answer::{LogLine, LogPage};
use harness_proto::api::request::LogsQuery;
use harness_proto::error::Problem;
use harness_proto::event::timestamp;
use harness_proto::ids::{Millis, RunId};
use harness_proto::vocab::Lifecycle;
use serde_json::Value;

use super::problem::store_problem;
use crate::artifact::FileName;
use crate::runtime::context::blocking;
use crate::runtime::registry::{Runtime, run_dir};

/// Most lines of one answer.
const PAGE: usize = 2000;
/// Longest text of a line, in characters.
const LINE: usize = 4000;

/// A file with what its lines belong to.
struct Source {
    name: String,
    path: PathBuf,
    role: String,
    task: String,
    attempt: u32,
    began: Millis,
}

impl Runtime {
    pub(super) async fn read_logs(&self, run: RunId, query: LogsQuery) -> Result<LogPage, Problem> {
        let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
        let lifecycle = loaded.state.head.lifecycle;
        let mut sources = Vec::new();
        let wanted = |role: &str, task: &str, attempt: u32| {
            query.role.as_deref().is_none_or(|r| r == role)
                && query.task.as_deref().is_none_or(|t| t == task)
                && query.attempt.is_none_or(|a| a == attempt)
        };
        if wanted("runtime", "", 0)
            && let Ok(layout) = self.layout_of(&loaded)
        {
            sources.push(Source {
                name: "runtime".into(),
                path: layout.path(&FileName::RuntimeLog),
                role: "runtime".into(),
                task: String::new(),
                attempt: 0,
                began: Millis(0),
            });
        }
        let folder = run_dir(&self.inner.config, &run).join("transcripts");
        let turns = self.inner.store.turns(&run, 0, 1000).await.map_err(|e| store_problem(&e))?;
        for turn in turns {
            let begun = turn.begun;
            let task = begun.task.as_ref().map(ToString::to_string).unwrap_or_default();
            if wanted(begun.role.as_str(), &task, begun.attempt) {
                let name = format!("turn-{:04}-{}.jsonl", begun.turn, begun.role);
                sources.push(Source {
                    path: folder.join(&name),
                    name,
                    role: begun.role.to_string(),
                    task,
                    attempt: begun.attempt,
                    began: begun.at,
                });
            }
        }
        let mut cursor: BTreeMap<String, u64> = match &query.cursor {
            Some(text) => serde_json::from_str(text).map_err(|_| {
                Problem::new("USAGE", "that is no cursor of logs").next(format!("harnessctl logs {run}"))
            })?,
            None => BTreeMap::new(),
        };
        let first = query.cursor.is_none();
        let tail = if query.tail == 0 { 200 } else { query.tail as usize };
        let (lines, cursor) = blocking(move || {
            let mut lines = Vec::new();
            for source in &sources {
                let from = cursor.get(&source.name).copied().unwrap_or(0);
                let end = read(source, from, &mut lines);
                cursor.insert(source.name.clone(), end);
            }
            lines.sort_by(|a, b| a.at.cmp(&b.at));
            if first && lines.len() > tail {
                lines.drain(..lines.len() - tail);
            }
            lines.truncate(PAGE);
            (lines, cursor)
        })
        .await;
        let live = matches!(lifecycle, Lifecycle::Queued | Lifecycle::Running);
        Ok(LogPage {
            schema: "harness.logs/1".into(),
            run_id: run.to_string(),
            ended: !live && lines.is_empty(),
            lines,
            cursor: serde_json::to_string(&cursor).unwrap_or_default(),
        })
    }
}

/// Reads the complete lines after an offset; the new offset.
fn read(source: &Source, from: u64, lines: &mut Vec<LogLine>) -> u64 {
    let Some(mut file) = open(&source.path) else { return from };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return from;
    }
    let mut reader = BufReader::new(file);
    let (mut at, mut bytes) = (from, Vec::new());
    loop {
        bytes.clear();
        match reader.read_until(b'\n', &mut bytes) {
            Ok(n) if n > 0 && bytes.ends_with(b"\n") => at += n as u64,
            // A line without its end is still being written.
            _ => return at,
        }
        let text = String::from_utf8_lossy(&bytes);
        lines.push(line(source, text.trim_end()));
    }
}

fn open(path: &Path) -> Option<std::fs::File> {
    std::fs::File::open(path).ok()
}

fn line(source: &Source, text: &str) -> LogLine {
    let frame: Option<Value> = if source.role == "runtime" { None } else { serde_json::from_str(text).ok() };
    let (at, text) = match &frame {
        Some(frame) => {
            let at = source.began.plus(frame["ms"].as_i64().unwrap_or(0));
            let way = frame["way"].as_str().unwrap_or("");
            (timestamp(at), format!("{way} {}", frame["text"].as_str().unwrap_or("")))
        }
        None => match text.split_once(' ') {
            Some((at, rest)) => (at.to_owned(), rest.to_owned()),
            None => (String::new(), text.to_owned()),
        },
    };
    let text: String = text.replace(['\n', '\r'], " ").chars().take(LINE).collect();
    LogLine { at, seq: 0, role: source.role.clone(), task: source.task.clone(), attempt: source.attempt, text }
}
