//! Finding a row.

use super::{control, gate, git, run, store};

/// One code for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code as the product prints it.
    pub code: &'static str,
    /// One line.
    pub title: &'static str,
    /// What happened.
    pub what: &'static str,
    /// Why the product does not just go on.
    pub why: &'static str,
    /// What to do; commands in backticks.
    pub next: &'static str,
}

/// A row; the argument order is the field order.
pub(super) const fn row(
    code: &'static str,
    title: &'static str,
    what: &'static str,
    why: &'static str,
    next: &'static str,
) -> Explanation {
    Explanation { code, title, what, why, next }
}

/// Every row, by part: gate, run, git and landing, store, control.
pub fn all() -> impl Iterator<Item = &'static Explanation> {
    [gate::ROWS, run::ROWS, git::ROWS, store::ROWS, control::ROWS].into_iter().flatten()
}

/// The row of a code, whatever its case; `blocked:`, `pending:`, `held:` and `failed:` before it are left out.
#[must_use]
pub fn explain(code: &str) -> Option<&'static Explanation> {
    let code = code.trim();
    let code = ["blocked:", "pending:", "held:", "failed:"].iter().find_map(|p| code.strip_prefix(p)).unwrap_or(code);
    // `NO_VERIFICATION` and `no_verification` are one code.
    all().find(|row| row.code.eq_ignore_ascii_case(code))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::vocab::{FailureKind, FailureType};

    #[test]
    fn every_row_is_complete_and_unique() {
        let mut seen = BTreeSet::new();
        for row in all() {
            assert!(seen.insert(row.code.to_ascii_lowercase()), "{} stands twice", row.code);
            for text in [row.title, row.what, row.why, row.next] {
                assert!(!text.trim().is_empty(), "{} has an empty text", row.code);
            }
            assert!(!row.title.ends_with('.') && row.what.ends_with('.') && row.why.ends_with('.'), "{}", row.code);
        }
    }

    #[test]
    fn codes_are_found_as_people_type_them() {
        for code in ["ZERO_TESTS", "zero_tests", " blocked:ZERO_TESTS "] {
            assert_eq!(explain(code).map(|row| row.code), Some("ZERO_TESTS"));
        }
        assert_eq!(explain("pending:local_changes").map(|row| row.code), Some("local_changes"));
        assert!(explain("no_such_code").is_none());
    }

    #[test]
    fn every_code_of_the_control_surface_and_every_failure_has_a_row() {
        let codes = crate::error::CODES.iter().map(|code| code.name);
        let failures = FailureType::ALL.iter().map(|kind| kind.as_str());
        let turns = FailureKind::ALL.iter().map(|kind| kind.as_str());
        for code in codes.chain(failures).chain(turns) {
            assert!(explain(code).is_some(), "{code} has no explanation");
        }
    }
}
