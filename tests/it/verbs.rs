//! What a user asks of a run: stop, start, pause, resume, cancel, retry, skip (DESIGN 4, ux.md).

use std::process::Stdio;

use harness_tests::living;
use serde_json::json;

use crate::bench::{World, task, text};

/// A run whose implementer works for a minute.
fn at_work(world: &World) -> String {
    world.set(&[("DELAY_IMPLEMENTER", "60")]);
    let run = world.start(&[]);
    world.begun("implementer", 1);
    run
}

fn nothing_lives(run: &str) {
    assert_eq!(living(&format!("HARNESS_RUN={run}")), []);
}

/// weaknesses 30, 31: stop returns when nothing of the run lives; the next start goes on.
#[test]
fn stop_returns_when_nothing_lives_and_start_goes_on() {
    for now in [false, true] {
        let world = World::new();
        let _daemon = world.env.daemon();
        let run = at_work(&world);
        let args: &[&str] = if now { &["stop", &run, "--now", "--json"] } else { &["stop", &run, "--json"] };
        let stopped = world.ctl(args).success().json();
        nothing_lives(&run);
        assert_eq!((&stopped["lifecycle"], &stopped["living"]), (&"stopped".into(), &json!([])), "{stopped:#}");
        assert_eq!(world.ctl(&["stop", &run]).code, 0, "stop of a stopped run is no error");
        assert_eq!(world.wait(&run, "done").0, 5);
        world.set(&[("DELAY_IMPLEMENTER", "0")]);
        world.ctl(&["start", &run]).success();
        let status = world.completed(&run);
        assert_eq!(status["counts"]["reverts"], 0, "an interrupted turn costs no attempt: {status:#}");
    }
}

/// weaknesses 30: stop in the handshake.
#[test]
fn stop_while_the_agent_starts_does_not_hang() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("hang_init@process:x1;ignore_term@process");
    let run = world.start(&[]);
    harness_tests::wait_for("the agent's process", || (!world.log("start").is_empty()).then_some(()));
    world.ctl(&["stop", &run, "--now"]).success();
    nothing_lives(&run);
    world.ctl(&["start", &run]).success();
    world.completed(&run);
}

/// An app-server that ignores TERM and the end of its input, with a child that outlives it, is gone after stop.
#[test]
fn stop_kills_what_does_not_want_to_end() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("ignore_term@process;ignore_eof@process;orphan=600@process;hang_hard@implementer");
    let run = world.start(&[]);
    world.begun("implementer", 1);
    let stopped = world.ctl(&["stop", &run, "--json"]).success().json();
    nothing_lives(&run);
    assert_eq!(stopped["living"], json!([]));
}

#[test]
fn pause_lets_the_turn_end_and_resume_goes_on() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "2"), ("DELAY_IMPLEMENTER", "2")]);
    let run = world.start(&[]);
    world.begun("implementer", 1);
    let paused = world.ctl(&["pause", &run, "--json"]).success().json();
    assert_eq!(paused["run"]["hold"]["kind"], "paused", "{paused:#}");
    world.event(&run, "submit_trial", "dispatch_verifier");
    let (code, status) = world.wait(&run, "idle");
    assert_eq!((code, &status["state"]), (0, &"paused".into()), "{status:#}");
    assert!(text(&status["hold"]["next"]).contains("harnessctl"), "{status:#}");
    world.set(&[("DELAY_IMPLEMENTER", "0")]);
    world.ctl(&["resume", &run]).success();
    world.completed(&run);
    assert_eq!(world.turns("implementer").len(), 2, "the paused turn was not repeated");
}

#[test]
fn cancel_is_final_and_keeps_the_work() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "2")]);
    world.faults("delay=60@implementer:T-002");
    let run = world.start(&[]);
    world.event(&run, "accept", "continue_after_accept");
    world.ctl(&["cancel", &run, "--yes"]).success();
    nothing_lives(&run);
    assert_eq!(world.status(&run)["lifecycle"], "cancelled");
    let again = world.ctl(&["start", &run]);
    assert_eq!(again.code, 2, "{again:?}");
    assert!(again.stderr.contains("RUN_CANCELLED") && again.stderr.contains("next:"), "{again:?}");
    world.git(&["rev-parse", "--verify", &format!("refs/harness/{run}/head")]);
    // The place is free for another run.
    world.settle();
    world.faults("");
    world.complete(&[]);
}

#[test]
fn retry_skip_and_cancel_of_a_task() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.plan(&json!([task("A", &[], &[]), task("B", &[], &[]), task("C", &["B"], &[]), task("D", &[], &[])]));
    world.faults("revert@verifier:A:a1;revert@verifier:B:a1");
    let run = world.start(&["--max-task-attempts", "1", "--set", "on_exhausted=pause"]);
    assert_eq!(world.wait(&run, "done").0, 7);
    assert_eq!(world.ctl(&["retry", "C", "--run", &run]).code, 2, "only what failed can be tried again");
    assert_eq!(world.ctl(&["retry", "Z", "--run", &run]).code, 2);
    world.ctl(&["retry", "A", "--run", &run, "--json"]).success();
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["hold"]["reason"]), (7, &"task_failed".into()), "{status:#}");
    world.ctl(&["skip", "B", "--run", &run, "--reason", "not needed"]).success();
    world.ctl(&["cancel", "D", "--run", &run, "--yes"]).success();
    world.ctl(&["start", &run]).success();
    let (_, status) = world.wait(&run, "idle");
    let word = |id: &str| {
        let tasks = status["tasks"].as_array().unwrap();
        text(&tasks.iter().find(|t| t["id"] == id).unwrap()["status"])
    };
    assert_eq!((word("A").as_str(), word("B").as_str(), word("D").as_str()), ("done", "skipped", "cancelled"));
    assert_eq!(world.events(&run, "control", "skip").len(), 1, "{}", world.history(&run));
}

/// weaknesses 28: two starts at once join one run.
#[test]
fn two_starts_at_once_are_one_run() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = world.register(&[]);
    let begin = || {
        let mut command = world.env.command(world.env.bin().join("harnessctl"));
        command.args(["start", &run, "--json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let both: Vec<_> = (0..4).map(|_| begin()).collect();
    for child in both {
        let done = child.wait_with_output().unwrap();
        assert!(done.status.success(), "{done:?}");
        let answer: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(answer["run_id"], run.as_str());
    }
    world.completed(&run);
    assert_eq!(world.turns("implementer").len(), 1);
    assert_eq!(world.events(&run, "run", "queued").len(), 1, "{}", world.history(&run));
    let again = world.ctl(&["start", &run]).success();
    assert!(format!("{}{}", again.stdout, again.stderr).contains("completed"), "{again:?}");
}

/// One active run per repository; the second is refused and names the first (corrections 14).
#[test]
fn a_second_run_of_the_same_repository_is_refused_and_names_the_first() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = at_work(&world);
    let refused = world.create(&[]);
    assert_eq!(refused.code, 10, "{refused:?}");
    assert!(refused.stderr.contains(&run) && refused.stderr.contains("next:"), "{refused:?}");
}

/// `run` follows in the foreground; Ctrl-C leaves the run, which goes on.
#[test]
fn closing_the_terminal_leaves_the_run_going() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("DELAY_IMPLEMENTER", "3")]);
    let run = world.register(&[]);
    let mut command = world.env.command(world.env.bin().join("harnessctl"));
    let mut child = command.args(["run", &run]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    world.begun("implementer", 1);
    let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGHUP).unwrap();
    child.wait().unwrap();
    world.completed(&run);
    assert_eq!(world.turns("implementer").len(), 1);
}
