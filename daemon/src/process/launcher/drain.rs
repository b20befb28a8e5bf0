//! One output between its pipe and its bounded file.

use std::io::{ErrorKind, PipeReader, Read as _};

use crate::process::capture::CappedFile;
use crate::process::record::Captured;

/// How much of one output is read before the other events get their turn.
pub(super) const READS_PER_TURN: usize = 16;

/// One output on its way into its file.
pub(super) struct Drain {
    reader: Option<PipeReader>,
    file: CappedFile,
}

impl Drain {
    pub(super) fn new(reader: PipeReader, file: CappedFile) -> Self {
        Self { reader: Some(reader), file }
    }

    /// Returns the pipe while somebody may still write it.
    pub(super) fn open_reader(&self) -> Option<&PipeReader> {
        self.reader.as_ref()
    }

    /// Puts the file in order and says what it holds.
    pub(super) fn finish(self) -> Captured {
        self.file.finish()
    }

    /// Reads what is there, at most `rounds` buffers; forgets the reader at its end.
    pub(super) fn read(&mut self, buffer: &mut [u8], rounds: usize) {
        for _ in 0..rounds {
            let Some(reader) = &mut self.reader else {
                return;
            };
            match reader.read(buffer) {
                Ok(0) => self.reader = None,
                Ok(n) => self.file.push(&buffer[..n]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.reader = None,
            }
        }
    }
}
