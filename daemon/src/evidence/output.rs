//! What a command printed: the end of it for the record, all of it on the disk under its digest, both without secrets.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::fingerprint::hex;
use crate::redact::Redactor;

/// How much of one command's output is kept, head and tail of each stream, in bytes.
pub const OUTPUT_CAP_BYTES: u64 = 64 * 1024 * 1024;
/// How much of each stream stands in the record, in characters.
pub const TAIL_CHARS: usize = 16_000;
/// How much of the end is read for the record: four bytes a character, and as much again for what redaction takes away.
const TAIL_BYTES: u64 = 8 * TAIL_CHARS as u64;
/// A piece that is looked through for secrets at once; longer lines are cut at this length.
const PIECE_BYTES: usize = 1024 * 1024;

/// The last [`TAIL_CHARS`] characters of a file, lossy, without secrets.
///
/// # Errors
/// The file cannot be read.
pub(super) fn tail(path: &Path, redactor: &Redactor) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // A secret may be cut in half at the beginning and then is not recognised.
    let whole = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(end) if start > 0 => &bytes[end + 1..],
        _ => &bytes[..],
    };
    let text = redactor.text(&String::from_utf8_lossy(whole));
    let skip = text.chars().count().saturating_sub(TAIL_CHARS);
    Ok(text.chars().skip(skip).collect())
}

/// Puts both streams into one file named by its sha256 in `folder`, durably, and returns the digest.
///
/// # Errors
/// A stream cannot be read, or the file cannot be written; no temporary file is left.
pub(super) fn keep(
    stdout: &Path,
    stderr: &Path,
    folder: &Path,
    temp: &Path,
    redactor: &Redactor,
) -> io::Result<String> {
    let kept = fill(&[stdout, stderr], temp, redactor).and_then(|digest| {
        let target = folder.join(&digest);
        fs::rename(temp, &target)?;
        File::open(folder)?.sync_all()?;
        Ok(digest)
    });
    if kept.is_err() {
        // The first error is the one to tell.
        drop(fs::remove_file(temp));
    }
    kept
}

fn fill(streams: &[&Path], temp: &Path, redactor: &Redactor) -> io::Result<String> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temp)?;
    let mut hasher = Sha256::new();
    for stream in streams {
        let mut reader = BufReader::with_capacity(64 * 1024, File::open(stream)?);
        let mut piece = Vec::new();
        loop {
            let more = read_piece(&mut reader, &mut piece)?;
            let clean = without_secrets(&piece, redactor);
            let clean = clean.as_deref().unwrap_or(&piece);
            hasher.update(clean);
            file.write_all(clean)?;
            piece.clear();
            if !more {
                break;
            }
        }
    }
    file.sync_all()?;
    Ok(hex(&hasher.finalize()))
}

/// Reads whole lines up to a piece's length; false at the end of the stream.
fn read_piece(reader: &mut impl io::BufRead, piece: &mut Vec<u8>) -> io::Result<bool> {
    while piece.len() < PIECE_BYTES {
        let room = (PIECE_BYTES - piece.len()) as u64;
        if reader.by_ref().take(room).read_until(b'\n', piece)? == 0 {
            return Ok(false);
        }
        if piece.ends_with(b"\n") && piece.len() > PIECE_BYTES / 2 {
            return Ok(true);
        }
    }
    Ok(true)
}

/// The bytes without secrets; none when there are none, so that output that is no UTF-8 stays as it is.
fn without_secrets(piece: &[u8], redactor: &Redactor) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(piece);
    let clean = redactor.text(&text);
    (clean != text).then(|| clean.into_bytes())
}
