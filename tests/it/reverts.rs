//! Attempts that are not accepted: feedback, limits, loops, the planner's turn (DESIGN 4).

use serde_json::json;

use crate::bench::{World, task, text};

/// weaknesses 2: a revert is a second turn on the live thread, with what was wrong in its prompt.
#[test]
fn a_revert_goes_on_in_the_same_thread_with_the_feedback_in_the_prompt() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("REVERT_FIRST", "1")]);
    world.faults("set=findings,[{\"description\":\"a gap in the fence\",\"severity\":\"high\",\"file\":\"work/T-001.txt\",\"recommendation\":\"mend it\"}]@verifier:T-001:a1");
    let (run, status) = world.complete(&[]);
    let turns = world.turns("implementer");
    assert_eq!(turns.len(), 2, "{}", world.history(&run));
    assert_eq!(turns[0]["thread"], turns[1]["thread"], "the thread lives on");
    assert_eq!(turns[1]["attempt"], 2);
    let prompt = text(&turns[1]["prompt"]);
    let begin = prompt.find("[VERIFIER FEEDBACK FROM PREVIOUS ATTEMPT]").expect("feedback");
    let end = prompt.find("[END VERIFIER FEEDBACK]").expect("an end of the feedback");
    let told = &prompt[begin..end];
    for part in ["The commit does not do what the task asks.", "a gap in the fence", "mend it", "C1"] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert!(!text(&turns[0]["prompt"]).contains("[VERIFIER FEEDBACK"));
    assert_eq!(status["counts"]["reverts"], 1);
    assert_eq!(world.events(&run, "revert", "retry_task").len(), 1);
    // The reverted attempt's work is kept, and the user finds it.
    let kept = world.ctl(&["recover", "--run", &run]).success();
    assert!(kept.stdout.contains("T-001"), "{kept:?}");
}

/// weaknesses 2: after a restart the thread is resumed, or a new one gets the feedback; nothing wedges.
#[test]
fn feedback_survives_a_restart_between_revert_and_next_turn() {
    let world = World::new();
    let daemon = world.env.daemon();
    world.set(&[("REVERT_FIRST", "1"), ("DELAY_IMPLEMENTER", "0")]);
    world.faults("hang@implementer:T-001:a2:x1");
    let run = world.start(&[]);
    world.begun("implementer", 2);
    daemon.kill();
    let _daemon = world.env.daemon();
    world.completed(&run);
    let last = world.turns("implementer").pop().unwrap();
    assert_eq!(last["attempt"], 2, "a lost turn costs no attempt");
    assert!(text(&last["prompt"]).contains("[VERIFIER FEEDBACK FROM PREVIOUS ATTEMPT]"), "{last:#}");
}

/// weaknesses 17, S4-033: attempts are counted by the runtime; used up, the planner is asked and may put the task back.
#[test]
fn attempts_used_up_call_the_planner_who_puts_the_task_back() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("revert@verifier:T-001:a1-2");
    let (run, status) = world.complete(&["--max-task-attempts", "2", "--set", "retry.loop_detect=off"]);
    assert_eq!(world.turns("planner").len(), 2, "{}", world.history(&run));
    let prompt = text(&world.turns("planner")[1]["prompt"]);
    assert!(prompt.contains("T-001") && prompt.contains("The commit does not do what the task asks."), "{prompt}");
    assert_eq!(status["counts"]["replans"], 1, "{status:#}");
    let attempts: Vec<_> = world.turns("implementer").iter().map(|t| t["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 2, 3]);
}

/// DESIGN 4: the same failure three times ends the task before its attempts are used up.
#[test]
fn the_same_failure_three_times_stops_early() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.plan(&json!([task("T-001", &[], &["echo the same words >&2; exit 3"])]));
    let run = world.start(&["--max-task-attempts", "50", "--set", "on_exhausted=pause"]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!(code, 7, "{status:#}");
    assert_eq!(world.turns("implementer").len(), 3, "{}", world.history(&run));
    assert_eq!(status["hold"]["reason"], "task_failed", "{status:#}");
    assert!(text(&status["hold"]["next"]).contains("harnessctl retry T-001"), "{status:#}");
    assert_eq!(world.landed("main"), Vec::<String>::new());
}

/// weaknesses 7: a planner without an answer is asked a bounded number of times; then the run is held with the reason.
#[test]
fn planner_turns_without_progress_are_bounded() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("REPLAN", "noop")]);
    world.faults("revert@verifier");
    let run = world.start(&["--max-task-attempts", "1"]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!(code, 7, "{status:#}");
    assert_eq!(status["hold"]["owner"], "runtime", "{status:#}");
    assert_eq!(status["hold"]["reason"], "planner_no_progress");
    assert!(world.turns("planner").len() <= 5, "{}", world.history(&run));
    assert!(!text(&status["next"]).is_empty());
}

/// P1: no report overrules a command that failed.
#[test]
fn an_accept_against_failing_evidence_integrates_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let failing = "test -f never-there.txt";
    let run = world.start(&["--verify", failing, "--max-task-attempts", "1", "--set", "on_exhausted=pause"]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!(code, 7, "{status:#}");
    assert_eq!(world.landed("main"), Vec::<String>::new());
    assert_eq!(status["integration_head"], status["base"]);
    let shown = world.env.store(&run).task("T-001");
    let blockers = shown["attempts"][0]["blockers"].to_string();
    assert!(blockers.contains("EVIDENCE_FAILED") && blockers.contains(failing), "{shown:#}");
    assert!(!world.events(&run, "gate", "blocked:EVIDENCE_FAILED").is_empty());
    let told = world.ctl(&["explain", "EVIDENCE_FAILED"]).success();
    assert!(!told.stdout.is_empty());
}

/// A criterion that is failed or skipped is no accept, whatever the verdict says (DESIGN 4).
#[test]
fn an_accept_with_a_skipped_criterion_is_a_revert() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults(
        "set=criteria_results,[{\"criterion\":\"C1\",\"result\":\"skip\",\"evidence\":\"no time\"}]@verifier:T-001:a1",
    );
    let (run, status) = world.complete(&[]);
    assert_eq!(status["counts"]["reverts"], 1);
    assert!(!world.events(&run, "gate", "blocked:CRITERION_SKIPPED").is_empty(), "{}", world.history(&run));
    let prompt = text(&world.turns("implementer")[1]["prompt"]);
    assert!(prompt.contains("CRITERION_SKIPPED") || prompt.contains("no time"), "{prompt}");
}

/// S4-047, S4-057: a verifier that cannot judge blocks the task for the planner, who requeues it.
#[test]
fn a_recovery_signal_blocks_the_task_for_the_planner() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("signal=ambiguous_acceptance_criteria@verifier:T-001:a1");
    let (run, _) = world.complete(&[]);
    assert_eq!(world.turns("planner").len(), 2);
    let rows = world.events(&run, "recovery", "ambiguous_acceptance_criteria");
    assert_eq!(rows.len(), 1, "{}", world.history(&run));
}

/// weaknesses 22: proposals of the last accepted task reach the planner.
#[test]
fn proposals_of_the_last_task_reach_the_planner() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("propose=1@verifier:T-001:x1");
    let (run, _) = world.complete(&[]);
    let planners = world.turns("planner");
    assert_eq!(planners.len(), 2, "{}", world.history(&run));
    assert!(text(&planners[1]["prompt"]).contains("Follow-up 1 of T-001"), "{planners:#?}");
}
