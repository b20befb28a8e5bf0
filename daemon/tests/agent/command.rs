//! `command` agents, and what is looked at before a run.

use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use harness_core::effect::TurnLimits;
use harness_proto::ids::Millis;
use harness_proto::vocab::{FailureKind, Role};
use harnessd::agent::{AgentKind, Agents, PreflightError, StopSignal, TurnResult, preflight};
use serde_json::Value;

use crate::support::{Bench, failed, limits};

const REPORT: &str = r#"{"role":"implementer","task_id":"T1","attempt":1,"commit":"","summary":"done","files_changed":[],"checks_run":[],"proposed_tasks":[]}"#;

async fn run(bench: &Bench, script: &str, limits: TurnLimits) -> TurnResult {
    let program = bench.program("bin/agent", &format!("#!/bin/sh\n{script}\n"));
    let mut spec = bench.spec(Role::Implementer);
    spec.request.limits = limits;
    let kind = AgentKind::Command { argv: vec![program.to_string_lossy().into_owned(), "first word".to_owned()] };
    bench.run(&kind, &spec).await
}

async fn check(script: &str, limits: TurnLimits, wanted: Option<FailureKind>) {
    let bench = Bench::new();
    let result = run(&bench, script, limits).await;
    let found = result.text_report.as_ref().err().map(|failed| failed.kind);
    assert_eq!(found, wanted, "{script}: {:?}", result.text_report);
    assert_eq!((result.session, result.resumed), (None, false));
    bench.finish().await;
}

#[tokio::test]
async fn a_report_on_stdout_is_taken() {
    let long = limits(1, 1, 20);
    check(&format!("cat >/dev/null; echo '{REPORT}'"), long, None).await;
    // Input that nobody reads, noise on standard error, silence longer than the limit for chatty agents.
    check(&format!("head -c 3000000 /dev/zero >&2; sleep 2; echo '{REPORT}'"), long, None).await;
    check(&format!("printf 'It is done.\\n```json\\n%s\\n```\\n' '{REPORT}'"), long, None).await;
    // What it leaves running is ended with it.
    check(&format!("sleep 100 & setsid sleep 100 & echo '{REPORT}'"), long, None).await;
}

#[tokio::test]
async fn every_other_end_is_typed() {
    let long = limits(1, 1, 20);
    check("exit 3", long, Some(FailureKind::Crashed)).await;
    check(&format!("echo '{REPORT}'; exit 1"), long, Some(FailureKind::Crashed)).await;
    check("kill -9 $$", long, Some(FailureKind::Crashed)).await;
    check("exit 0", long, Some(FailureKind::NoReport)).await;
    check("echo; echo", long, Some(FailureKind::NoReport)).await;
    check("echo I did it", long, Some(FailureKind::InvalidReport)).await;
    check("printf '\\377\\376{\\0'", long, Some(FailureKind::InvalidReport)).await;
    check("echo '[1]'", long, Some(FailureKind::InvalidReport)).await;
    check("head -c 50000000 /dev/zero", long, Some(FailureKind::InvalidReport)).await;
    check("yes", long, Some(FailureKind::InvalidReport)).await;
    check("exec sleep 100", limits(1, 1, 1), Some(FailureKind::Timeout)).await;
    check("exec >&-; sleep 100", limits(1, 1, 1), Some(FailureKind::Timeout)).await;
    check("trap '' TERM; sleep 100; sleep 100", limits(1, 1, 1), Some(FailureKind::Timeout)).await;
}

#[tokio::test]
async fn a_program_may_tell_its_failure() {
    let bench = Bench::new();
    let told = r#"echo '{"failure":{"kind":"rate_limited","message":"later planted-secret-value","until":5}}'"#;
    let result = run(&bench, told, limits(1, 1, 20)).await;
    assert_eq!(failed(&result).kind, FailureKind::RateLimited);
    assert_eq!(failed(&result).message, "later [redacted]");
    assert_eq!(failed(&result).until, Some(Millis(5)));
    let told = r#"echo '{"failure":{"kind":"tired"}}'"#;
    let result = run(&bench, told, limits(1, 1, 20)).await;
    assert_eq!(failed(&result).kind, FailureKind::Refused);
    bench.finish().await;
}

#[tokio::test]
async fn the_turn_is_on_stdin_and_in_the_environment() {
    let bench = Bench::new();
    let copy = bench.path("copy");
    let script = format!(
        "cat > {copy}; echo \"$1|$PWD|$TMPDIR|$HARNESS_RUN|$HARNESS_TASK|$HARNESS_ROLE|$CI\" > {copy}.env; echo '{REPORT}'",
        copy = copy.display()
    );
    run(&bench, &script, limits(1, 1, 20)).await.text_report.unwrap();
    let frame: Value = serde_json::from_slice(&std::fs::read(&copy).unwrap()).unwrap();
    assert_eq!(frame["schema"], "harness.turn/1");
    assert_eq!(
        (&frame["role"], &frame["task_id"], &frame["attempt"]),
        (&"implementer".into(), &"T1".into(), &1.into())
    );
    assert!(frame["context"].is_object() && frame["report_schema"].is_object());
    let env = std::fs::read_to_string(bench.path("copy.env")).unwrap();
    let (tree, tmp) = (bench.path("tree"), bench.path("tmp"));
    let wanted = format!("first word|{}|{}|{}|T1|implementer|1\n", tree.display(), tmp.display(), bench.run);
    assert_eq!(env, wanted);
    bench.finish().await;
}

#[tokio::test]
async fn the_offline_agent_is_our_own_binary() {
    let bench = Bench::new();
    let script =
        format!("#!/bin/sh\ncat >/dev/null\necho \"$*\" > {}\necho '{REPORT}'\n", bench.path("args").display());
    let agents = Agents::new(bench.program("bin/own", &script));
    for (text, wanted) in [("offline", "offline-agent\n"), ("offline:faults=a b", "offline-agent --faults a b\n")] {
        let kind = text.parse().unwrap();
        let note = |_| async {}.boxed();
        let result = agents.run_turn(&kind, &bench.spec(Role::Implementer), StopSignal::default(), &note).await;
        assert!(result.text_report.is_ok(), "{result:?}");
        assert_eq!(result.agent, concat!("offline ", env!("CARGO_PKG_VERSION")));
        assert_eq!(std::fs::read_to_string(bench.path("args")).unwrap(), wanted);
    }
    bench.finish().await;
}

#[tokio::test]
async fn secrets_on_standard_error_are_not_kept() {
    let bench = Bench::new();
    let result = run(&bench, "echo saw $AGENT_API_KEY >&2; exit 1", limits(1, 1, 20)).await;
    assert!(failed(&result).message.ends_with("its last words: saw [redacted]"), "{result:?}");
    for entry in std::fs::read_dir(bench.path("scratch")).unwrap() {
        let entry = entry.unwrap();
        // The launcher leaves a FIFO there as well.
        if !entry.file_type().unwrap().is_file() {
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("planted-secret-value"));
    }
    bench.finish().await;
}

#[tokio::test]
async fn a_stop_ends_the_program() {
    for now in [false, true] {
        let bench = Bench::new();
        let program = bench.program("bin/agent", "#!/bin/sh\nexec sleep 100\n");
        let kind = format!("command:{}", program.display()).parse().unwrap();
        let (signal, spec) = (StopSignal::default(), bench.spec(Role::Implementer));
        let turn = bench.run_with(&kind, &spec, signal.clone());
        let stopping = async {
            while bench.started.lock().unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
            if now {
                signal.now.cancel()
            } else {
                signal.graceful.cancel()
            }
            Instant::now()
        };
        let (result, since) = tokio::join!(turn, stopping);
        assert_eq!(failed(&result).kind, FailureKind::Interrupted);
        assert!(since.elapsed() < Duration::from_secs(4));
        bench.finish().await;
    }
}

#[tokio::test]
async fn preflight_tells_what_is_wrong_with_a_program() {
    let bench = Bench::new();
    let env = bench.spec(Role::Implementer).env;
    let look = async |kind: &str| {
        let kind: AgentKind = kind.parse().unwrap();
        preflight(&kind, std::path::Path::new("/proc/self/exe"), &env, &bench.path("scratch")).await
    };
    let facts = look(&format!("codex:{}", bench.path("bin/codex").display())).await.unwrap();
    assert_eq!((facts.name, facts.version.as_str()), ("codex", "codex-cli 0.0.0-fake"));
    assert_eq!(look("offline").await.unwrap().version, env!("CARGO_PKG_VERSION"));
    assert!(look("command:sh -c true").await.unwrap().path.ends_with("sh"));
    let error = look("command:no-such-program-anywhere").await.unwrap_err();
    assert!(matches!(error, PreflightError::NotInPath { .. }), "{error}");
    let error = look("codex:/nowhere/codex").await.unwrap_err();
    assert!(matches!(error, PreflightError::Missing { .. }), "{error}");
    let error = look(&format!("codex:{}", bench.path("tree").display())).await.unwrap_err();
    assert!(matches!(error, PreflightError::NotAFile { .. }), "{error}");
    let error = look(&format!("codex:{}", bench.path("settings.json").display())).await.unwrap_err();
    assert!(matches!(error, PreflightError::NotExecutable { .. }), "{error}");
    let bad = bench.program("bin/bad", "#!/bin/sh\nexit 4\n");
    let error = look(&format!("codex:{}", bad.display())).await.unwrap_err();
    assert!(error.to_string().ends_with("exited with status 4: is it the program that was meant?"), "{error}");
    bench.finish().await;
}

#[tokio::test]
async fn the_offline_agent_plans_and_errs_for_real() {
    let bench = Bench::new();
    let turn = async |kind: &str, goal: &str| {
        let mut spec = bench.spec(Role::Planner);
        spec.request.context = serde_json::json!({ "goal": goal });
        bench.run(&kind.parse().unwrap(), &spec).await
    };
    let goal = "a notes command-line tool: add, list, search, with tests";
    let result = turn("offline", goal).await;
    assert!(result.text_report.is_ok(), "{result:?}");
    assert!(bench.path("plan/tasks.json").is_file());
    let result = turn("offline", "prove the Riemann hypothesis").await;
    assert_eq!(failed(&result).kind, FailureKind::Refused);
    for (fault, kind) in [
        ("crash", FailureKind::Crashed),
        ("garbage", FailureKind::InvalidReport),
        ("empty", FailureKind::NoReport),
        ("bad_report", FailureKind::InvalidReport),
        ("big_report=50000000", FailureKind::InvalidReport),
    ] {
        let result = turn(&format!("offline:faults={fault}@planner"), goal).await;
        assert_eq!(failed(&result).kind, kind, "{fault}: {result:?}");
    }
    bench.finish().await;
}
