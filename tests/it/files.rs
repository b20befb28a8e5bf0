//! What a finished run leaves in the repository: the predecessor's files in the predecessor's shapes (artifacts.md 1, DESIGN 10).

use std::fs;

use crate::bench::{World, members, read_json};
use harness_tests::check_landed;

/// Each of `wanted` is a member.
fn has(value: &serde_json::Value, wanted: &[&str]) {
    let found = members(value);
    let missing: Vec<&&str> = wanted.iter().filter(|name| !found.contains(name)).collect();
    assert!(missing.is_empty(), "missing {missing:?} in {value:#}");
}

const CONFIG: &[&str] = &[
    "allow_task_expansion",
    "execution_policy",
    "goal",
    "max_task_attempts",
    "scope",
    "session_mode",
    "stop_condition",
];

/// S4-014 to S4-030: planner, three tasks, completed; every file is there with the predecessor's members.
#[test]
fn a_codex_run_leaves_every_file_of_the_predecessor_in_its_shape() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "3"), ("SHAPE", "chain")]);
    let (run, status) = world.complete(&[]);
    assert_eq!(world.landed("main").len(), 3, "{status:#}");
    let broken = check_landed(&world.env, &world.repo, &world.before());
    assert!(broken.is_empty(), "{broken:#?}");

    let launch = read_json(&world.repo.join("harness-launch.json"));
    has(
        &launch,
        &[
            "approvals",
            "config",
            "created_at",
            "defaults",
            "mode",
            "notes",
            "original_goal",
            "prompt_text",
            "updated_at",
            "version",
        ],
    );
    has(&launch["config"], CONFIG);
    let runtime = read_json(&world.repo.join("harness-runtime.json"));
    has(&runtime, &["command", "created_at", "updated_at", "events_path", "launch_path", "log_path", "runtime_path"]);
    has(&runtime, &["state_path", "tasks_path", "repo", "last_decision", "last_reason", "last_error", "last_role"]);
    has(&runtime, &["last_task_id", "pid", "pgid", "recovery", "status", "terminal_reason", "version"]);
    assert_eq!((&runtime["status"], &runtime["terminal_reason"]), (&"terminal".into(), &"all_tasks_done".into()));
    has(&runtime["recovery"], &["status", "owner", "reason", "resume_role", "resume_task_id", "resume_attempt"]);
    has(&runtime["recovery"], &["incident", "retry"]);
    let state = read_json(&world.repo.join("harness-state.json"));
    has(&state, &["config", "mode", "run_tag", "state", "updated_at", "version"]);
    has(&state["config"], CONFIG);
    let counters = &state["state"];
    has(counters, &["accepted_commit", "accepts", "active_tasks", "blocked", "completed", "implementer_runs"]);
    has(counters, &["last_decision", "last_status", "last_verdict", "planner_pending_reason", "planner_revision"]);
    has(counters, &["planner_runs", "recovery", "recovery_requests", "replans", "reverts", "seq", "verifier_runs"]);
    for (name, value) in [("accepts", 3), ("implementer_runs", 3), ("verifier_runs", 3), ("planner_runs", 1)] {
        assert_eq!(counters[name], value, "{name}: {counters:#}");
    }
    assert_eq!(counters["completed"], true);
    assert_eq!(counters["seq"], status["seq"], "the file is of the last event");
    assert!(world.repo.join("plan.md").is_file());
    assert!(world.repo.join("harness-runtime.log").is_file());
    let text = fs::read_to_string(world.repo.join("harness-state.json")).unwrap();
    assert!(text.starts_with("{\n  \"config\": {\n    \"allow") && text.ends_with("}\n"), "2 blanks, keys in order");
    assert_eq!(world.git(&["status", "--porcelain"]), "", "our files are excluded (weaknesses 43)");
    assert!(world.env.path("runs").join(run).is_dir());
}

#[test]
fn tasks_reports_and_lessons_say_who_did_what() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "2"), ("REVERT_FIRST", "1")]);
    let (run, _) = world.complete(&[]);
    let tasks = read_json(&world.repo.join("tasks.json"));
    has(&tasks, &["version", "goal", "planner_revision", "tasks", "created_at", "updated_at"]);
    for task in tasks["tasks"].as_array().unwrap() {
        has(task, &["id", "title", "description", "acceptance_criteria", "status", "priority", "dependencies"]);
        has(task, &["attempts", "last_attempt_commit", "last_verdict", "last_integrated_commit"]);
        assert_eq!((&task["status"], &task["attempts"]), (&"done".into(), &2.into()));
        let commit = task["last_integrated_commit"].as_str().unwrap();
        world.git(&["merge-base", "--is-ancestor", commit, "main"]);
    }
    let names = |prefix: &str| -> Vec<String> {
        let all =
            fs::read_dir(world.repo.join("reports")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut all: Vec<String> = all.filter(|name| name.starts_with(prefix)).collect();
        all.sort();
        all
    };
    assert_eq!(names("planner"), ["planner-r001.json"]);
    let of = |kind: &str| ["T-001-a1", "T-001-a2", "T-002-a1", "T-002-a2"].map(|name| format!("{kind}-{name}.json"));
    assert_eq!(names("impl"), of("impl"));
    assert_eq!(names("verdict"), of("verdict"));
    let report = |name: &str| read_json(&world.repo.join("reports").join(name));
    has(&report("planner-r001.json"), &["role", "revision", "summary", "task_changes", "planner_requested_reason"]);
    has(&report("impl-T-001-a1.json"), &["role", "task_id", "attempt", "commit", "summary", "files_changed"]);
    let verdict = report("verdict-T-001-a1.json");
    has(&verdict, &["role", "task_id", "attempt", "commit", "verdict", "recovery_signal", "summary", "findings"]);
    assert_eq!((&verdict["verdict"], &verdict["criteria_results"][0]["criterion"]), (&"revert".into(), &"C1".into()));
    let lessons = fs::read_to_string(world.repo.join("harness-lessons.md")).unwrap();
    for heading in ["### L-1: Reverted task T-001 attempt 1", "Accepted task T-002", "Run summary: Write the files"] {
        assert!(lessons.contains(heading), "{heading}\n{lessons}");
    }
    for field in ["Category", "Strategy", "Outcome", "Insight", "Context", "Iteration", "Timestamp"] {
        assert_eq!(lessons.matches(&format!("- **{field}:** ")).count(), 5, "{field}\n{lessons}");
    }
    assert!(!world.events(&run, "revert", "retry_task").is_empty());
}

/// weaknesses 41: one line an event, LF, nine columns, whatever a summary holds.
#[test]
fn the_table_of_events_has_one_line_an_event_in_words_of_the_predecessor() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.faults("control_chars@verifier");
    let (run, status) = world.complete(&[]);
    let table = fs::read_to_string(world.repo.join("harness-events.tsv")).unwrap();
    let mut lines = table.lines();
    assert_eq!(lines.next().unwrap(), "seq\ttimestamp\trole\ttask_id\tattempt\tcommit\tstatus\tdecision\tdescription");
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split('\t').collect()).collect();
    assert!(!table.contains('\r') && table.ends_with('\n'));
    assert_eq!(rows.len() as u64, status["seq"].as_u64().unwrap());
    for (n, row) in rows.iter().enumerate() {
        assert_eq!((row.len(), row[0]), (9, (n + 1).to_string().as_str()), "{row:?}");
        assert!(!row[8].is_empty(), "{row:?}");
    }
    let old = |role: &str, word: &str, decision: &str| {
        let found: Vec<_> = rows.iter().filter(|r| r[2] == role && r[6] == word && r[7] == decision).collect();
        assert_eq!(found.len(), 1, "{role} {word} {decision}\n{table}");
        found[0].clone()
    };
    old("runtime", "init", "initialize");
    old("planner", "plan", "dispatch_implementer");
    let submitted = old("implementer", "submit_trial", "dispatch_verifier");
    assert_eq!((submitted[3], submitted[4], submitted[5].len()), ("T-001", "1", 40));
    let accepted = old("verifier", "accept", "all_tasks_done");
    assert!(accepted[8].contains("\\t") && accepted[8].contains("\\n"), "escaped: {accepted:?}");
    let stored = world.events(&run, "accept", "");
    assert!(stored[0]["description"].as_str().unwrap().contains('\t'), "the store has it as it was: {stored:?}");
}

/// weaknesses 3: notes are never parsed to append; a line break in a summary breaks nothing.
#[test]
fn line_breaks_in_summaries_and_a_users_heading_in_lessons_break_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    fs::write(world.repo.join("harness-lessons.md"), "# My own notes\n\nkeep me\n").unwrap();
    world.set(&[("TASKS", "3")]);
    world.faults("set=summary,\"first line\\nsecond line\\n### L-9: no heading\"@verifier");
    let (_, status) = world.complete(&[]);
    assert_eq!(world.landed("main").len(), 3, "{status:#}");
    assert_eq!(world.turns("implementer").len(), 3);
    let lessons = fs::read_to_string(world.repo.join("harness-lessons.md")).unwrap();
    assert!(lessons.contains("keep me") && lessons.contains("first line"), "{lessons}");
    assert!(!lessons.lines().any(|line| line.starts_with("### L-9: no")), "{lessons}");
}
