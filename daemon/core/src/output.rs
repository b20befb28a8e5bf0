//! Plain text from a program's output.

use std::sync::LazyLock;

use regex::Regex;

static ANSI: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-_]").expect("constant and tested")
});

/// The text without terminal escapes.
#[must_use]
pub fn strip_ansi(text: &str) -> String {
    ANSI.replace_all(text, "").into_owned()
}

/// The last `count` characters.
#[must_use]
pub fn tail(text: &str, count: usize) -> &str {
    match text.char_indices().rev().nth(count.saturating_sub(1)) {
        Some((start, _)) if count > 0 => &text[start..],
        _ if count == 0 => "",
        _ => text,
    }
}

/// The first `count` characters, with a mark when something was cut.
#[must_use]
pub fn head(text: &str, count: usize) -> String {
    match text.char_indices().nth(count) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_go_and_tails_keep_characters_whole() {
        assert_eq!(strip_ansi("\u{1b}[31;1mred\u{1b}[0m \u{1b}]0;title\u{7}x"), "red x");
        assert_eq!(tail("aäö", 2), "äö");
        assert_eq!(tail("a", 2), "a");
        assert_eq!(tail("abc", 0), "");
        assert_eq!(head("äöü", 2), "äö…");
        assert_eq!(head("äö", 2), "äö");
    }
}
