//! How a command ends is told exactly, and fail closed.

use std::time::{Duration, Instant};

use harness_core::evidence::CommandExit;
use harness_proto::plan::Check;
use harnessd::evidence::{EvidenceError, collect};
use harnessd::process::processes_of_run;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, argv, exits};

#[tokio::test]
async fn all_checks_run_also_after_a_failure() {
    let bench = Bench::new();
    let checks = ["true", "exit 3", "kill -9 $$", "echo 'test result: ok. 0 passed'"].map(Check::shell);
    let runs = bench.runs(checks.to_vec()).await;
    let code = CommandExit::Code;
    assert_eq!(exits(&runs), [code(0), code(3), CommandExit::Signal(9), code(0)]);
    assert_eq!(runs[3].stdout, "test result: ok. 0 passed\n", "counting tests is the core's work; the words are kept");
    assert!(runs.iter().all(|run| run.output.len() == 64 && run.fingerprint.len() == 64));
    assert_eq!(runs[0].command, "true");
}

#[tokio::test]
async fn setup_ends_at_its_first_failure_and_then_nothing_runs() {
    let bench = Bench::new();
    let mut spec = bench.spec(vec![Check::shell("touch ran")]);
    spec.setup = vec![Check::shell("echo ready > made"), Check::shell("exit 1"), Check::shell("touch ran")];
    let collected = bench.collect(spec).await.unwrap();
    assert_eq!(exits(&collected.setup), [CommandExit::Code(0), CommandExit::Code(1)]);
    assert_eq!(collected.runs, vec![]);
    assert!(!bench.path("tree/ran").exists());
    let mut spec = bench.spec(vec![Check::shell("cat made")]);
    spec.setup = vec![Check::shell("echo again > made")];
    assert_eq!(bench.collect(spec).await.unwrap().runs[0].stdout, "again\n");
}

#[tokio::test]
async fn a_missing_program_is_told_however_it_was_asked_for() {
    let bench = Bench::new();
    std::fs::write(bench.path("tree/plain.txt"), "x").unwrap();
    let checks = vec![
        argv(&["no-such-program-x"]),
        Check::shell("no-such-program-x --flag"),
        Check::shell("./not-there.sh"),
        argv(&["./plain.txt"]),
        Check::shell("./plain.txt"),
        Check::shell("exit 127"),
        argv(&[]),
    ];
    let runs = bench.runs(checks).await;
    let missing = |name: &str| CommandExit::MissingProgram(name.to_owned());
    let found = exits(&runs);
    assert_eq!(
        found[..6],
        [
            missing("no-such-program-x"),
            missing("no-such-program-x"),
            missing("./not-there.sh"),
            missing("./plain.txt"),
            missing("./plain.txt"),
            CommandExit::Code(127),
        ]
    );
    assert!(matches!(found[6], CommandExit::NotStarted(_)), "{found:?}");
    assert!(runs[0].stderr.contains("no-such-program-x"), "why is shown");
}

#[tokio::test]
async fn a_timeout_kills_the_tree_and_the_next_check_runs() {
    let bench = Bench::new();
    let slow =
        Check { timeout_s: Some(1), ..Check::shell("trap '' TERM; echo begun; (setsid sleep 300 &) ; sleep 300") };
    let begun = Instant::now();
    let runs = bench.runs(vec![slow, Check::shell("true")]).await;
    assert_eq!(exits(&runs), [CommandExit::TimedOut, CommandExit::Code(0)]);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(runs[0].stdout, "begun\n");
    assert!(runs[0].stderr.contains("after 1 s"), "{}", runs[0].stderr);
    assert!(runs[0].duration_ms >= 1_000);
}

#[tokio::test]
async fn what_is_left_in_the_background_dies() {
    let bench = Bench::new();
    let run = bench
        .sh("(setsid sh -c 'sleep 300; touch late' >/dev/null 2>&1 &) ; nohup sleep 301 >/dev/null 2>&1 & exit 0")
        .await;
    // `sh` asserts that nothing of the run lives.
    assert_eq!(run.exit, CommandExit::Code(0));
}

#[tokio::test]
async fn an_interruption_ends_everything_and_is_no_evidence() {
    let bench = Bench::new();
    let stop = CancellationToken::new();
    let spec = bench.spec(vec![Check::shell("touch begun; sleep 300"), Check::shell("touch second")]);
    let begun = bench.path("tree/begun");
    let watch = async {
        while !begun.exists() {
            // why: paces the look at a predicate
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (result, ()) = tokio::join!(collect(spec, stop.clone(), |_| {}), watch);
    assert!(matches!(result, Err(EvidenceError::Interrupted)), "{result:?}");
    assert_eq!(processes_of_run(&bench.run), vec![]);
    assert!(!bench.path("tree/second").exists());
}

#[tokio::test]
async fn there_is_no_input() {
    let bench = Bench::new();
    let run = bench.sh("cat; test -t 0 && echo terminal; echo end").await;
    assert_eq!(run.stdout, "end\n");
}
