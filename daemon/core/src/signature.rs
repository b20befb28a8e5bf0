//! Loop signatures: the same failure has the same signature in every attempt (DESIGN 8).
//!
//! Before hashing, what differs between two runs of the same failure is taken out, in this order: terminal escapes, quoted and
//! absolute paths (their folders, the file name stays), hex ids of 7 and more digits with at least one letter and one digit, addresses, UUIDs, dates and times,
//! durations, process and thread numbers, line and column numbers, runs of spaces. Other numbers stay: `3 != 4` and `5 != 4` are two
//! failures. The whole given output is normalised before the last 2,000 characters are taken, so that a longer path does not
//! move the cut.

use std::sync::LazyLock;

use regex::Regex;
use sha2::{Digest, Sha256};

use crate::dag::hex;
use crate::output::{strip_ansi, tail};

/// Characters of normalised output that count.
const TAIL_CHARS: usize = 2_000;

const RULES: &[(&str, &str)] = &[
    (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b0x[0-9a-fA-F]+\b", "<addr>"),
    (r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?", "<date>"),
    (r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b", "<time>"),
    // A folder chain that starts at the root or in a home folder; the last part stays.
    (r"(?:/|~/|\b[A-Za-z]:\\)(?:[^\s/\\:'\x22<>|()\[\],]+[/\\])+", "<dir>/"),
    (r"\b\d+(?:\.\d+)?\s?(?:ns|µs|us|ms|s|sec|secs|seconds?|minutes?|mins?)\b", "<time>"),
    (r"(?i)\b(pid|process|thread|tid)([ =:#]+)\d+\b", "$1$2<n>"),
    (r"ThreadId\(\d+\)", "ThreadId(<n>)"),
    (r"(?i)\b(lines?|col(?:umn)?)([ :]+)\d+\b", "$1$2<n>"),
    (r":\d+(?::\d+)?\b", ":<n>"),
    (r"\(\d+,\d+\)", "(<n>)"),
    (r"[ \t]+", " "),
];

static COMPILED: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    RULES.iter().map(|(rule, put)| (Regex::new(rule).expect("the rules are constant and tested"), *put)).collect()
});
static HEX: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").expect("the rule is constant and tested"));

/// The signature of a failed command: sha256 of command, exit code and normalised standard error; where a program wrote
/// nothing there (pytest, jest), of its standard output.
#[must_use]
pub fn signature(command: &str, exit_code: i32, stdout: &str, stderr: &str) -> String {
    let output = if stderr.trim().is_empty() { stdout } else { stderr };
    hash(command, &exit_code.to_string(), output)
}

/// The signature of a failure without a command: a turn that failed, a gate that blocked, a verdict.
#[must_use]
pub fn failure_signature(kind: &str, text: &str) -> String {
    hash(kind, "-", text)
}

/// The signature of a failure that is only words: a verdict, gate codes, the message of a failed turn.
#[must_use]
pub fn signature_of_text(text: &str) -> String {
    failure_signature("text", text)
}

fn hash(subject: &str, code: &str, output: &str) -> String {
    let text = normalize(output);
    let mut hash = Sha256::new();
    for part in [normalize(subject).as_str(), code] {
        hash.update(part.as_bytes());
        hash.update(b"|");
    }
    hash.update(tail(&text, TAIL_CHARS).as_bytes());
    hex(&hash.finalize())
}

/// Output without what differs between two runs of the same failure.
#[must_use]
pub fn normalize(text: &str) -> String {
    let mut out = strip_ansi(text).replace("\r\n", "\n");
    for (rule, put) in COMPILED.iter() {
        out = rule.replace_all(&out, *put).into_owned();
    }
    let hexed = HEX.replace_all(&out, |found: &regex::Captures<'_>| {
        let word = &found[0];
        // A plain number or a plain word is no id.
        let mixed = word.bytes().any(|b| b.is_ascii_digit()) && word.bytes().any(|b| b.is_ascii_alphabetic());
        if mixed { "<hex>".to_owned() } else { word.to_owned() }
    });
    hexed.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_runs_of_one_failure_have_one_signature() {
        let one = "File \"/tmp/h/T-001-a1/src/app.py\", line 12, in main\nValueError at 0x7f12 id 81f5de12444f\n[pid 41] 2026-11-30T19:06:58+00:00 took 0.12s";
        let two = "File \"/tmp/h/T-001-a22/src/app.py\", line 15, in main\nValueError at 0x9a00 id 650fd4d00000\n[pid 977] 2026-12-01T01:02:03+00:00 took 12.5s";
        assert_eq!(signature("pytest", 1, "", one), signature("pytest", 1, "", two));
        assert!(normalize(one).contains("app.py"), "the file stays: {}", normalize(one));
    }

    #[test]
    fn other_failures_have_others() {
        let base = signature("pytest", 1, "", "assert 3 == 4");
        assert_ne!(base, signature("pytest", 1, "", "assert 5 == 4"));
        assert_ne!(base, signature("pytest", 2, "", "assert 3 == 4"));
        assert_ne!(base, signature("pytest -q", 1, "", "assert 3 == 4"));
        assert_ne!(signature("x", 1, "", "src/a.py:1"), signature("x", 1, "", "src/b.py:1"));
        assert_ne!(failure_signature("no_report", ""), failure_signature("crashed", ""));
    }

    #[test]
    fn standard_output_counts_where_there_is_no_error_output() {
        assert_ne!(signature("x", 1, "a", " \n"), signature("x", 1, "b", ""));
        assert_eq!(signature("x", 1, "a", "e"), signature("x", 1, "b", "e"));
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing_and_never_panics(text in "[ -~\\n\u{e4}\u{1f642}]{0,400}") {
            let once = normalize(&text);
            prop_assert_eq!(normalize(&once), once);
        }

        #[test]
        fn only_the_tail_counts(prefix in "[a-z ]{0,50}", body in "[a-z]{2000}") {
            let long = format!("{prefix} {body}");
            prop_assert_eq!(signature("c", 1, "", &long), signature("c", 1, "", &body));
        }
    }
}
