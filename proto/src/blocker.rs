//! What keeps an attempt from being integrated: every code of the gate, in words for people (DESIGN 8; `harnessctl explain`).
//!
//! The gate of `harness-core` gives the codes with the details of the case; a tidy test compares the two lists.

/// A code of the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockerWord {
    /// Stable symbolic code.
    pub code: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What helps.
    pub next: &'static str,
}

const fn word(code: &'static str, meaning: &'static str, next: &'static str) -> BlockerWord {
    BlockerWord { code, meaning, next }
}

/// Every code, in alphabetical order.
pub const BLOCKERS: &[BlockerWord] = &[
    word(
        "CRITERION_FAILED",
        "the verifier found that an acceptance criterion does not hold",
        "read its finding with `harnessctl show TASK`; the next attempt is told",
    ),
    word(
        "CRITERION_MISSING",
        "the verifier's report does not answer every acceptance criterion",
        "the verifier is asked again; a criterion that nobody can judge must be rewritten in tasks.json",
    ),
    word(
        "CRITERION_SKIPPED",
        "the verifier did not look at an acceptance criterion, and what was not looked at is not accepted",
        "make the criterion checkable in the tree, or take it out of tasks.json",
    ),
    word(
        "EVIDENCE_FAILED",
        "a command that plan or launch name ended with an error on the exact commit",
        "read its output with `harnessctl show TASK --evidence`; the next attempt is told",
    ),
    word(
        "EVIDENCE_MISSING",
        "a command that plan or launch name has no record on this tree",
        "it is run again at the next attempt; if it stays, `harnessctl doctor` says what keeps commands from running",
    ),
    word(
        "EVIDENCE_STALE",
        "the record of a command is of another tree, command or environment",
        "nothing: the command is run again",
    ),
    word(
        "EVIDENCE_TIMED_OUT",
        "a command did not end within its limit",
        "make it faster, or give it more time with `timeout_s` in tasks.json or `--set evidence.timeout_s=N`",
    ),
    word(
        "FINDING_CRITICAL",
        "the verifier reported a finding that must not ship",
        "read it with `harnessctl show TASK`; the next attempt is told",
    ),
    word(
        "HARNESS_FILE_CHANGED",
        "the commit changes a file that belongs to the runtime, such as tasks.json or harness-state.json",
        "nothing: the attempt is thrown back; only the planner changes the plan",
    ),
    word(
        "NOT_DESCENDED",
        "the commit does not descend from the base that the attempt was given",
        "nothing: the attempt is thrown back; work belongs on top of the base, without switching branches",
    ),
    word(
        "NO_CHANGE",
        "the attempt changes nothing, and doing nothing is no success",
        "if the task needs no change, `harnessctl skip TASK --reason …`",
    ),
    word(
        "NO_VERIFICATION",
        "no command could prove the work",
        "add `verification` to the task, or start with `--verify CMD`; `--no-verification` accepts unproven work and says so",
    ),
    word(
        "PROTECTED_PATH",
        "the commit changes a path that `protected_paths` names",
        "nothing: the attempt is thrown back; take the path out of the policy if the change is wanted",
    ),
    word(
        "SIGNAL_RAISED",
        "the verifier says that it cannot judge: the environment is blocked, or the criteria are ambiguous",
        "the planner is asked; make the criteria decidable, or repair the environment",
    ),
    word(
        "TREE_PROBLEM",
        "the tree of the attempt is not in a state that can be read: HEAD, a path or a nested repository",
        "read the detail with `harnessctl show TASK`; the attempt is thrown back",
    ),
    word(
        "VERDICT_REVERT",
        "the verifier would not take the commit",
        "read its summary with `harnessctl show TASK`; the next attempt is told",
    ),
    word(
        "ZERO_TESTS",
        "a test command passed without running a test",
        "make the command find its tests; `expect_tests_min` in tasks.json says how many there must be",
    ),
];

/// The word of a code.
#[must_use]
pub fn blocker(code: &str) -> Option<&'static BlockerWord> {
    BLOCKERS.iter().find(|word| word.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blockers_are_sorted_unique_and_explained() {
        assert!(BLOCKERS.windows(2).all(|pair| pair[0].code < pair[1].code));
        assert!(BLOCKERS.iter().all(|word| !word.meaning.is_empty() && !word.next.is_empty()));
        assert_eq!(blocker("ZERO_TESTS").map(|word| word.code), Some("ZERO_TESTS"));
        assert_eq!(blocker("zero"), None);
    }
}
