//! Append-only histories: `harness-events.tsv` and the run directory's `events.log` (DESIGN 10; S4-038, S4-063).
//!
//! Invariant: whole lines only, each event once, in order. A torn last line is dropped when the file is opened, and a write
//! that fails half-way is cut back; the store has every event, so the caller appends again what the file lacks.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use harness_proto::event::{Event, TSV_HEADER, timestamp};
use harness_proto::ids::{RunId, Seq};
use serde_json::json;

use super::atomic::{FileError, on, sync_folder, write_atomic};
use crate::failpoint;

/// Why events could not be appended.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An event is missing between the file's last one and the first new one; append from [`LineLog::last_seq`] on.
    #[error("`{}` ends with event {last}, event {next} does not follow it", path.display())]
    Gap {
        /// The file.
        path: PathBuf,
        /// Its last event.
        last: Seq,
        /// First new event.
        next: Seq,
    },
}

/// Form of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Form {
    /// Tab separated with a header (artifacts.md 1.5).
    Tsv,
    /// One JSON object: the nine columns, `run_id`, `data`, and `at` in milliseconds.
    Jsonl(RunId),
}

/// An open history.
#[derive(Debug)]
pub struct LineLog {
    path: PathBuf,
    form: Form,
    file: File,
    /// Length up to the last whole line.
    length: u64,
    last: Seq,
    /// A failed write may have left a torn line.
    torn: bool,
}

impl LineLog {
    /// Opens or creates `harness-events.tsv`, drops a torn last line, and finds the last event.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open_tsv(path: &Path) -> Result<Self, FileError> {
        Self::open(path, Form::Tsv)
    }

    /// Opens or creates `events.log`, drops a torn last line, and finds the last event.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn open_jsonl(path: &Path, run: &RunId) -> Result<Self, FileError> {
        Self::open(path, Form::Jsonl(run.clone()))
    }

    fn open(path: &Path, form: Form) -> Result<Self, FileError> {
        // A link would lead our lines elsewhere; a landed commit cannot make one, but a user can.
        if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
            let other = std::io::Error::new(std::io::ErrorKind::InvalidInput, "something that is no file stands there");
            return Err(on("append to", path)(other));
        }
        let existed = path.exists();
        let file =
            OpenOptions::new().read(true).append(true).create(true).mode(0o644).open(path).map_err(on("open", path))?;
        if !existed {
            file.set_permissions(Permissions::from_mode(0o644)).map_err(on("open", path))?;
            path.parent().map_or(Ok(()), sync_folder)?;
        }
        let mut log = Self { path: path.to_owned(), form, file, length: 0, last: Seq(0), torn: false };
        log.scan()?;
        Ok(log)
    }

    /// The last event in the file; 0 when there is none. The caller appends from the next one on.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.last
    }

    /// Appends the events that the file does not have yet, in one write, and makes them durable; returns how many.
    ///
    /// # Errors
    /// [`LineError::File`]: nothing was appended, or it will be dropped before the next append; call again.
    /// [`LineError::Gap`]: an event before these is missing.
    pub fn append(&mut self, events: &[Event]) -> Result<usize, LineError> {
        if self.torn {
            self.scan()?;
        }
        let mut text = if self.length == 0 { self.header() } else { String::new() };
        let mut last = self.last;
        let mut count = 0;
        for event in events.iter().filter(|event| event.seq > self.last) {
            if event.seq.0 != last.0 + 1 {
                return Err(LineError::Gap { path: self.path.clone(), last, next: event.seq });
            }
            text.push_str(&self.line(event));
            text.push('\n');
            last = event.seq;
            count += 1;
        }
        if text.is_empty() {
            return Ok(0);
        }
        failpoint::hit("artifact.append.before");
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            self.torn = self.file.set_len(self.length).is_err();
            return Err(on("append to", &self.path)(error).into());
        }
        failpoint::hit("artifact.append.after");
        self.length += text.len() as u64;
        self.last = last;
        Ok(count)
    }

    /// Writes the whole history anew (`harnessctl rebuild`, or a file that is ahead of the store).
    ///
    /// # Errors
    /// [`FileError`]; the old file is unchanged.
    pub fn rewrite(&mut self, events: &[Event]) -> Result<(), FileError> {
        let mut text = self.header();
        for event in events {
            text.push_str(&self.line(event));
            text.push('\n');
        }
        write_atomic(&self.path, text.as_bytes())?;
        *self = Self::open(&self.path, self.form.clone())?;
        Ok(())
    }

    fn header(&self) -> String {
        match self.form {
            Form::Tsv => format!("{TSV_HEADER}\n"),
            Form::Jsonl(_) => String::new(),
        }
    }

    fn line(&self, event: &Event) -> String {
        match &self.form {
            Form::Tsv => event.to_tsv(),
            Form::Jsonl(run) => json!({
                "run_id": run, "seq": event.seq, "at": event.at, "timestamp": timestamp(event.at),
                "role": event.role, "task_id": event.task_id, "attempt": event.attempt, "commit": event.commit,
                "status": event.status, "decision": event.decision, "description": event.description, "data": event.data,
            })
            .to_string(),
        }
    }

    /// Cuts a torn last line off and finds length and last event.
    fn scan(&mut self) -> Result<(), FileError> {
        let failed = |operation| on(operation, &self.path);
        let total = self.file.metadata().map_err(failed("read"))?.len();
        let whole = whole_length(&mut self.file, total).map_err(failed("read"))?;
        if whole < total {
            self.file.set_len(whole).and_then(|()| self.file.sync_all()).map_err(failed("repair"))?;
        }
        self.length = whole;
        self.torn = false;
        self.last = last_seq(&self.path)?;
        Ok(())
    }
}

/// Length up to and with the last line feed, read from the end in blocks.
fn whole_length(file: &mut File, total: u64) -> std::io::Result<u64> {
    const BLOCK: u64 = 64 * 1024;
    let mut end = total;
    let mut buffer = Vec::new();
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(start))?;
        buffer.clear();
        (&*file).take(end - start).read_to_end(&mut buffer)?;
        if let Some(place) = buffer.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + place as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

/// The largest event number in a history, also in a predecessor's with CRLF line ends and rows of several lines; 0 when
/// there is none or no file (S4-063).
///
/// # Errors
/// [`FileError`] when the file is there and cannot be read.
pub fn last_seq(path: &Path) -> Result<Seq, FileError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Seq(0)),
        Err(error) => return Err(on("open", path)(error)),
    };
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut last = 0;
    loop {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(on("read", path))? == 0 {
            return Ok(Seq(last));
        }
        last = last.max(seq_of(&line).unwrap_or(0));
    }
}

fn seq_of(line: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(line).ok()?;
    if text.starts_with('{') {
        return serde_json::from_str::<serde_json::Value>(text).ok()?.get("seq")?.as_i64();
    }
    // A continuation line of a predecessor's quoted field can begin with digits and a tab; it then has fewer columns.
    let (seq, rest) = text.split_once('\t')?;
    (rest.matches('\t').count() >= 7).then(|| seq.parse().ok())?
}
