//! What kind of failure a command shows: ordered rules, the first that matches wins (S0-091; readings 000-3).
//!
//! Invariant: the answer depends on the command's own output and exit only, so that the same record always gets the same type.

use std::sync::LazyLock;

use harness_proto::vocab::FailureType;
use regex::{Regex, RegexBuilder};

/// What is known about a failed command.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'a> {
    /// Whether its limit passed.
    pub timed_out: bool,
    /// Whether its program does not exist.
    pub missing_program: bool,
    /// Exit code.
    pub exit_code: i32,
    /// Last part of standard output.
    pub stdout: &'a str,
    /// Last part of standard error.
    pub stderr: &'a str,
}

/// Rules after the timeout, in order. `SyntaxError` stands before `TEST_FAILURE`: pytest prints FAILED for both.
const RULES: &[(FailureType, &str)] = &[
    (FailureType::Timeout, r"\btimed out\b|\bTimeoutExpired\b"),
    (
        FailureType::EnvironmentError,
        r"\bEAI_AGAIN\b|\bENOTFOUND\b|\bECONNREFUSED\b.*registry|\bregistry\b.*\bunavailable\b|network is unreachable|could not resolve host|temporary failure in name resolution|failed to (?:download|fetch) (?:from|registry|`[^`]*` index)|spurious network error|pip.*could not fetch|\b(?:http|https|status|status code|registry|server|error|response|returned|code)\b\W{0,3}(?:code\W{0,2})?503\b|\b503 service unavailable\b|\bregistry\b.{0,80}\b503\b|no space left on device|\bENOSPC\b|disk quota exceeded|read-only file system|cannot allocate memory|too many open files|resource temporarily unavailable",
    ),
    (
        FailureType::DependencyError,
        r"ModuleNotFound|\bImportError\b|No module named|npm ERR.*\b404\b|could not resolve dependency|ERESOLVE|no matching package named|failed to select a version|cannot find module|no matching distribution found|cannot find package",
    ),
    (FailureType::CodeError, r"\bSyntaxError\b|\bIndentationError\b|\bTabError\b"),
    (
        FailureType::TypeError,
        r"\bmypy\b.*error|: error: .*\[[a-z-]+\]$|\bTypeError:.*expected|pydantic.*ValidationError|\bTS\d{4}\b|Property.*does not exist|error\[E0308\]|mismatched types",
    ),
    (
        FailureType::TestFailure,
        r"\bFAILED\b|\bAssertionError\b|\b[1-9]\d* failed\b|\bFAIL tests/|^\s*FAIL\b|--- FAIL:|assertion `?.*failed|panicked at|\bFAILURES\b|✕|✗",
    ),
    (
        FailureType::ConfigError,
        r"FileNotFound.*config|missing.*pyproject|requirements.*not found|\bport\b.*\bin use\b|EADDRINUSE|address already in use|missing script|no such file or directory|command not found|: not found\b|permission denied|unrecognized arguments|invalid option|could not find `Cargo\.toml`|no configuration file",
    ),
    (
        FailureType::CodeError,
        r"\bNameError\b|\bReferenceError\b|\bAttributeError\b|\bTypeError\b|\bZeroDivisionError\b|\bKeyError\b|\bValueError\b|^error(?:\[E\d{4}\])?:|could not compile|undefined:|\bTraceback\b|segmentation fault",
    ),
];

static COMPILED: LazyLock<Vec<(FailureType, Regex)>> = LazyLock::new(|| {
    RULES
        .iter()
        .map(|(kind, pattern)| {
            // Words of tools differ in case between versions; names of exceptions do not.
            let exact = matches!(kind, FailureType::CodeError | FailureType::TypeError | FailureType::TestFailure);
            let regex = RegexBuilder::new(pattern).case_insensitive(!exact).multi_line(true).build();
            (*kind, regex.expect("the rules are constant and tested"))
        })
        .collect()
});

/// The type of a failure; `UNKNOWN` when no rule matches.
#[must_use]
pub fn classify(failed: &Failed<'_>) -> FailureType {
    if failed.timed_out {
        return FailureType::Timeout;
    }
    if failed.missing_program {
        return FailureType::ConfigError;
    }
    let text = format!("{}\n{}", failed.stderr, failed.stdout);
    COMPILED.iter().find(|(_, rule)| rule.is_match(&text)).map_or(FailureType::Unknown, |(kind, _)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(stderr: &str) -> FailureType {
        classify(&Failed { timed_out: false, missing_program: false, exit_code: 1, stdout: "", stderr })
    }

    #[test]
    fn fixtures_classify_as_written() {
        use FailureType::{
            CodeError, ConfigError, DependencyError, EnvironmentError, TestFailure, Timeout, TypeError, Unknown,
        };
        for (text, expected) in [
            ("subprocess.TimeoutExpired: Command 'x' timed out after 1 seconds", Timeout),
            ("npm registry unavailable", EnvironmentError),
            ("getaddrinfo EAI_AGAIN registry.npmjs.org", EnvironmentError),
            ("curl: (6) Could not resolve host: example.invalid", EnvironmentError),
            ("pip: Could not fetch URL", EnvironmentError),
            ("HTTP 503 from index", EnvironmentError),
            ("error: registry `x` answered 503", EnvironmentError),
            ("OSError: [Errno 28] No space left on device", EnvironmentError),
            ("ModuleNotFoundError: No module named 'flask'", DependencyError),
            ("npm ERR! 404 Not Found", DependencyError),
            ("error: no matching package named `foo` found", DependencyError),
            ("E   SyntaxError: invalid syntax\nFAILED tests/test_a.py", CodeError),
            ("IndentationError: unexpected indent\n1 failed", CodeError),
            ("app.py:3: error: Incompatible types  [assignment]", TypeError),
            ("src/a.ts(1,2): error TS2322: Type 'x'", TypeError),
            ("error[E0308]: mismatched types", TypeError),
            ("FAILED tests/test_a.py::test_x - assert 503 == 200", TestFailure),
            ("AssertionError: 1 != 2", TestFailure),
            ("--- FAIL: TestAdd (0.00s)", TestFailure),
            ("thread 'main' panicked at src/lib.rs:1:1", TestFailure),
            ("requirements.txt not found", ConfigError),
            ("sh: 1: ruff: not found", ConfigError),
            ("Error: listen EADDRINUSE: address already in use", ConfigError),
            ("NameError: name 'x' is not defined", CodeError),
            ("ReferenceError: x is not defined", CodeError),
            ("error[E0425]: cannot find value `x` in this scope", CodeError),
            ("something odd", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }

    #[test]
    fn a_number_503_is_no_environment() {
        for text in ["expected 503 rows", "line 503: AssertionError", "port 5030", "id=1503"] {
            assert_ne!(of(text), FailureType::EnvironmentError, "{text}");
        }
    }

    #[test]
    fn facts_of_the_runtime_come_before_the_output() {
        let failed =
            Failed { timed_out: true, missing_program: false, exit_code: 124, stdout: "FAILED", stderr: "SyntaxError" };
        assert_eq!(classify(&failed), FailureType::Timeout);
        let failed = Failed { timed_out: false, missing_program: true, ..failed };
        assert_eq!(classify(&failed), FailureType::ConfigError);
    }
}
