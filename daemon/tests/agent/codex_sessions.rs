//! Second turns: on the live thread, in a new process, and when the session is gone.

use harness_proto::vocab::{FailureKind, Role};
use harnessd::agent::{TurnResult, TurnSpec};

use crate::support::{Bench, failed};

/// What the peer logged about turns: process, thread, turns of the thread, folder.
fn turns(bench: &Bench) -> Vec<(i64, String, i64, String)> {
    let lines = bench.lines("log").into_iter().filter(|line| line["event"] == "turn");
    lines
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            let number = |name: &str| line[name].as_i64().unwrap();
            (number("pid"), text("thread"), number("turns"), text("cwd"))
        })
        .collect()
}

async fn turn(bench: &Bench, change: impl FnOnce(&mut TurnSpec)) -> TurnResult {
    let mut spec = bench.spec(Role::Implementer);
    change(&mut spec);
    bench.run(&bench.codex(), &spec).await
}

#[tokio::test]
async fn a_retry_goes_on_in_the_live_thread_in_its_new_tree() {
    let bench = Bench::with_faults("double_completed");
    let second_tree = bench.tree("tree2");
    let first = turn(&bench, |_| {}).await;
    first.text_report.unwrap();
    std::fs::remove_dir_all(bench.path("tree/work")).unwrap();
    let second = turn(&bench, |spec| {
        spec.request.session.clone_from(&first.session);
        spec.request.handover = "HANDOVER".to_owned();
        spec.cwd.clone_from(&second_tree);
    })
    .await;
    second.text_report.unwrap();
    assert!(second.resumed);
    assert_eq!(second.session, first.session);
    assert_eq!(second.usage.total_tokens, 100, "the second turn's own tokens");
    let turns = turns(&bench);
    assert_eq!((turns[0].0, &turns[0].1), (turns[1].0, &turns[1].1), "same process, same thread");
    assert_eq!((turns[1].2, turns[1].3.as_str()), (2, second_tree.to_str().unwrap()));
    assert!(second_tree.join("work/T1.txt").is_file());
    assert!(!std::fs::read_to_string(bench.path("transcript.jsonl")).unwrap().contains("HANDOVER"));
    assert_eq!(bench.started.lock().unwrap().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn a_repair_turn_follows_a_bad_report_in_the_same_thread() {
    let bench = Bench::with_faults("drop=summary:x1");
    let first = turn(&bench, |_| {}).await;
    assert_eq!(failed(&first).kind, FailureKind::InvalidReport);
    let second = turn(&bench, |spec| spec.request.session.clone_from(&first.session)).await;
    second.text_report.unwrap();
    assert!(second.resumed);
    assert_eq!(bench.started.lock().unwrap().len(), 1);
    bench.finish().await;
}

#[tokio::test]
async fn a_closed_session_is_resumed_by_a_new_process() {
    let bench = Bench::new();
    let first = turn(&bench, |_| {}).await;
    bench.agents.close_session(&bench.spec(Role::Implementer).session_key).await;
    assert!(bench.agents.idle_processes().is_empty());
    let second = turn(&bench, |spec| spec.request.session.clone_from(&first.session)).await;
    assert!(second.resumed && second.text_report.is_ok(), "{second:?}");
    assert_eq!(second.session, first.session);
    assert_eq!(second.usage.total_tokens, 100, "the replayed total is not of this turn");
    let turns = turns(&bench);
    assert!(turns[0].0 != turns[1].0 && turns[0].1 == turns[1].1, "{turns:?}");
    bench.finish().await;
}

#[tokio::test]
async fn a_process_that_died_between_turns_is_replaced() {
    let bench = Bench::with_faults("crash_after_turn:x1");
    let first = turn(&bench, |_| {}).await;
    assert!(first.text_report.is_ok());
    let second = turn(&bench, |spec| spec.request.session.clone_from(&first.session)).await;
    assert!(second.resumed && second.text_report.is_ok(), "{second:?}");
    assert_eq!(bench.started.lock().unwrap().len(), 2);
    bench.finish().await;
}

#[tokio::test]
async fn a_session_that_is_gone_is_handed_over_to_a_fresh_thread() {
    let bench = Bench::new();
    let result = turn(&bench, |spec| {
        spec.request.session = Some("0196-gone".to_owned());
        spec.request.handover = "What was done before: nothing.".to_owned();
    })
    .await;
    assert!(!result.resumed && result.text_report.is_ok(), "{result:?}");
    assert_ne!(result.session.as_deref(), Some("0196-gone"));
    let transcript = bench.lines("transcript.jsonl");
    let asked = transcript.iter().filter_map(|line| line["text"].as_str()).find(|text| text.contains("turn/start"));
    assert!(asked.unwrap().contains("What was done before: nothing.\\n\\nYou are the implementer."));
    bench.finish().await;
}

#[tokio::test]
async fn a_crashed_turn_is_repeated_in_a_new_process_on_its_thread() {
    let bench = Bench::with_faults("crash_after_work:x1");
    let first = turn(&bench, |_| {}).await;
    assert_eq!(failed(&first).kind, FailureKind::Crashed);
    assert!(bench.agents.idle_processes().is_empty());
    let second = turn(&bench, |spec| spec.request.session.clone_from(&first.session)).await;
    assert!(second.resumed && second.text_report.is_ok(), "{second:?}");
    bench.finish().await;
}

#[tokio::test]
async fn sessions_end_with_their_run_and_their_number_is_bounded() {
    let bench = Bench::new();
    for number in 0..6 {
        let result = turn(&bench, |spec| spec.session_key = format!("key {number}")).await;
        result.text_report.unwrap();
    }
    assert_eq!(bench.agents.idle_processes().len(), 4);
    bench.agents.close_run(&harness_proto::ids::RunId::from_random([1; 5])).await;
    assert_eq!(bench.agents.idle_processes().len(), 4);
    bench.agents.close_run(&bench.run).await;
    assert!(bench.agents.idle_processes().is_empty());
    bench.finish().await;
}

#[tokio::test]
async fn a_full_thread_is_not_offered_again() {
    let bench = Bench::with_faults("error_info=contextWindowExceeded");
    let result = turn(&bench, |_| {}).await;
    assert_eq!((failed(&result).kind, result.session), (FailureKind::Refused, None));
    bench.finish().await;
}

#[tokio::test]
async fn a_missing_program_is_told_by_its_name() {
    let bench = Bench::new();
    let kind = "codex:/nowhere/codex".parse().unwrap();
    let result = bench.run(&kind, &bench.spec(Role::Implementer)).await;
    assert_eq!(failed(&result).kind, FailureKind::Crashed);
    assert!(failed(&result).message.contains("`/nowhere/codex`"), "{result:?}");
    bench.finish().await;
}
