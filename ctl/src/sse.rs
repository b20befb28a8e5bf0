//! Reads server-sent events from chunks.

/// One message of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// Its id; where to go on.
    pub(crate) id: String,
    /// Its kind; empty for plain data.
    pub(crate) event: String,
    /// Its data.
    pub(crate) data: String,
}

/// Longest message that is kept; the daemon sends far shorter ones.
const LONGEST: usize = 64 << 20;

/// Puts messages together from chunks.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    buffer: Vec<u8>,
    current: Message,
}

impl Reader {
    /// Takes a chunk and returns the messages that it completes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Vec<Message> {
        self.buffer.extend_from_slice(chunk);
        let mut done = Vec::new();
        while let Some(end) = self.buffer.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.buffer.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line);
            self.line(line.trim_end_matches(['\n', '\r']), &mut done);
        }
        if self.buffer.len() + self.current.data.len() > LONGEST {
            self.buffer.clear();
            self.current = Message::default();
        }
        done
    }

    fn line(&mut self, line: &str, done: &mut Vec<Message>) {
        if line.is_empty() {
            let message = std::mem::take(&mut self.current);
            if !message.data.is_empty() || !message.event.is_empty() {
                done.push(message);
            }
            return;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "id" => value.clone_into(&mut self.current.id),
            "event" => value.clone_into(&mut self.current.event),
            "data" => {
                if !self.current.data.is_empty() {
                    self.current.data.push('\n');
                }
                self.current.data.push_str(value);
            }
            // Comments (an empty name) are signs of life; other fields are of a newer daemon.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_may_break_anywhere() {
        let text = ": hello\n\nid: run_a:1\ndata: {\"a\":\ndata: 1}\n\nevent: end\r\ndata: {}\r\n\r\n";
        for size in [1, 2, 3, 7, 1000] {
            let mut reader = Reader::default();
            let messages: Vec<Message> = text.as_bytes().chunks(size).flat_map(|c| reader.push(c)).collect();
            assert_eq!(messages.len(), 2, "{size}");
            assert_eq!((messages[0].id.as_str(), messages[0].data.as_str()), ("run_a:1", "{\"a\":\n1}"));
            assert_eq!(messages[1].event, "end");
        }
    }
}
