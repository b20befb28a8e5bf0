//! Bytes into lines with a cap: a line above it is counted and dropped, never held.

use std::collections::VecDeque;

/// The longest line that is kept, in bytes.
pub(super) const LINE_CAP: usize = 8 * 1024 * 1024;

/// One line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line within the cap.
    Whole(Vec<u8>),
    /// A line above the cap, of this many bytes. Nothing of it is kept: a piece may hold half a secret.
    Dropped(u64),
}

/// Collects bytes and gives lines back in order.
#[derive(Debug)]
pub(super) struct Lines {
    cap: usize,
    open: Vec<u8>,
    /// Length of a line that is being dropped; 0 while none is.
    dropping: u64,
    ready: VecDeque<Line>,
}

impl Lines {
    /// An empty buffer with a cap for one line.
    pub(super) fn new(cap: usize) -> Self {
        Self { cap, open: Vec::new(), dropping: 0, ready: VecDeque::new() }
    }

    /// Takes the next bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            match piece.strip_suffix(b"\n") {
                Some(rest) => {
                    self.extend(rest);
                    self.end_line();
                }
                None => self.extend(piece),
            }
        }
    }

    /// The end of the stream: what stands without a line end is a line.
    pub(super) fn finish(&mut self) {
        if !self.open.is_empty() || self.dropping > 0 {
            self.end_line();
        }
    }

    /// The next complete line.
    pub(super) fn pop(&mut self) -> Option<Line> {
        self.ready.pop_front()
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.dropping > 0 {
            self.dropping += bytes.len() as u64;
        } else if self.open.len() + bytes.len() > self.cap {
            self.dropping = (self.open.len() + bytes.len()) as u64;
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.open);
        let dropped = std::mem::take(&mut self.dropping);
        self.ready.push_back(if dropped > 0 { Line::Dropped(dropped) } else { Line::Whole(line) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[&[u8]], wanted: &[Line]) {
        let mut lines = Lines::new(300);
        for piece in pieces {
            lines.push(piece);
        }
        lines.finish();
        let mut found = Vec::new();
        while let Some(line) = lines.pop() {
            found.push(line);
        }
        assert_eq!(found, wanted);
    }

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let whole = |text: &[u8]| Line::Whole(text.to_vec());
        check(&[b"a\nb\n"], &[whole(b"a"), whole(b"b")]);
        check(&[b"a", b"b\n\nc"], &[whole(b"ab"), whole(b""), whole(b"c")]);
        check(&[], &[]);
        check(&[&[b'x'; 300], b"\n"], &[whole(&[b'x'; 300])]);
    }

    #[test]
    fn a_line_above_the_cap_is_dropped_and_the_next_one_is_read() {
        let parts: [&[u8]; 3] = [&[b'x'; 200], &[b'x'; 301], &[b'x'; 200]];
        check(&[parts[0], parts[1], parts[2], b"\nok\n"], &[Line::Dropped(701), Line::Whole(b"ok".to_vec())]);
    }
}
