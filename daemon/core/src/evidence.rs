//! Evidence as facts and as records (DESIGN 8).

use harness_proto::ids::{Millis, TaskId};
use harness_proto::vocab::{EvidenceResult, FailureType};
use serde::{Deserialize, Serialize};

use crate::classify::{Failed, classify};
use crate::effect::Purpose;
use crate::output::tail;
use crate::signature::signature;
use crate::tests_count::count;

/// Characters of each stream that a record keeps.
const TAIL_CHARS: usize = 4_000;

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// With an exit code.
    Code(i32),
    /// By a signal.
    Signal(i32),
    /// Killed by the runtime at its limit.
    TimedOut,
    /// Its program does not exist or cannot be executed.
    MissingProgram(String),
    /// The runtime could not start it; in words.
    NotStarted(String),
}

/// A command that the runtime ran itself: the raw fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    /// As shown.
    pub command: String,
    /// Fewest tests that must have run, when the check names a number.
    pub expect_tests_min: Option<u32>,
    /// How it ended.
    pub exit: CommandExit,
    /// Last part of standard output (at most 16,000 characters), lossy, redacted.
    pub stdout: String,
    /// Last part of standard error (at most 16,000 characters), lossy, redacted.
    pub stderr: String,
    /// Digest of the whole output file (stdout, then stderr).
    pub output: String,
    /// Bytes of output in all.
    pub output_bytes: i64,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// sha256 of tree, command and environment.
    pub fingerprint: String,
}

/// A command's result as it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRecord {
    /// What it was collected for.
    pub purpose: Purpose,
    /// Whether it is a setup command.
    pub setup: bool,
    /// Task, none for baseline and restack.
    pub task: Option<TaskId>,
    /// Attempt, 0 when none.
    pub attempt: u32,
    /// Commit.
    pub commit: String,
    /// Tree of the commit.
    pub tree: String,
    /// As shown.
    pub command: String,
    /// Exit code; 128 + n for signal n, 124 for a timeout, 127 for a missing program.
    pub exit_code: i32,
    /// The result; fail closed.
    pub result: EvidenceResult,
    /// What kind of failure, none for a pass.
    pub failure: Option<FailureType>,
    /// Why a command with exit 0 fails all the same (zero tests); empty otherwise.
    pub note: String,
    /// Tests that ran, when the runner is recognised.
    pub tests: Option<u32>,
    /// Last 4,000 characters.
    pub stdout: String,
    /// Last 4,000 characters.
    pub stderr: String,
    /// Digest of the whole output.
    pub output: String,
    /// Wall time in milliseconds.
    pub duration_ms: i64,
    /// Same fingerprint: same evidence.
    pub fingerprint: String,
    /// Loop signature of a failure (DESIGN 8), empty for a pass.
    pub signature: String,
    /// When it was recorded.
    pub at: Millis,
}

/// What a record is about, besides the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordContext {
    /// What it was collected for.
    pub purpose: Purpose,
    /// Whether it is a setup command.
    pub setup: bool,
    /// Task, none for baseline and restack.
    pub task: Option<TaskId>,
    /// Attempt, 0 when none.
    pub attempt: u32,
    /// Commit.
    pub commit: String,
    /// Tree of the commit.
    pub tree: String,
    /// When it is recorded.
    pub at: Millis,
}

/// Turns a fact into what it counts for. Fail closed: a pass needs exit 0 and, where tests are expected, tests that ran. A setup
/// command needs exit 0 only.
#[must_use]
pub fn record(run: &CommandRun, ctx: RecordContext) -> EvidenceRecord {
    let (exit_code, mut note) = exit_code(&run.exit);
    let tests = count(&run.command, &run.stdout, &run.stderr).map(|count| count.ran);
    let ended_well = matches!(run.exit, CommandExit::Code(0));
    if ended_well && !ctx.setup {
        note = too_few_tests(tests, run.expect_tests_min);
    }
    let result = match run.exit {
        CommandExit::TimedOut => EvidenceResult::TimedOut,
        CommandExit::Code(0) if note.is_empty() => EvidenceResult::Pass,
        CommandExit::Code(_) | CommandExit::Signal(_) | CommandExit::MissingProgram(_) | CommandExit::NotStarted(_) => {
            EvidenceResult::Fail
        }
    };
    let failure = (result != EvidenceResult::Pass).then(|| match run.exit {
        CommandExit::NotStarted(_) => FailureType::EnvironmentError,
        CommandExit::Code(0) => FailureType::TestFailure,
        _ => classify(&Failed {
            timed_out: result == EvidenceResult::TimedOut,
            missing_program: matches!(run.exit, CommandExit::MissingProgram(_)),
            exit_code,
            stdout: &run.stdout,
            stderr: &run.stderr,
        }),
    });
    let signature = match result {
        EvidenceResult::Pass => String::new(),
        EvidenceResult::Fail | EvidenceResult::TimedOut if ended_well => signature(&run.command, exit_code, "", &note),
        EvidenceResult::Fail | EvidenceResult::TimedOut => signature(&run.command, exit_code, &run.stdout, &run.stderr),
    };
    EvidenceRecord {
        purpose: ctx.purpose,
        setup: ctx.setup,
        task: ctx.task,
        attempt: ctx.attempt,
        commit: ctx.commit,
        tree: ctx.tree,
        command: run.command.clone(),
        exit_code,
        result,
        failure,
        note,
        tests,
        stdout: tail(&run.stdout, TAIL_CHARS).to_owned(),
        stderr: tail(&run.stderr, TAIL_CHARS).to_owned(),
        output: run.output.clone(),
        duration_ms: run.duration_ms,
        fingerprint: run.fingerprint.clone(),
        signature,
        at: ctx.at,
    }
}

/// The exit code of a record and why there is none of the program's own.
fn exit_code(exit: &CommandExit) -> (i32, String) {
    match exit {
        CommandExit::Code(code) => (*code, String::new()),
        CommandExit::Signal(number) => (128 + number, format!("ended by signal {number}")),
        CommandExit::TimedOut => (124, "its time limit passed".to_owned()),
        CommandExit::MissingProgram(program) => (127, format!("program `{program}` does not exist or cannot be run")),
        CommandExit::NotStarted(why) => (126, format!("could not be started: {why}")),
    }
}

/// Why an exit 0 proves nothing; empty when it does.
fn too_few_tests(tests: Option<u32>, expected: Option<u32>) -> String {
    match (tests, expected) {
        (None, None | Some(0)) | (Some(_), Some(0)) => String::new(),
        (None, Some(min)) => format!("at least {min} tests must run, but no test runner was recognised in the output"),
        (Some(0), None) => "no test ran".to_owned(),
        (Some(_), None) => String::new(),
        (Some(ran), Some(min)) if ran < min => format!("{ran} tests ran, at least {min} must"),
        (Some(_), Some(_)) => String::new(),
    }
}

/// Whether a failure is the machine's and not the code's: such a failure costs no attempt and is no reason to rewrite code
/// (DESIGN 4). A setup command fails for the environment unless its output says that the code is wrong.
#[must_use]
pub fn is_environment(record: &EvidenceRecord) -> bool {
    match record.failure {
        None => false,
        Some(FailureType::EnvironmentError) => true,
        Some(FailureType::CodeError | FailureType::TypeError | FailureType::TestFailure) => false,
        Some(FailureType::DependencyError | FailureType::ConfigError | FailureType::Timeout | FailureType::Unknown) => {
            record.setup
        }
    }
}

#[cfg(test)]
#[path = "evidence_tests.rs"]
mod tests;
