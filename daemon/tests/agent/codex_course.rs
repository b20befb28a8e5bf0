//! What goes over the wire in a turn, what is kept of it, and how a stop ends it.

use std::time::{Duration, Instant};

use harness_proto::ids::Millis;
use harness_proto::report::Report;
use harness_proto::vocab::{FailureKind, Role, Verdict};
use harnessd::agent::StopSignal;
use serde_json::Value;

use crate::support::{Bench, failed};

/// Frames of the transcript that went one way.
fn frames(bench: &Bench, way: &str) -> Vec<Value> {
    let lines = bench.lines("transcript.jsonl");
    let ours = lines.iter().filter(|line| line["way"] == way);
    ours.filter_map(|line| serde_json::from_str(line["text"].as_str().unwrap()).ok()).collect()
}

fn sent<'a>(frames: &'a [Value], method: &str) -> &'a Value {
    frames.iter().find(|frame| frame["method"] == method).unwrap()
}

#[tokio::test]
async fn the_implementers_work_and_usage_come_back() {
    let bench = Bench::new();
    let result = bench.run(&bench.codex(), &bench.spec(Role::Implementer)).await;
    let Ok(Report::Implementer(report)) = &result.text_report else {
        panic!("{result:?}");
    };
    assert_eq!(report.commit, bench.git(&bench.path("tree"), "rev-parse HEAD"));
    assert_eq!(result.usage.total_tokens, 100);
    assert_eq!(result.usage.input_tokens + result.usage.output_tokens, 100);
    assert!(result.usage.duration_ms > 0);
    assert_eq!(result.agent, "codex 0.0.0-fake");
    assert!(result.session.is_some() && !result.resumed);
    let effects: Vec<_> = bench.lines("ledger").iter().map(|line| line["effect"].clone()).collect();
    assert_eq!(effects, ["turn_begun", "file_written", "commit_made", "turn_ended"]);
    for line in bench.lines("ledger") {
        assert_eq!((&line["run"], &line["task"]), (&bench.run.as_str().into(), &"T1".into()));
        assert_eq!(line["nonce"], bench.started.lock().unwrap()[0].marker.nonce.as_str());
    }
    bench.finish().await;
}

#[tokio::test]
async fn the_verifier_answers_every_criterion_of_the_prompt() {
    let bench = Bench::new();
    let mut spec = bench.spec(Role::Verifier);
    // Without ids in the schema the peer has to find them in the prompt.
    spec.schema = harness_proto::report::schema::schema(Role::Verifier);
    let result = bench.run(&bench.codex(), &spec).await;
    let Ok(Report::Verifier(report)) = &result.text_report else {
        panic!("{result:?}");
    };
    assert_eq!(report.verdict, Verdict::Accept);
    let ids: Vec<_> = report.criteria_results.iter().map(|found| found.criterion.as_str()).collect();
    assert_eq!(ids, ["C1", "C2"]);
    bench.finish().await;
}

#[tokio::test]
async fn the_planner_writes_into_the_plan_folder() {
    let bench = Bench::new();
    let result = bench.run(&bench.codex(), &bench.spec(Role::Planner)).await;
    assert!(result.text_report.is_ok(), "{result:?}");
    assert!(bench.path("plan/tasks.json").is_file() && bench.path("plan/plan.md").is_file());
    assert!(!bench.path("tree/tasks.json").exists());
    bench.finish().await;
}

#[tokio::test]
async fn the_sandbox_and_the_schema_go_with_every_turn() {
    let bench = Bench::new();
    let mut spec = bench.spec(Role::Implementer);
    spec.network = true;
    bench.run(&bench.codex(), &spec).await.text_report.unwrap();
    let frames = frames(&bench, ">");
    assert_eq!(sent(&frames, "initialize")["params"]["clientInfo"]["name"], "harnessd");
    let thread = &sent(&frames, "thread/start")["params"];
    assert_eq!(thread["approvalPolicy"], "never");
    assert_eq!(thread["sandbox"], "workspace-write");
    assert_eq!(thread["ephemeral"], false);
    let turn = &sent(&frames, "turn/start")["params"];
    assert_eq!(turn["outputSchema"], spec.schema);
    assert_eq!(turn["cwd"], spec.cwd.to_str().unwrap());
    let policy = &turn["sandboxPolicy"];
    assert_eq!(policy["type"], "workspaceWrite");
    let roots = [bench.path("tree/.git"), bench.path("tmp")];
    let roots: Vec<_> = roots.iter().map(|root| Value::from(root.to_str().unwrap())).collect();
    assert_eq!(policy["writableRoots"], Value::from(roots));
    for member in ["networkAccess", "excludeSlashTmp", "excludeTmpdirEnvVar"] {
        assert_eq!(policy[member], true, "{member}");
    }
    bench.finish().await;
}

#[tokio::test]
async fn danger_frees_the_sandbox() {
    let bench = Bench::new();
    let mut spec = bench.spec(Role::Verifier);
    spec.danger = true;
    bench.run(&bench.codex(), &spec).await.text_report.unwrap();
    let frames = frames(&bench, ">");
    assert_eq!(sent(&frames, "thread/start")["params"]["sandbox"], "danger-full-access");
    assert_eq!(sent(&frames, "turn/start")["params"]["sandboxPolicy"]["type"], "dangerFullAccess");
    bench.finish().await;
}

#[tokio::test]
async fn requests_of_the_server_are_declined_or_refused() {
    let bench = Bench::with_faults("approval; unknown_request");
    bench.run(&bench.codex(), &bench.spec(Role::Implementer)).await.text_report.unwrap();
    let answers: Vec<_> = bench.lines("log").into_iter().filter(|line| line["event"] == "answer").collect();
    assert_eq!(answers[0]["answer"]["decision"], "decline");
    assert_eq!(answers[1]["answer"]["code"], -32601);
    let words = answers[1]["answer"]["message"].as_str().unwrap();
    assert_eq!(words, "Unsupported server request: item/tool/requestUserInput");
    bench.finish().await;
}

#[tokio::test]
async fn secrets_are_in_no_report_no_message_and_no_transcript() {
    let bench =
        Bench::with_faults("noop_summary=saw planted-secret-value@implementer; fail=no planted-secret-value@verifier");
    let result = bench.run(&bench.codex(), &bench.spec(Role::Implementer)).await;
    assert_eq!(result.text_report.unwrap().summary(), "saw [redacted]");
    let result = bench.run(&bench.codex(), &bench.spec(Role::Verifier)).await;
    assert!(failed(&result).message.ends_with("no [redacted]"), "{result:?}");
    let transcript = std::fs::read_to_string(bench.path("transcript.jsonl")).unwrap();
    assert!(!transcript.contains("planted-secret-value") && transcript.contains("saw [redacted]"));
    bench.finish().await;
}

#[tokio::test]
async fn a_usage_limit_names_the_end_of_its_window() {
    let bench = Bench::with_faults("usage_limit=1900000000");
    let result = bench.run(&bench.codex(), &bench.spec(Role::Implementer)).await;
    assert_eq!(failed(&result).kind, FailureKind::UsageLimited);
    assert_eq!(failed(&result).until, Some(Millis(1_900_000_000_000)));
    bench.finish().await;
}

#[tokio::test]
async fn a_crash_is_told_with_status_and_last_words() {
    let bench = Bench::with_faults("stderr=50@process; exit_on_start=7@process");
    let result = bench.run(&bench.codex(), &bench.spec(Role::Implementer)).await;
    let words = format!(
        "the agent's process exited with status 7 while it was asked to `initialize`; its last words: {}",
        "e".repeat(50)
    );
    assert_eq!(failed(&result).message, words);
    bench.finish().await;
}

/// Stops a turn of the peer in the middle; gives the result and how long the stop took.
async fn stopped(bench: &Bench, stop: impl Fn(&StopSignal)) -> (FailureKind, Duration) {
    let (signal, kind, spec) = (StopSignal::default(), bench.codex(), bench.spec(Role::Implementer));
    let turn = bench.run_with(&kind, &spec, signal.clone());
    let stopping = async {
        bench.effect("turn_begun").await;
        stop(&signal);
        Instant::now()
    };
    let (result, since) = tokio::join!(turn, stopping);
    bench.finish().await;
    (failed(&result).kind, since.elapsed())
}

#[tokio::test]
async fn a_stop_interrupts_the_turn() {
    let bench = Bench::with_faults("hang");
    let (kind, took) = stopped(&bench, |signal| signal.graceful.cancel()).await;
    assert_eq!(kind, FailureKind::Interrupted);
    assert!(took < Duration::from_secs(4), "{took:?}");
    let ended = bench.lines("ledger").into_iter().find(|line| line["effect"] == "turn_ended").unwrap();
    assert_eq!(ended["detail"], "interrupted");
}

#[tokio::test]
async fn a_stop_now_kills_a_turn_that_does_not_listen() {
    let bench = Bench::with_faults("hang_hard; ignore_term@process; ignore_eof@process");
    let (kind, took) = stopped(&bench, |signal| signal.now.cancel()).await;
    assert_eq!(kind, FailureKind::Interrupted);
    assert!(took < Duration::from_secs(3), "{took:?}");
    // A graceful stop waits, and a second word cuts it short.
    let bench = Bench::with_faults("hang_hard; ignore_term@process; ignore_eof@process");
    let (kind, took) = stopped(&bench, |signal| {
        signal.graceful.cancel();
        signal.now.cancel();
    })
    .await;
    assert_eq!(kind, FailureKind::Interrupted);
    assert!(took < Duration::from_secs(3), "{took:?}");
}

#[tokio::test]
async fn a_stop_during_the_handshake_does_not_hang() {
    let bench = Bench::with_faults("hang_init@process");
    let signal = StopSignal::default();
    signal.graceful.cancel();
    let result = bench.run_with(&bench.codex(), &bench.spec(Role::Implementer), signal).await;
    assert_eq!(failed(&result).kind, FailureKind::Interrupted);
    bench.finish().await;
}

/// The layout of a run: a tree of a bare mirror, whose objects and private git folder are the writable roots (corrections 3).
#[tokio::test]
async fn an_implementer_can_commit_in_its_sandbox_and_only_with_the_roots() {
    let bench = Bench::new();
    bench.set("SANDBOX", "enforce");
    let tree = bench.path("tree");
    bench.git(&tree, "clone -q --bare . ../mirror.git");
    bench.git(&bench.path("mirror.git"), "worktree add -q --detach ../a1");
    let mut spec = bench.spec(Role::Implementer);
    spec.cwd = bench.path("a1");
    spec.writable_roots = Vec::new();
    let result = bench.run(&bench.codex(), &spec).await;
    assert_eq!(failed(&result).kind, FailureKind::Refused);
    spec.writable_roots = vec![bench.path("mirror.git/objects"), bench.path("mirror.git/worktrees/a1")];
    let result = bench.run(&bench.codex(), &spec).await;
    assert!(result.text_report.is_ok(), "{result:?}");
    bench.finish().await;
}
