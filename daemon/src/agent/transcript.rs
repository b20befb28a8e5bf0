//! The record of a turn's frames: JSON lines, redacted, capped.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::redact::Redactor;

/// The largest transcript of one turn, in bytes.
const CAP: u64 = 64 * 1024 * 1024;
/// The longest text of one frame that is kept, in bytes.
const FRAME_CAP: usize = 1024 * 1024;

/// Where frames go. A disk that fails costs the transcript, never the turn.
#[derive(Debug)]
pub(super) struct Transcript {
    file: Option<BufWriter<File>>,
    redactor: Redactor,
    written: u64,
}

impl Transcript {
    /// Opens the file for appending; what cannot be opened is only noted in the log.
    pub(super) fn open(path: &Path, redactor: Redactor) -> Self {
        let file = File::options().create(true).append(true).mode(0o600).open(path);
        if let Err(error) = &file {
            tracing::warn!(path = %path.display(), %error, "no transcript of this turn");
        }
        Self { file: file.ok().map(BufWriter::new), redactor, written: 0 }
    }

    /// The redactor of this turn.
    pub(super) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Keeps one frame: when (since the turn began), which way (`>` to the agent, `<` from it, `!` a note), what.
    pub(super) fn frame(&mut self, at: Duration, way: &str, text: &[u8]) {
        let Some(file) = &mut self.file else {
            return;
        };
        // First redacted, then cut: half a secret is not recognised.
        let mut shown = self.redactor.text(&String::from_utf8_lossy(text));
        shown.truncate(shown.floor_char_boundary(FRAME_CAP));
        let frame = serde_json::json!({
            "ms": u64::try_from(at.as_millis()).unwrap_or(u64::MAX),
            "way": way,
            "bytes": text.len(),
            "text": shown,
        });
        let mut line = frame.to_string();
        line.push('\n');
        self.written += line.len() as u64;
        if self.written > CAP {
            line = "{\"way\":\"!\",\"text\":\"the transcript reached its limit\"}\n".to_owned();
        }
        let result = file.write_all(line.as_bytes());
        if let Err(error) = &result {
            tracing::warn!(%error, "the transcript ends here");
        }
        if result.is_err() || self.written > CAP {
            self.close();
        }
    }

    /// Writes what is buffered; the file stands complete for whoever reads it next.
    pub(super) fn close(&mut self) {
        if let Some(Err(error)) = self.file.take().map(|mut file| file.flush()) {
            tracing::warn!(%error, "the transcript is not complete");
        }
    }
}
