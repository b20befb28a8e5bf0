//! How many tests a test runner ran, read from what it printed (DESIGN 8: zero tests prove nothing).
//!
//! Recognised: cargo test, cargo nextest, pytest, unittest, jest, vitest, go test. Skipped and ignored tests did not run.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::output::strip_ansi;

/// A test runner that we can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Runner {
    /// `cargo test`.
    CargoTest,
    /// `cargo nextest`.
    Nextest,
    /// `pytest`.
    Pytest,
    /// `python -m unittest`.
    Unittest,
    /// `jest`.
    Jest,
    /// `vitest`.
    Vitest,
    /// `go test`.
    GoTest,
}

/// What a runner said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// Which runner.
    pub runner: Runner,
    /// Tests that ran; of `go test` without `-v`, packages with tests.
    pub ran: u32,
}

macro_rules! rules {
    ($($name:ident = $pattern:literal;)*) => {$(
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("the rule is constant and tested"));
    )*};
}
rules! {
    CARGO_RESULT = r"(?m)^test result: \w+\. (\d+) passed; (\d+) failed;";
    CARGO_LINE = r"(?m)^test .+ \.\.\. (?:ok|FAILED)";
    CARGO_NONE = r"(?m)^running 0 tests$";
    NEXTEST = r"(?m)^\s*Summary \[[^\]]*\]\s+(?:(\d+)(?:/\d+)?) tests? run";
    NEXTEST_NONE = r"(?m)^error: no tests to run|^\s*Starting 0 tests";
    PYTEST = r"(?m)^(?:=+ )?((?:\d+ (?:passed|failed|errors?|skipped|deselected|xfailed|xpassed|warnings?|rerun|subtests passed)(?:, )?)+) in \d";
    PYTEST_PART = r"(\d+) (passed|failed|errors?|xfailed|xpassed)\b";
    PYTEST_NONE = r"(?m)^(?:=+ )?(?:no tests ran|no tests collected|\d+ deselected) in \d|^collected 0 items\s*$";
    UNITTEST = r"(?m)^Ran (\d+) tests? in ";
    UNITTEST_SKIPPED = r"(?m)^(?:OK|FAILED) \(.*?skipped=(\d+)";
    UNITTEST_NONE = r"(?m)^NO TESTS RAN";
    JEST = r"(?m)^Tests:\s+(.*?\d+ total)";
    JEST_NONE = r"(?m)^No tests found";
    VITEST = r"(?m)^\s*Tests\s+(.*?)\(\d+\)\s*$";
    VITEST_NONE = r"(?m)^\s*(?:No test files found|Tests\s+no tests)";
    JS_PART = r"(\d+) (passed|failed)\b";
    GO_OK = r"(?m)^ok\s+\S+\s+(?:[\d.]+s|\(cached\))(?P<rest>.*)$";
    GO_FAIL = r"(?m)^FAIL\s+\S+\s+[\d.]+s";
    GO_LINE = r"(?m)^\s*--- (?:PASS|FAIL): ";
    GO_NONE = r"(?m)^(?:\?\s+\S+\s+)?\[no test files\]|\[no test files\]\s*$|\[no tests to run\]|^testing: warning: no tests to run";
    CMD_GO = r"\bgo\s+(?:-\S+\s+)*test\b";
}

/// Reads the count from the output, helped by the command where two runners print alike. None when no runner is recognised or it
/// printed no count.
#[must_use]
pub fn count(command: &str, stdout: &str, stderr: &str) -> Option<Count> {
    let text = strip_ansi(&format!("{stdout}\n{stderr}")).replace("\r\n", "\n");
    [
        (Runner::Nextest, nextest(&text)),
        (Runner::CargoTest, cargo_test(&text)),
        (Runner::Vitest, vitest(&text)),
        (Runner::Jest, jest(&text)),
        (Runner::Pytest, pytest(&text)),
        (Runner::Unittest, unittest(&text)),
        (Runner::GoTest, go_test(command, &text)),
    ]
    .into_iter()
    .filter_map(|(runner, ran)| ran.map(|ran| Count { runner, ran }))
    // A command may run several suites; it is empty only when all of them are.
    .max_by_key(|count| (count.ran > 0, std::cmp::Reverse(count.runner)))
}

fn number(found: &Captures<'_>, group: usize) -> u32 {
    found.get(group).and_then(|text| text.as_str().parse().ok()).unwrap_or(0)
}

fn sum(rule: &Regex, text: &str) -> u32 {
    rule.captures_iter(text).fold(0, |sum, found| sum.saturating_add(number(&found, 1)))
}

fn lines(rule: &Regex, text: &str) -> u32 {
    u32::try_from(rule.find_iter(text).count()).unwrap_or(u32::MAX)
}

fn nextest(text: &str) -> Option<u32> {
    if NEXTEST.is_match(text) {
        return Some(sum(&NEXTEST, text));
    }
    NEXTEST_NONE.is_match(text).then_some(0)
}

fn cargo_test(text: &str) -> Option<u32> {
    let results = CARGO_RESULT.captures_iter(text).fold(None, |sum: Option<u32>, found| {
        Some(sum.unwrap_or(0).saturating_add(number(&found, 1)).saturating_add(number(&found, 2)))
    });
    // Of long output only the end is known: there the results of the first binaries are cut off, but single tests show.
    let single = lines(&CARGO_LINE, text);
    match results {
        Some(sum) => Some(sum.max(single)),
        None if single > 0 => Some(single),
        None => CARGO_NONE.is_match(text).then_some(0),
    }
}

fn pytest(text: &str) -> Option<u32> {
    if PYTEST.is_match(text) {
        let summaries: Vec<String> = PYTEST.captures_iter(text).map(|found| found[1].to_owned()).collect();
        return Some(summaries.iter().fold(0, |total, part| total.saturating_add(sum(&PYTEST_PART, part))));
    }
    PYTEST_NONE.is_match(text).then_some(0)
}

fn unittest(text: &str) -> Option<u32> {
    if UNITTEST.is_match(text) {
        return Some(sum(&UNITTEST, text).saturating_sub(sum(&UNITTEST_SKIPPED, text)));
    }
    UNITTEST_NONE.is_match(text).then_some(0)
}

fn js(rule: &Regex, text: &str) -> Option<u32> {
    rule.is_match(text).then(|| {
        rule.captures_iter(text)
            .fold(0u32, |total, found| total.saturating_add(sum(&JS_PART, found.get(1).map_or("", |m| m.as_str()))))
    })
}

fn jest(text: &str) -> Option<u32> {
    js(&JEST, text).or_else(|| JEST_NONE.is_match(text).then_some(0))
}

fn vitest(text: &str) -> Option<u32> {
    js(&VITEST, text).or_else(|| VITEST_NONE.is_match(text).then_some(0))
}

fn go_test(command: &str, text: &str) -> Option<u32> {
    let packages = GO_OK
        .captures_iter(text)
        .filter(|found| !found.name("rest").is_some_and(|rest| rest.as_str().contains("[no tests to run]")))
        .count();
    let ran =
        lines(&GO_LINE, text).max(u32::try_from(packages).unwrap_or(u32::MAX).saturating_add(lines(&GO_FAIL, text)));
    let named = CMD_GO.is_match(command);
    if ran > 0 && (named || GO_LINE.is_match(text) || packages > 0) {
        return Some(ran);
    }
    GO_NONE.is_match(text).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(command: &str, stdout: &str) -> Option<(Runner, u32)> {
        count(command, stdout, "").map(|count| (count.runner, count.ran))
    }

    #[test]
    fn counts_of_every_runner() {
        let cargo = "running 3 tests\ntest a ... ok\ntest b ... ok\ntest c ... FAILED\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(ran("cargo test", cargo), Some((Runner::CargoTest, 3)));
        assert_eq!(
            ran("cargo nextest run", "     Summary [   0.145s] 17 tests run: 17 passed, 0 skipped"),
            Some((Runner::Nextest, 17))
        );
        assert_eq!(ran("pytest", "===== 3 passed, 1 failed, 2 skipped in 0.12s ====="), Some((Runner::Pytest, 4)));
        assert_eq!(ran("pytest -q", "..\n2 passed in 0.01s"), Some((Runner::Pytest, 2)));
        assert_eq!(ran("python -m unittest", "Ran 5 tests in 0.001s\n\nOK (skipped=2)"), Some((Runner::Unittest, 3)));
        assert_eq!(ran("npm test", "Tests:       1 failed, 3 passed, 4 total\nTime: 1s"), Some((Runner::Jest, 4)));
        assert_eq!(
            ran("npm test", " Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n"),
            Some((Runner::Vitest, 3))
        );
        assert_eq!(
            ran("go test ./...", "ok  \texample/a\t0.003s\nok  \texample/b\t(cached)"),
            Some((Runner::GoTest, 2))
        );
        assert_eq!(
            ran("go test -v", "=== RUN TestA\n--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nok \tx\t0.1s"),
            Some((Runner::GoTest, 2))
        );
    }

    #[test]
    fn zero_tests_of_every_runner() {
        for (command, text) in [
            (
                "cargo test",
                "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 7 filtered out;",
            ),
            ("cargo nextest run", "    Starting 0 tests across 1 binary\nerror: no tests to run"),
            ("cargo nextest run", "     Summary [   0.000s] 0 tests run: 0 passed, 9 skipped"),
            ("pytest", "collected 0 items\n\n===== no tests ran in 0.01s ====="),
            ("pytest -k x", "===== 4 deselected in 0.01s ====="),
            ("pytest", "===== 3 skipped in 0.01s ====="),
            ("python -m unittest", "Ran 0 tests in 0.000s\n\nOK"),
            ("python -m unittest", "Ran 0 tests in 0.000s\n\nNO TESTS RAN"),
            ("npx jest --passWithNoTests", "No tests found, exiting with code 0"),
            ("npx vitest run", "No test files found, exiting with code 0"),
            ("go test ./...", "?   \texample/a\t[no test files]"),
            ("go test ./... -run X", "ok  \texample/a\t0.001s [no tests to run]"),
        ] {
            assert_eq!(ran(command, text).map(|(_, n)| n), Some(0), "{command}: {text}");
        }
    }

    #[test]
    fn a_cut_beginning_does_not_make_a_suite_empty() {
        let text = "test x::y ... ok\ntest x::z ... ok\n\n   Doc-tests a\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored;";
        assert_eq!(ran("cargo test", text), Some((Runner::CargoTest, 2)));
    }

    #[test]
    fn colours_and_other_programs() {
        assert_eq!(
            ran("x", "\u{1b}[32m\u{1b}[1m2 passed\u{1b}[0m\u{1b}[32m in 0.01s\u{1b}[0m"),
            Some((Runner::Pytest, 2))
        );
        assert_eq!(ran("make check", "all good, 0 problems"), None);
        assert_eq!(ran("cargo build", "Finished dev"), None);
        assert_eq!(ran("a && b", "Ran 0 tests in 0.000s\nOK\n5 passed in 0.01s"), Some((Runner::Pytest, 5)));
    }
}
