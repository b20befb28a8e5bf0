//! An agent that errs in every role: bounded retries, no attempt for what is not its fault, the run goes on or says why not.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::bench::{World, text};

/// Short limits, so that a hanging turn is over soon.
const SHORT: &[&str] = &["--set", "turn.max_s=3", "--set", "turn.silence_s=2", "--set", "turn.start_s=5"];

/// One turn of each role in turn meets the fault; the run completes all the same, and nothing lives afterwards.
fn once_in_each_role(rules: &[&str]) {
    for rule in rules {
        let world = World::new();
        let _daemon = world.env.daemon();
        let all: Vec<String> =
            ["planner", "implementer", "verifier"].iter().map(|r| format!("{rule}@{r}:x1")).collect();
        world.faults(&all.join(";"));
        let (run, status) = world.complete(SHORT);
        assert_eq!(world.landed("main"), ["T-001: Write the file of T-001"], "{rule}");
        assert_eq!(status["counts"]["reverts"], 0, "{rule} costs no attempt\n{}", world.history(&run));
        let failed = world.env.store(&run).events().iter().filter(|e| is_failed_turn(e)).count();
        assert!(failed >= 3, "{rule} never hit\n{}", world.history(&run));
    }
}

fn is_failed_turn(event: &Value) -> bool {
    event["status"] == "turn" && event["decision"].as_str().is_some_and(|d| d.starts_with("failed:"))
}

/// weaknesses 6: end of stream is a state; a crash before, in and after the work is noticed in every role.
#[test]
fn a_crash_before_the_answer_or_the_work_is_tried_again_in_every_role() {
    once_in_each_role(&["crash_before_ack", "crash"]);
}

/// weaknesses 6.
#[test]
fn a_crash_after_the_work_is_tried_again_in_every_role() {
    once_in_each_role(&["crash_after_work", "crash=kill"]);
}

/// weaknesses 35: limits per turn and per silence; the process tree ends.
#[test]
fn a_turn_that_hangs_is_ended_and_tried_again_in_every_role() {
    once_in_each_role(&["hang"]);
}

/// weaknesses 35: one that does not even answer the interrupt.
#[test]
fn a_turn_that_hangs_deaf_is_killed_and_tried_again_in_every_role() {
    once_in_each_role(&["hang_hard"]);
}

/// weaknesses 5: one bad report is a fault of its turn.
#[test]
fn a_report_that_is_none_is_asked_for_again_in_every_role() {
    once_in_each_role(&["malformed", "empty"]);
}

/// weaknesses 5.
#[test]
fn a_report_that_is_no_object_or_lacks_a_member_is_asked_for_again_in_every_role() {
    once_in_each_role(&["not_object", "drop=summary"]);
}

/// weaknesses 5: an overloaded service is tried again.
#[test]
fn an_overloaded_service_is_tried_again() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("rpc_error@implementer:x1");
    let run = world.start(&[]);
    let (_, status) = world.wait(&run, "progress");
    assert_ne!(status["lifecycle"], "failed");
    world.event(&run, "turn", "failed:rate_limited");
    let status = world.status(&run);
    // Parked for a minute at most, or done already; the user need not wait for it.
    if status["hold"]["kind"] == "parked" {
        assert_eq!(status["hold"]["reason"], "rate_limit", "{status:#}");
        world.ctl(&["start", &run]).success();
    }
    let status = world.completed(&run);
    assert_eq!(status["counts"]["reverts"], 0);
}

/// What a client has to live through: garbage, scalars, bytes, other threads, doubled and late answers (weaknesses 36, "what holds up").
#[test]
fn noise_on_the_wire_costs_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("garbage;scalar;nonutf8;retry_error;subagent;double_completed;split;late_ack@verifier;approval@implementer;unknown_request@planner;notify=500;async_message@implementer");
    let (run, _) = world.complete(&[]);
    assert!(!world.env.store(&run).events().iter().any(is_failed_turn), "{}", world.history(&run));
    assert_eq!(world.turns("").len(), 3);
}

/// weaknesses 36: a huge item and a huge summary are capped, in memory and in every file.
#[test]
fn huge_items_and_summaries_are_capped() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("big_items=20000000@implementer;big_report=3000000@implementer:a1:x1");
    let (run, _) = world.complete(&[]);
    for name in ["harness-events.tsv", "harness-lessons.md", "harness-state.json"] {
        let size = std::fs::metadata(world.repo.join(name)).unwrap().len();
        assert!(size < 300_000, "{name} has {size} bytes\n{}", world.history(&run).len());
    }
}

/// DESIGN 12: a usage limit parks the run until its reset, costs no attempt, survives a restart, and ends by itself.
#[test]
fn a_usage_limit_parks_the_run_until_its_reset_over_a_restart() {
    let world = World::new();
    let daemon = world.env.daemon();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    world.faults(&format!("usage_limit={}@implementer:x1", now + 20));
    let run = world.start(&[]);
    world.event(&run, "run", "held:parked");
    let parked = world.status(&run);
    assert_eq!((&parked["state"], &parked["hold"]["reason"]), (&"parked".into(), &"usage_limit".into()), "{parked:#}");
    assert!(!text(&parked["hold"]["until"]).is_empty(), "{parked:#}");
    daemon.kill();
    let _daemon = world.env.daemon();
    assert_eq!(world.status(&run)["hold"]["until"], parked["hold"]["until"], "the reset survives");
    let status = world.completed(&run);
    assert_eq!(status["counts"]["reverts"], 0);
    let attempts: Vec<Value> = world.turns("implementer").iter().map(|t| t["attempt"].clone()).collect();
    assert_eq!(attempts, [1, 1]);
}

/// An agent that is logged out needs a person, at once and with the command.
#[test]
fn a_logged_out_agent_holds_the_run_for_a_person() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("error_info=unauthorized@planner:x1");
    let run = world.start(&[]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["hold"]["reason"]), (7, &"auth_required".into()), "{status:#}");
    world.ctl(&["start", &run]).success();
    world.completed(&run);
}

/// weaknesses 7: an agent that cannot start is no endless loop.
#[test]
fn an_agent_that_never_starts_holds_the_run_after_a_few_tries() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("exit_on_start@process");
    let run = world.start(&[]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!(code, 7, "{status:#}");
    assert!(world.log("start").len() <= 6, "{}", world.history(&run));
    world.faults("");
    world.ctl(&["start", &run]).success();
    world.completed(&run);
}

/// weaknesses 4, 29: a bad plan is refused with its errors, asked for once more, and the good graph is kept.
#[test]
fn a_bad_plan_gets_one_repair_turn_with_the_errors() {
    for kind in ["cycle", "dangling", "duplicate", "bad_status", "bad_priority", "not_json", "missing_field"] {
        let world = World::new();
        let _daemon = world.env.daemon();
        world.set(&[("TASKS", "2")]);
        world.faults(&format!("tasks={kind}@planner"));
        let run = world.start(&["--set", "fault.delay_s=0"]);
        let (code, status) = world.wait(&run, "done");
        assert_eq!((code, &status["hold"]["reason"]), (7, &"plan_invalid".into()), "{kind} {status:#}");
        assert_eq!(world.turns("planner").len(), 2, "{kind}: {}", world.history(&run));
        let errors = world.events(&run, "plan_import", "refused");
        let told = text(&world.turns("planner")[1]["prompt"]);
        let first = errors[0]["data"]["errors"][0].as_str().unwrap_or_default();
        let words = first.split_whitespace().collect::<Vec<_>>().join(" ");
        let part: String = words.chars().take(40).collect();
        assert!(!part.is_empty() && told.contains(&part), "{kind}: {part}\n{told}");
    }
}
