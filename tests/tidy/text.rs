//! Rules of a single file: its beginning, its length, its patience.

use crate::source::Source;

/// Most lines of a file (style 2.4).
pub(crate) const MAX_LINES: usize = 400;

/// Files that do not begin with a `//!` doc.
pub(crate) fn beginnings(sources: &[Source]) -> Vec<String> {
    let silent = |s: &&Source| !s.text.starts_with("//!");
    sources
        .iter()
        .filter(silent)
        .map(|s| format!("{} does not begin with `//!` · hint: say what the file is for", s.path))
        .collect()
}

/// Files that are too long.
pub(crate) fn lengths(sources: &[Source]) -> Vec<String> {
    let long = |s: &Source| {
        let lines = s.text.lines().count();
        let hint = "hint: split it by what it owns, or move inline tests to `tests.rs`";
        (lines > MAX_LINES).then(|| format!("{} has {lines} lines, {MAX_LINES} are allowed · {hint}", s.path))
    };
    sources.iter().filter_map(long).collect()
}

/// Waits for a time in tests without a reason on the line before (style 3.4: wait for a predicate).
pub(crate) fn sleeps(sources: &[Source]) -> Vec<String> {
    let call = ["sle", "ep("].concat();
    let mut offences = Vec::new();
    for source in sources {
        let mut before = "";
        let mut in_test = source.is_test();
        for (n, line) in source.text.lines().enumerate() {
            in_test |= line.trim() == "#[cfg(test)]";
            let python = line.contains(&["time.", &call].concat());
            let comment = line.trim_start().starts_with("//");
            if in_test && !comment && !python && line.contains(&call) && !before.trim_start().starts_with("// why:") {
                offences.push(format!(
                    "{}:{} waits for a time · hint: wait for a predicate, or say `// why:` on the line before",
                    source.path,
                    n + 1
                ));
            }
            before = line;
        }
    }
    offences
}
