//! Repositories that were prepared before: a plan of the user's, the predecessor's files, the predecessor's scripts.

use std::fs;

use crate::bench::{SUITE, World, members, read_json, task, text};
use serde_json::{Value, json};

fn plan_file(tasks: &[Value]) -> String {
    json!({"version": 1, "goal": "g", "planner_revision": 0, "created_at": "", "updated_at": "", "tasks": tasks})
        .to_string()
}

/// S4-014: nobody pays a planner for a plan that is there.
#[test]
fn a_plan_that_stands_in_the_repository_is_taken_and_no_planner_is_paid() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let tasks = [task("B-2", &["A-1"], &[]), task("A-1", &[], &["test -f work/A-1.txt"])];
    fs::write(world.repo.join("tasks.json"), plan_file(&tasks)).unwrap();
    fs::write(world.repo.join("plan.md"), "# By hand\n").unwrap();
    world.complete(&[]);
    assert_eq!(world.turns("planner").len(), 0);
    let order: Vec<Value> = world.turns("implementer").iter().map(|turn| turn["task"].clone()).collect();
    assert_eq!(order, ["A-1", "B-2"]);
    assert_eq!(fs::read_to_string(world.repo.join("plan.md")).unwrap(), "# By hand\n");
    assert_eq!(world.landed("main"), ["A-1: Write A-1", "B-2: Write B-2"]);
}

/// corrections 22: with `--verify` and nothing else; the manifest and files of its last run are replaced, its plan goes on.
#[test]
fn a_repository_of_the_predecessor_runs_with_verify() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let old = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/wire/v1/predecessor-launch.json");
    fs::copy(old, world.repo.join("harness-launch.json")).unwrap();
    let mut done = task("T-001", &[], &[]);
    done["status"] = "done".into();
    done["attempts"] = 1.into();
    done["their_own_member"] = json!({"kept": true});
    let mut ready = task("T-002", &["T-001"], &[]);
    ready["status"] = "ready".into();
    fs::write(world.repo.join("tasks.json"), plan_file(&[done, ready])).unwrap();
    fs::write(world.repo.join("plan.md"), "# Plan\n\nGoal: g\n").unwrap();
    let rows = "seq\ttimestamp\trole\ttask_id\tattempt\tcommit\tstatus\tdecision\tdescription\r\n1\t2026-01-01T00:00:00+00:00\tplanner\t-\t0\t-\tplan\tdispatch_implementer\tOld.\r\n";
    fs::write(world.repo.join("harness-events.tsv"), rows).unwrap();
    let (run, _) = world.complete(&["--verify", SUITE]);
    assert_eq!(world.landed("main"), ["T-002: Write T-002"]);
    let tasks = read_json(&world.repo.join("tasks.json"));
    assert_eq!(tasks["tasks"][0]["their_own_member"]["kept"], true, "unknown members are kept: {tasks:#}");
    let table = fs::read_to_string(world.repo.join("harness-events.tsv")).unwrap();
    assert!(!table.contains('\r') && table.lines().nth(1).unwrap().contains("\tinit\tinitialize\t"), "{table}");
    let kept = world.env.path("runs").join(run).join("found/artifacts/harness-events.tsv");
    assert_eq!(fs::read_to_string(kept).unwrap(), rows, "the old history is kept");
}

/// artifacts.md 2 and 2b: scripts of the predecessor find its members, and ours besides.
#[test]
fn verbs_answer_with_the_members_of_the_predecessor() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let has = |value: &Value, wanted: &[&str]| {
        let found = members(value);
        assert!(wanted.iter().all(|name| found.contains(name)), "{wanted:?} in {value:#}");
    };
    let repo = world.repo.to_str().unwrap();
    let launched = world.create(&[]).success().json();
    has(&launched, &["goal", "launch_path", "mode", "run_id", "lifecycle", "schema"]);
    assert_eq!((&launched["mode"], &launched["goal"]), (&"harness".into(), &"Write the files".into()));
    let idle = world.ctl(&["status", "--repo", repo, "--json"]).success().json();
    assert_eq!(idle["status"], "idle", "{idle:#}");
    let run = text(&launched["run_id"]);
    world.set(&[("DELAY_IMPLEMENTER", "60")]);
    let started = world.ctl(&["start", "--repo", repo, "--sleep-seconds", "0", "--json"]).success().json();
    has(&started, &["status", "pid", "runtime_path", "log_path", "run_id", "lifecycle"]);
    assert_eq!(started["status"], "running");
    world.event(&run, "turn", "started");
    let status = world.ctl(&["status", "--repo", repo, "--json"]).success().json();
    has(&status, &["status", "terminal_reason", "runtime_running", "recovery", "last_decision", "last_role", "repo"]);
    has(&status, &["runtime_path", "log_path", "events_path", "launch_path", "state_path", "tasks_path", "pid"]);
    assert_eq!((&status["status"], &status["runtime_running"]), (&"running".into(), &true.into()), "{status:#}");
    let stopped = world.ctl(&["stop", "--repo", repo, "--json"]).success().json();
    has(&stopped, &["status", "runtime_path", "pid", "pgid", "run_id", "lifecycle", "terminal_reason"]);
    assert_eq!(stopped["status"], "terminal");
    assert_eq!(stopped["terminal_reason"], "user_stopped");
    let after = world.ctl(&["status", "--repo", repo, "--json"]).success().json();
    assert_eq!((&after["status"], &after["terminal_reason"]), (&"terminal".into(), &"user_stopped".into()));
    assert_eq!(after["runtime_running"], false);
}

/// The predecessor's `launch`: register and start in one verb.
#[test]
fn launch_registers_and_starts_at_once() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let (repo, codex) = (world.repo.to_str().unwrap(), world.env.path("codex"));
    let done = world.ctl(&[
        "launch",
        "--json",
        "--repo",
        repo,
        "--original-goal",
        "og",
        "--goal",
        "g",
        "--scope",
        ".",
        "--verify",
        SUITE,
        "--codex-bin",
        codex.to_str().unwrap(),
        "--max-task-attempts",
        "2",
        "--note",
        "n1",
        "--note",
        "n2",
    ]);
    let launched = done.success().json();
    for name in ["goal", "launch_path", "mode", "status", "pid", "runtime_path", "log_path", "run_id"] {
        assert!(members(&launched).contains(&name), "{name}: {launched:#}");
    }
    world.completed(&text(&launched["run_id"]));
    let manifest = read_json(&world.repo.join("harness-launch.json"));
    assert_eq!(manifest["notes"], json!(["n1", "n2"]));
    assert_eq!(manifest["config"]["max_task_attempts"], 2);
    assert_eq!((&manifest["original_goal"], &manifest["prompt_text"]), (&"og".into(), &"og".into()));
}

/// A second run in the same repository moves the files of the first to its run directory; lessons stay (DESIGN 10).
#[test]
fn a_second_run_moves_the_files_of_the_first_away_and_keeps_lessons() {
    let world = World::new();
    let daemon = world.env.daemon();
    let (first, _) = world.complete(&[]);
    world.settle();
    let (second, _) = world.complete(&[]);
    drop(daemon);
    let kept = |name: &str| {
        fn find(folder: &std::path::Path, name: &str) -> bool {
            fs::read_dir(folder)
                .unwrap()
                .flatten()
                .any(|e| e.file_name() == name || e.file_type().is_ok_and(|t| t.is_dir()) && find(&e.path(), name))
        }
        find(&world.env.path("runs").join(&first), name)
    };
    for name in ["harness-events.tsv", "tasks.json", "planner-r001.json"] {
        assert!(kept(name), "{name} of the first run is not in its directory");
    }
    let table = fs::read_to_string(world.repo.join("harness-events.tsv")).unwrap();
    assert_eq!(table.matches("\tinit\tinitialize\t").count(), 1, "{table}");
    let lessons = fs::read_to_string(world.repo.join("harness-lessons.md")).unwrap();
    assert_eq!(lessons.matches("Run summary: ").count(), 2, "{lessons}");
    assert_eq!(read_json(&world.repo.join("harness-launch.json"))["run_id"], Value::from(second));
}
