//! Appending to `harness-lessons.md` (artifacts.md 1.7; weaknesses 3).
//!
//! Invariant: one's own notes are never parsed to append; whatever a user wrote into the file stays as it is.

use std::fs::OpenOptions;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use harness_core::state::Brief;
use harness_core::step::Lesson;
use harness_proto::doc::lessons::{LESSON_HEADER, count_lessons};
use harness_proto::doc::{LessonDoc, lessons::read_lessons};
use harness_proto::event::timestamp;

use super::atomic::{FileError, on, sync_folder};
use super::writer::read;
use crate::failpoint;

/// Appends entries, except those that the file has already; returns how many were appended. A part of an entry that a crash
/// left at the end is removed first.
///
/// # Errors
/// [`FileError`]; the file holds what it held before.
pub fn append_lessons(path: &Path, brief: &Brief, lessons: &[Lesson]) -> Result<usize, FileError> {
    // Lossy only for counting and comparing: the bytes of the file are never written back.
    let found = read(path)?;
    let existed = found.is_some();
    let bytes = found.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut keep = bytes.len();
    let mut count = count_lessons(&text);
    let known: Vec<LessonDoc> = read_lessons(&text);
    let mut new = String::new();
    let mut appended = 0;
    for lesson in lessons {
        let doc = document(brief, lesson);
        let shown = read_lessons(&doc.render(1));
        // Looked at first: an entry that lacks only its line end reads like a whole one.
        let torn = appended == 0 && count > 0 && torn(&bytes, &doc.render(count));
        if !torn && shown.first().is_some_and(|shown| known.contains(shown)) {
            continue;
        }
        if torn {
            keep -= tail_from_last_header(&bytes).len();
            count -= 1;
        }
        count += 1;
        new.push_str(separator(&bytes[..keep], appended));
        new.push_str(&doc.render(count));
        appended += 1;
    }
    if appended == 0 {
        return Ok(0);
    }
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path).map_err(on("open", path))?;
    failpoint::hit("artifact.lesson.before");
    let written = file
        .set_len(keep as u64)
        .and_then(|()| file.seek(SeekFrom::Start(keep as u64)))
        .and_then(|_| file.write_all(new.as_bytes()))
        .and_then(|()| file.sync_data());
    if let Err(error) = written {
        // What cannot be cut back is a torn entry and is removed by the next append.
        drop(file.set_len(keep as u64));
        return Err(on("append to", path)(error));
    }
    failpoint::hit("artifact.lesson.after");
    if !existed {
        path.parent().map_or(Ok(()), sync_folder)?;
    }
    Ok(appended)
}

fn document(brief: &Brief, lesson: &Lesson) -> LessonDoc {
    LessonDoc {
        title: lesson.title.clone(),
        category: lesson.category.clone(),
        strategy: lesson.strategy.clone(),
        outcome: lesson.outcome.clone(),
        insight: lesson.insight.clone(),
        context: format!("goal={}; scope={}; role={}", brief.goal, brief.scope, lesson.role),
        iteration: lesson.iteration,
        timestamp: timestamp(lesson.at),
    }
}

/// One empty line between entries, whatever stands before.
fn separator(before: &[u8], appended: usize) -> &'static str {
    if appended > 0 {
        "\n"
    } else if before.is_empty() || before.ends_with(b"\n\n") {
        ""
    } else if before.ends_with(b"\n") {
        "\n"
    } else {
        "\n\n"
    }
}

/// Whether the file ends with the beginning of this very entry.
fn torn(bytes: &[u8], entry: &str) -> bool {
    let tail = tail_from_last_header(bytes);
    !tail.is_empty() && tail.len() < entry.len() && entry.as_bytes().starts_with(tail)
}

fn tail_from_last_header(bytes: &[u8]) -> &[u8] {
    let header = LESSON_HEADER.as_bytes();
    let place = bytes.windows(header.len()).rposition(|window| window == header);
    place.filter(|at| *at == 0 || bytes[at - 1] == b'\n').map_or(&[], |at| &bytes[at..])
}
