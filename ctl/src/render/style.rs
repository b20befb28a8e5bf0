//! Colors, columns and texts that cannot harm a terminal.

/// Whether to color.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// See the type.
    pub(crate) color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// Something is wrong.
    pub(crate) fn red(self, text: &str) -> String {
        self.paint("31", text)
    }

    /// Of less weight.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// Of more weight.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// A state in its color.
    pub(crate) fn state(self, word: &str) -> String {
        let code = match word {
            "done" | "accepted" | "PASS" | "ok" => "32",
            "failed" | "refused" | "blocked" | "needs-human" | "FAIL" | "TIMED_OUT" | "error" => "31",
            "parked" | "paused" | "waiting" | "stopping" | "done-with-refusals" | "warning" => "33",
            "running" | "planning" | "implementing" | "verifying" | "integrating" => "36",
            _ => return word.to_owned(),
        };
        self.paint(code, word)
    }
}

/// One line without control characters: a text of an agent must not move a terminal's cursor.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\n' || c == '\t' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// A commit as people write it.
pub(crate) fn short(commit: &str) -> String {
    clean(commit).chars().take(9).collect()
}

/// Rows in columns, two blanks apart, the last one not padded. The first row is the head.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        for (n, cell) in row.iter().enumerate() {
            let width = cell.chars().count();
            match widths.get_mut(n) {
                Some(known) => *known = width.max(*known),
                None => widths.push(width),
            }
        }
    }
    let line = |row: &Vec<String>| {
        let mut text = String::new();
        for (n, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if n + 1 < row.len() {
                text.extend(std::iter::repeat_n(' ', widths[n] + 2 - cell.chars().count()));
            }
        }
        text.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [vec!["ID".into(), "STATE".into()], vec!["T-001".into(), "ä".into()]];
        assert_eq!(columns(&rows), ["ID     STATE", "T-001  ä"]);
    }

    #[test]
    fn a_text_cannot_move_the_cursor() {
        assert_eq!(clean("a\x1b[2Jb\nc\r"), "a\u{fffd}[2Jb c\u{fffd}");
    }
}
