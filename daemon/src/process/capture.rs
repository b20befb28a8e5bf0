//! Bounded capture of one output into a file: head and tail are kept, the middle is dropped and marked.
//!
//! Memory stays at one buffer whatever the child writes: the tail is a ring inside the file, put in order at the end.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::record::Captured;

/// One bounded output file.
pub(crate) struct CappedFile {
    path: PathBuf,
    file: File,
    /// How many bytes are kept at the start; behind them lies the ring of `tail` bytes.
    head: u64,
    tail: u64,
    total: u64,
    /// Whether a write failed; from then on bytes are only counted.
    broken: bool,
    written: u64,
}

impl CappedFile {
    /// Creates the file, replacing one that exists.
    pub(crate) fn create(path: &Path, cap: u64) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).create(true).truncate(true).mode(0o600).open(path)?;
        let head = cap / 2;
        Ok(Self { path: path.to_owned(), file, head, tail: cap - head, total: 0, broken: false, written: 0 })
    }

    /// Takes the next bytes; never fails, because the child must be drained whatever the disk does.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (at, room) = if self.total < self.head {
                (self.total, self.head - self.total)
            } else if self.tail == 0 {
                self.total += bytes.len() as u64;
                return;
            } else {
                let in_ring = (self.total - self.head) % self.tail;
                (self.head + in_ring, self.tail - in_ring)
            };
            let n = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
            let (now, later) = bytes.split_at(n);
            if !self.broken {
                match self.file.write_all_at(now, at) {
                    Ok(()) => self.written = self.written.max(at + n as u64),
                    Err(_) => self.broken = true,
                }
            }
            self.total += n as u64;
            bytes = later;
        }
    }

    /// Puts the file in order and says what it holds.
    pub(crate) fn finish(mut self) -> Captured {
        let cap = self.head + self.tail;
        let dropped = self.total.saturating_sub(cap);
        if dropped > 0 && !self.broken && self.unroll(dropped).is_err() {
            self.broken = true;
        }
        let synced = self.file.sync_all().is_ok();
        Captured {
            bytes_total: self.total,
            bytes_kept: self.written.min(self.total),
            truncated: dropped > 0 || self.broken || !synced,
        }
    }

    /// Rewrites head, gap mark and tail in reading order beside the file and renames it over.
    fn unroll(&mut self, dropped: u64) -> std::io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(".tail");
        let temporary = PathBuf::from(name);
        let mut ordered = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        let oldest = (self.total - self.head).checked_rem(self.tail).unwrap_or(0);
        let parts = [(0, self.head), (self.head + oldest, self.tail - oldest), (self.head, oldest)];
        for (index, (from, length)) in parts.into_iter().enumerate() {
            if index == 1 {
                writeln!(ordered, "\n[... {dropped} bytes dropped here ...]")?;
            }
            self.file.seek(SeekFrom::Start(from))?;
            std::io::copy(&mut (&self.file).take(length), &mut ordered)?;
        }
        std::fs::rename(&temporary, &self.path)?;
        self.file = ordered;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(cap: u64, total: usize, step: usize) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        let bytes: Vec<u8> = (0..total).map(|n| (n % 251) as u8).collect();
        let mut file = CappedFile::create(&path, cap).unwrap();
        for chunk in bytes.chunks(step) {
            file.push(chunk);
        }
        let captured = file.finish();
        let kept = usize::try_from(cap).unwrap().min(total);
        assert_eq!(captured.bytes_total, total as u64);
        assert_eq!(captured.bytes_kept, kept as u64);
        assert_eq!(captured.truncated, total > kept);
        let mut wanted = bytes.clone();
        if total > kept {
            let head = kept / 2;
            wanted.truncate(head);
            wanted.extend(format!("\n[... {} bytes dropped here ...]\n", total - kept).bytes());
            wanted.extend(&bytes[total - (kept - head)..]);
        }
        assert!(std::fs::read(&path).unwrap() == wanted, "{cap} {total} {step}");
    }

    #[test]
    fn head_and_tail_are_kept_to_the_byte() {
        for cap in [0, 1, 2, 3, 10, 101] {
            for total in [0, 1, 2, 3, 9, 10, 11, 15, 16, 100, 101, 102, 1000] {
                for step in [1, 3, 64, 4096] {
                    check(cap, total, step);
                }
            }
        }
    }
}
