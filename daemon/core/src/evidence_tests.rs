//! What a command's end counts for.

use proptest::prelude::*;

use super::*;

fn run(exit: CommandExit) -> CommandRun {
    CommandRun {
        command: "pytest -q".into(),
        expect_tests_min: None,
        exit,
        stdout: String::new(),
        stderr: String::new(),
        output: "d".into(),
        output_bytes: 0,
        duration_ms: 5,
        fingerprint: "f".into(),
    }
}

fn context(setup: bool) -> RecordContext {
    RecordContext {
        purpose: Purpose::Trial,
        setup,
        task: None,
        attempt: 1,
        commit: "c".into(),
        tree: "t".into(),
        at: Millis(7),
    }
}

fn of(change: impl FnOnce(&mut CommandRun)) -> EvidenceRecord {
    let mut run = run(CommandExit::Code(0));
    change(&mut run);
    record(&run, context(false))
}

#[test]
fn ends_have_the_codes_that_shells_use() {
    for (exit, code, result) in [
        (CommandExit::Code(0), 0, EvidenceResult::Pass),
        (CommandExit::Code(3), 3, EvidenceResult::Fail),
        (CommandExit::Signal(9), 137, EvidenceResult::Fail),
        (CommandExit::TimedOut, 124, EvidenceResult::TimedOut),
        (CommandExit::MissingProgram("x".into()), 127, EvidenceResult::Fail),
        (CommandExit::NotStarted("why".into()), 126, EvidenceResult::Fail),
    ] {
        let record = record(&run(exit.clone()), context(false));
        assert_eq!((record.exit_code, record.result), (code, result), "{exit:?}");
        assert_eq!(record.failure.is_none(), result == EvidenceResult::Pass);
        assert_eq!(record.signature.is_empty(), result == EvidenceResult::Pass);
    }
}

#[test]
fn exit_0_without_tests_is_no_pass() {
    let zero = of(|r| r.stdout = "no tests ran in 0.01s".into());
    assert_eq!((zero.result, zero.tests, zero.note.as_str()), (EvidenceResult::Fail, Some(0), "no test ran"));
    let few = of(|r| {
        r.stdout = "2 passed in 0.01s".into();
        r.expect_tests_min = Some(3);
    });
    assert_eq!((few.result, few.note.as_str()), (EvidenceResult::Fail, "2 tests ran, at least 3 must"));
    let unknown = of(|r| {
        r.stdout = "fine".into();
        r.expect_tests_min = Some(1);
    });
    assert!(unknown.note.contains("no test runner was recognised"));
    let allowed = of(|r| {
        r.stdout = "no tests ran in 0.01s".into();
        r.expect_tests_min = Some(0);
    });
    assert_eq!(allowed.result, EvidenceResult::Pass);
    assert_eq!(of(|r| r.stdout = "2 passed in 0.01s".into()).tests, Some(2));
    let mut setup = run(CommandExit::Code(0));
    setup.stdout = "no tests ran in 0.01s".into();
    assert_eq!(record(&setup, context(true)).result, EvidenceResult::Pass, "setup only has to work");
}

#[test]
fn records_keep_the_end_of_long_output() {
    let record = of(|r| r.stdout = format!("{}END", "ä".repeat(9_000)));
    assert_eq!(record.stdout.chars().count(), 4_000);
    assert!(record.stdout.ends_with("END"));
}

#[test]
fn the_machine_is_not_the_code() {
    let failing = |stderr: &str, setup: bool| {
        let mut run = run(CommandExit::Code(1));
        run.stderr = stderr.into();
        is_environment(&record(&run, context(setup)))
    };
    assert!(failing("Could not resolve host: example", false));
    assert!(failing("No space left on device", false));
    assert!(!failing("FAILED tests/a.py", false));
    assert!(!failing("ModuleNotFoundError: No module named 'x'", false));
    assert!(failing("ModuleNotFoundError: No module named 'x'", true), "setup that cannot install is the machine's");
    assert!(failing("odd", true) && !failing("odd", false));
    assert!(!failing("SyntaxError: invalid syntax", true), "setup that meets broken code is the code's");
    assert!(is_environment(&record(&run(CommandExit::NotStarted("fork".into())), context(false))));
    assert!(is_environment(&record(&run(CommandExit::MissingProgram("uv".into())), context(true))));
    assert!(!is_environment(&record(&run(CommandExit::MissingProgram("x".into())), context(false))));
    assert!(!is_environment(&record(&run(CommandExit::Code(0)), context(true))));
}

proptest! {
    #[test]
    fn only_exit_0_can_pass(code in -5i32..300, stdout in "[ -~]{0,80}", min in proptest::option::of(0u32..3)) {
        let mut fact = run(CommandExit::Code(code));
        fact.stdout = stdout;
        fact.expect_tests_min = min;
        let record = record(&fact, context(false));
        prop_assert!(record.result != EvidenceResult::Pass || code == 0);
        if let (Some(min), EvidenceResult::Pass) = (min, record.result) {
            prop_assert!(min == 0 || record.tests.is_some_and(|ran| ran >= min));
        }
    }
}
