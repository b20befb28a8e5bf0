//! Reports that lie, and work that is not what was asked for: nothing of it is integrated (P1, P4).

use std::fs;

use serde_json::Value;

use crate::bench::{World, text};

/// The run completes although the first report of `role` lied; what landed is the work of the attempt, seen by the runtime itself.
fn caught(rule: &str, role: &str, said: &str) {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults(rule);
    let (run, status) = world.complete(&[]);
    let bad = world.events(&run, "turn", "failed:invalid_report");
    assert!(bad.iter().any(|e| e["role"] == role), "{rule}\n{}", world.history(&run));
    assert!(bad.iter().any(|e| text(&e["description"]).contains(said)), "{said}: {bad:#?}");
    assert_eq!(world.turns(role).len(), 2, "one repair turn\n{}", world.history(&run));
    assert_eq!(status["counts"]["reverts"], 0, "a lie costs a turn, no attempt: {status:#}");
    assert_eq!(world.landed("main"), ["T-001: Write the file of T-001"]);
}

/// weaknesses 14: the verifier's report does not choose the commit.
#[test]
fn a_verifier_that_names_another_commit_is_asked_again() {
    caught("set=commit,\"1234567812345678123456781234567812345678\"@verifier:x1", "verifier", "commit");
}

/// weaknesses 15: an implementer cannot accept itself.
#[test]
fn an_implementer_that_claims_to_be_the_verifier_is_asked_again() {
    caught("claim_role=verifier@implementer:x1;set=verdict,\"accept\"@implementer:x1", "implementer", "role");
}

/// weaknesses 17: the attempt comes from the turn.
#[test]
fn a_wrong_attempt_is_asked_again() {
    caught("set=attempt,7@implementer:x1", "implementer", "attempt");
    caught("set=attempt,\"one\"@verifier:x1", "verifier", "attempt");
}

/// weaknesses 18: another task, an unknown one, none.
#[test]
fn a_report_about_another_task_is_asked_again() {
    caught("set=task_id,\"T-999\"@implementer:x1", "implementer", "task");
    caught("drop=task_id@verifier:x1", "verifier", "task");
}

/// weaknesses 18: a commit that does not exist, or an option in its place.
#[test]
fn an_implementers_commit_must_be_of_the_attempt() {
    caught("set=commit,\"--quit\"@implementer:x1", "implementer", "commit");
    caught("set=commit,\"deadbeefdeadbeefdeadbeefdeadbeefdeadbeef\"@implementer:x1", "implementer", "commit");
}

/// A verifier that lies in every turn: nothing is integrated, the planner is asked, and it ends.
#[test]
fn a_verifier_that_never_stops_lying_integrates_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("set=commit,\"1234567812345678123456781234567812345678\"@verifier");
    let run = world.start(&["--max-task-attempts", "1", "--set", "max_iterations=2"]);
    let (code, status) = world.wait(&run, "done");
    assert!(code == 5 || code == 7, "{code} {status:#}");
    assert_eq!(world.landed("main"), Vec::<String>::new());
    assert_eq!(status["integration_head"], status["base"]);
}

/// weaknesses 18, readings 004-4: an attempt without a change is a revert, never a success.
#[test]
fn an_attempt_without_a_commit_is_reverted() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("no_commit@implementer:T-001:a1");
    let (run, status) = world.complete(&[]);
    assert_eq!(status["counts"]["reverts"], 1, "{}", world.history(&run));
    assert!(!world.events(&run, "gate", "blocked:NO_CHANGE").is_empty(), "{}", world.history(&run));
    assert_eq!(world.turns("verifier").len(), 1, "nobody is paid to verify nothing");
}

/// weaknesses 11: two commits become one candidate with the work of both.
#[test]
fn two_commits_become_one_with_the_work_of_both() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("two_commits@implementer");
    world.complete(&[]);
    assert_eq!(world.landed("main").len(), 1);
    for name in ["work/T-001.txt", "work/T-001.txt.first"] {
        assert!(world.repo.join(name).is_file(), "{name}");
    }
}

/// weaknesses 18: a merge in an attempt leaves a linear target.
#[test]
fn a_merge_commit_becomes_a_linear_candidate() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("merge_commit@implementer");
    world.complete(&[]);
    assert_eq!(world.landed("main").len(), 1);
    assert_eq!(world.git(&["rev-list", "--merges", "main"]), "");
}

/// DESIGN 6: what an agent left uncommitted the runtime commits; nothing of the next attempt starts from it.
#[test]
fn what_an_agent_left_uncommitted_is_committed_and_verified_with_the_rest() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("dirty@implementer");
    world.complete(&[]);
    assert_eq!(world.landed("main").len(), 1);
    assert!(world.repo.join("left-untracked.txt").is_file());
    let body = fs::read_to_string(world.repo.join("work/T-001.txt")).unwrap();
    assert!(body.contains("left behind"), "{body}");
}

/// weaknesses 11: a new attempt starts from a clean, recorded base.
#[test]
fn a_second_attempt_starts_without_the_leftovers_of_the_first() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("REVERT_FIRST", "1")]);
    world.faults("dirty@implementer:T-001:a1;two_commits@implementer:T-001:a1");
    world.complete(&[]);
    assert!(!world.repo.join("left-untracked.txt").exists());
    assert!(!world.repo.join("work/T-001.txt.first").exists());
    assert_eq!(world.git(&["show", "--stat", "--format=", "--name-only", "main"]), "work/T-001.txt");
}

/// An attempt that changes a file of the task graph is stopped (P4).
#[test]
fn an_attempt_that_writes_the_plan_is_blocked() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("conflict=tasks.json@implementer:T-001:a1");
    let (run, _) = world.complete(&[]);
    assert!(!world.events(&run, "gate", "blocked:HARNESS_FILE_CHANGED").is_empty(), "{}", world.history(&run));
    assert_eq!(world.git(&["ls-files", "tasks.json"]), "");
}

/// S4-058, weaknesses "what holds up": work that conflicts is blocked; the planner's repair task closes it.
#[test]
fn a_conflict_is_repaired_by_a_task_of_the_planner_and_closes_its_target() {
    let world = World::new();
    let _daemon = world.env.daemon();
    // The user commits the file while T-001 is worked on; T-002 begins before the accepted work is rebuilt on that.
    world.set(&[("TASKS", "2"), ("MAIN_TREE", world.repo.to_str().unwrap())]);
    world.faults(
        "advance_main=shared.txt@implementer:T-001;conflict=shared.txt@implementer:T-002;delay=2@implementer:T-002",
    );
    let (run, status) = world.complete(&[]);
    let conflict = world.events(&run, "candidate", "conflict");
    assert_eq!(conflict.len(), 1, "{}", world.history(&run));
    assert_eq!(world.events(&run, "recovery", "integration_conflict").len(), 1, "{}", world.history(&run));
    let tasks = crate::bench::read_json(&world.repo.join("tasks.json"));
    let target = tasks["tasks"].as_array().unwrap().iter().find(|t| t["id"] == "T-002").unwrap();
    assert_eq!((&target["status"], &target["resolved_by_task_id"]), (&"done".into(), &"T-002-R1".into()), "{tasks:#}");
    assert_eq!(target.get("integration_conflict").unwrap_or(&Value::Null), &Value::Null);
    assert_eq!(status["task_counts"]["done"], 3, "{status:#}");
    assert_eq!(fs::read_to_string(world.repo.join("shared.txt")).unwrap(), "changed while T-001 ran\n");
}
