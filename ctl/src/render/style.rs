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

/// The name that is most like what was typed; none when nothing is near.
pub(crate) fn closest<'a>(typed: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = typed.to_ascii_lowercase().replace('-', "_");
    let far = typed.chars().count() / 3;
    names
        .map(|name| (distance(&typed, &name.to_ascii_lowercase()), name))
        .filter(|(steps, _)| *steps <= far)
        .min()
        .map(|(_, name)| name)
}

/// How many letters have to change to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, left) in a.chars().take(100).enumerate() {
        let mut corner = std::mem::replace(&mut row[0], n + 1);
        for (m, right) in b.iter().enumerate() {
            let changed = corner + usize::from(left != *right);
            corner = row[m + 1];
            row[m + 1] = changed.min(row[m] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_its_word_and_nonsense_none() {
        let names = || ["ZERO_TESTS", "TIMEOUT", "no_change"].into_iter();
        assert_eq!(closest("zero-test", names()), Some("ZERO_TESTS"));
        assert_eq!(closest("NOCHANGE", names()), Some("no_change"));
        assert_eq!(closest("x", names()), None);
        assert_eq!(closest("frobnicate", names()), None);
    }

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
