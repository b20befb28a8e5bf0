//! A person edits files in mid-run: merged, or refused with the file kept (DESIGN 4, 12).

use std::fs;

use serde_json::{Value, json};

use crate::bench::{World, read_json, task, text};

fn held(world: &World) -> String {
    world.set(&[("TASKS", "2")]);
    world.faults("delay=3@implementer:T-001");
    let run = world.start(&[]);
    world.begun("implementer", 1);
    harness_tests::wait_for("the plan is in the repository", || {
        let plan = fs::read_to_string(world.repo.join("tasks.json")).unwrap_or_default();
        plan.contains("in_progress").then_some(())
    });
    run
}

fn write(world: &World, plan: &Value) {
    let aside = world.env.path("tasks.new");
    fs::write(&aside, format!("{plan:#}\n")).unwrap();
    fs::rename(aside, world.repo.join("tasks.json")).unwrap();
}

#[test]
fn an_added_task_is_merged_and_done() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = held(&world);
    let mut plan = read_json(&world.repo.join("tasks.json"));
    plan["tasks"].as_array_mut().unwrap().push(task("BY-HAND", &["T-002"], &["test -f work/BY-HAND.txt"]));
    write(&world, &plan);
    let status = world.completed(&run);
    assert_eq!(world.events(&run, "plan_import", "edited_by_user").len(), 1, "{}", world.history(&run));
    assert_eq!(status["task_counts"]["done"], 3, "{status:#}");
    assert_eq!(world.landed("main").len(), 3);
    assert_eq!(read_json(&world.repo.join("tasks.json"))["tasks"].as_array().unwrap().len(), 3);
}

/// weaknesses 29: a bad edit never wedges the run; the good graph goes on and the human's bytes are kept.
#[test]
fn a_bad_edit_is_refused_with_the_errors_and_the_bytes_are_kept() {
    for bad in ["{ this is no JSON", "{\"version\": 1, \"tasks\": [{\"id\": \"../../x\"}]}"] {
        let world = World::new();
        let _daemon = world.env.daemon();
        let run = held(&world);
        let aside = world.env.path("tasks.new");
        fs::write(&aside, bad).unwrap();
        fs::rename(aside, world.repo.join("tasks.json")).unwrap();
        let refused = world.event(&run, "plan_import", "refused");
        assert!(!text(&refused["description"]).is_empty());
        world.completed(&run);
        let kept = walk(&world.repo).into_iter().chain(walk(&world.env.path("runs")));
        let kept: Vec<_> = kept.filter(|path| fs::read_to_string(path).is_ok_and(|bytes| bytes == bad)).collect();
        assert!(!kept.is_empty(), "the edit is lost: {bad}\n{}", world.history(&run));
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && entry.file_name() != ".git" => found.extend(walk(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// weaknesses 29: a task that is worked on is removed from the file.
#[test]
fn a_started_task_that_is_removed_by_hand_is_refused() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = held(&world);
    let mut plan = read_json(&world.repo.join("tasks.json"));
    plan["tasks"].as_array_mut().unwrap().retain(|t| t["id"] != "T-001");
    write(&world, &plan);
    let refused = world.event(&run, "plan_import", "refused");
    assert!(text(&refused["description"]).contains("T-001"), "{refused:#}");
    let status = world.completed(&run);
    assert_eq!(status["task_counts"]["done"], 2, "{status:#}");
}

/// P1: a task that a person marks as done is not done by that.
#[test]
fn a_task_marked_done_by_hand_is_refused_and_done_for_real() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = held(&world);
    let mut plan = read_json(&world.repo.join("tasks.json"));
    plan["tasks"][1]["status"] = "done".into();
    write(&world, &plan);
    let status = world.completed(&run);
    let refused = world.events(&run, "plan_import", "refused");
    assert!(text(&refused[0]["description"]).contains("T-002"), "{refused:#?}");
    assert_eq!((&status["task_counts"]["done"], world.landed("main").len()), (&2.into(), 2), "{status:#}");
}

/// corrections 31: the policy is frozen; an edited manifest is an event and shown.
#[test]
fn an_edited_manifest_is_an_event_and_changes_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = held(&world);
    let place = world.repo.join("harness-launch.json");
    let mut manifest = read_json(&place);
    manifest["config"]["max_task_attempts"] = json!(99);
    fs::write(&place, format!("{manifest:#}\n")).unwrap();
    harness_tests::wait_for("an event of the edit", || {
        let all = world.env.store(&run).events();
        all.into_iter().find(|e| text(&e["description"]).contains("harness-launch.json"))
    });
    let status = world.completed(&run);
    assert_eq!(status["tasks"][0]["attempts_max"], 3, "{status:#}");
}

/// A held run with an invalid plan goes on when a person has mended the file.
#[test]
fn a_mended_plan_continues_a_held_run() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("tasks=cycle@planner");
    world.set(&[("TASKS", "2")]);
    let run = world.start(&[]);
    assert_eq!(world.wait(&run, "done").0, 7);
    write(&world, &json!({"version": 1, "goal": "", "planner_revision": 0, "tasks": [task("M-1", &[], &[])]}));
    world.ctl(&["start", &run]).success();
    world.completed(&run);
    assert_eq!(world.landed("main"), ["M-1: Write M-1"]);
}
