//! Drives the built-in `offline` agent as the runtime does: one child process a turn, a specification on stdin, a report
//! on stdout; then uses the project that came of it. Real processes and a real python3; no network, no git.

#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "offline/bench.rs"]
mod bench;
#[path = "offline/faults.rs"]
mod faults;

use std::path::PathBuf;

use serde_json::{Value, json};

use bench::{Bench, files_below, refusal};

/// Runs the suite of the finished project and returns how many tests it had.
fn suite(bench: &Bench) -> usize {
    let output = bench.python(&[
        "-W", "error", "-m", "unittest", "discover", "-t", ".", "-s", "tests",
    ]);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.starts_with("Ran ")).unwrap();
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn notes_are_planned_written_proven_and_work() {
    let bench = Bench::new("a notes command-line tool: add, list, search, with tests");
    let tasks = bench.build();
    let ids: Vec<&str> = tasks
        .iter()
        .map(|task| task["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["T-001", "T-002", "T-003", "T-004", "T-005"]);
    assert_eq!(tasks[1]["dependencies"], json!(["T-001"]));
    assert_eq!(tasks[4]["dependencies"], json!(["T-002", "T-003", "T-004"]));
    assert_eq!(
        tasks[1]["verification"],
        json!(["python3 -m unittest -v tests.test_add"])
    );
    assert!(suite(&bench) > 25);
    assert_eq!(
        bench.tool(&["notes", "add", "buy milk"]),
        "Added note 1: buy milk\n"
    );
    assert_eq!(
        bench.tool(&["notes", "add", "grüße", "日本語"]),
        "Added note 2: grüße 日本語\n"
    );
    assert_eq!(
        bench.tool(&["notes", "list"]),
        "1. buy milk\n2. grüße 日本語\n"
    );
    assert_eq!(bench.tool(&["notes", "search", "MILK"]), "1. buy milk\n");
    let none = bench.python(&["-m", "notes", "search", "absent"]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&none.stderr),
        "notes: error: no note contains 'absent'\n"
    );
    let stray: Vec<_> = files_below(&bench.tree())
        .into_iter()
        .filter(|path| path.to_string_lossy().contains("__pycache__"))
        .collect();
    assert_eq!(stray, Vec::<PathBuf>::new());
}

#[test]
fn recipes_with_other_commands_work() {
    let bench = Bench::new(
        "Build a recipes CLI app in Python with add, delete and view commands, called cookbook.",
    );
    bench.build();
    suite(&bench);
    assert_eq!(
        bench.tool(&["cookbook", "add", "soup"]),
        "Added recipe 1: soup\n"
    );
    assert_eq!(bench.tool(&["cookbook", "view", "1"]), "1. soup\n");
    assert_eq!(
        bench.tool(&["cookbook", "delete", "1"]),
        "Removed recipe 1: soup\n"
    );
    assert_eq!(
        bench.python(&["-m", "cookbook", "view", "1"]).status.code(),
        Some(1)
    );
    assert_eq!(
        bench.tool(&["cookbook", "add", "stew"]),
        "Added recipe 2: stew\n"
    );
}

#[test]
fn every_command_works_together() {
    let bench = Bench::new(
        "a shopping list command line tool: add, list, search, show, count, edit, tag, done, export to json, import from json, remove",
    );
    let tasks = bench.build();
    assert_eq!(tasks.len(), 13);
    assert!(suite(&bench) > 50);
    let name = "shopping_list";
    bench.tool(&[name, "add", "apples"]);
    assert_eq!(
        bench.tool(&[name, "tag", "1", "fruit"]),
        "1. apples #fruit\n"
    );
    assert!(bench.tool(&[name, "export"]).contains("\"fruit\""));
    assert_eq!(bench.tool(&[name, "count"]), "1\n");
}

/// A command that does nothing, with a test that always passes, must not be accepted: the criteria are shown by use.
#[test]
fn no_command_is_accepted_for_its_tests_alone() {
    let bench = Bench::new(
        "a notes cli: add, list, search, show, count, edit, tag, done, export, import, remove",
    );
    let tasks = bench.plan();
    bench.implement(&tasks[0]);
    for task in &tasks[1..tasks.len() - 1] {
        bench.implement(task);
        let files = task["files_touched"].as_array().unwrap();
        let path = |n: usize| bench.tree().join(files[n].as_str().unwrap());
        let code = std::fs::read_to_string(path(0)).unwrap();
        let start = code.find("def run(").unwrap();
        std::fs::write(
            path(0),
            format!("{}def run(args, store):\n    return 0\n", &code[..start]),
        )
        .unwrap();
        let test = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        pass\n";
        std::fs::write(path(1), test).unwrap();
        let report = bench.verify(task);
        assert_eq!(report["verdict"], "revert", "{report:#}");
        assert_eq!(
            report["criteria_results"]
                .as_array()
                .unwrap()
                .last()
                .unwrap()["result"],
            "pass"
        );
        let failed = report["criteria_results"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["result"] == "fail");
        assert!(failed.count() >= 2, "{report:#}");
    }
}

#[test]
fn a_later_run_adds_a_command_and_keeps_what_is_there() {
    let mut bench = Bench::new("entries command-line tool: list");
    std::fs::write(bench.path("tree/README.md"), "# My project\n").unwrap();
    std::fs::create_dir(bench.path("tree/tests")).unwrap();
    std::fs::write(bench.path("tree/tests/test_list.py"), "import unittest\n").unwrap();
    let tasks = bench.build();
    assert_eq!(
        tasks[1]["verification"],
        json!(["python3 -m unittest -v tests.test_entries_list"])
    );
    bench.goal = "entries command-line tool: list, add, count".to_owned();
    let added = bench.build();
    let titles: Vec<&str> = added
        .iter()
        .map(|task| task["title"].as_str().unwrap())
        .collect();
    assert_eq!(
        titles[..2],
        ["Add the command `add`", "Add the command `count`"]
    );
    assert_eq!(titles.len(), 3);
    let readme = std::fs::read_to_string(bench.path("tree/README.md")).unwrap();
    assert!(readme.starts_with("# My project\n"));
    assert_eq!(readme.matches("entries list").count(), 1);
    assert!(readme.contains("entries count"));
    assert_eq!(bench.tool(&["entries", "add", "x"]), "Added entry 1: x\n");
    assert_eq!(
        std::fs::read_to_string(bench.path("tree/tests/test_list.py")).unwrap(),
        "import unittest\n"
    );
    let again = bench.answer(&bench.planner(&[]));
    assert!(refusal(&again).contains("nothing to plan"));
}

#[test]
fn what_it_cannot_do_is_a_failure_that_says_so() {
    for (goal, word) in [
        ("a web app for notes", "command-line tool"),
        ("a notes command-line tool: add, frobnicate", "`frobnicate`"),
        ("a notes command-line tool: add, search by date", "`by`"),
        ("a notes command-line tool in rust: add", "`in`"),
    ] {
        let bench = Bench::new(goal);
        let message = refusal(&bench.answer(&bench.planner(&[])));
        assert!(message.contains(word), "{message}");
        assert!(
            message.contains("it understands goals such as"),
            "{message}"
        );
        assert_eq!(files_below(&bench.path("plan")), Vec::<PathBuf>::new());
    }
    let bench = Bench::new("a notes command-line tool: add");
    std::fs::create_dir(bench.path("tree/src")).unwrap();
    let mut narrow = bench.planner(&[]);
    narrow["context"]["scope"] = json!("src");
    assert!(refusal(&bench.answer(&narrow)).contains("top of the repository"));
    let stranger = json!({"id": "T-9", "title": "Make it pretty", "acceptance_criteria": ["It is pretty"], "files_touched": []});
    assert!(refusal(&bench.answer(&bench.turn("implementer", &stranger, 1))).contains("T-9"));
    let report = bench.verify(&stranger);
    assert_eq!(
        (&report["verdict"], &report["criteria_results"][0]["result"]),
        (&json!("revert"), &json!("skip"))
    );
    std::fs::create_dir(bench.path("tree/notes")).unwrap();
    assert!(refusal(&bench.answer(&bench.planner(&[]))).contains("called NAME"));
}

#[test]
fn python_must_be_there() {
    let bench = Bench::new("a notes command-line tool: add");
    let output = bench.raw(
        bench.agent().env("PATH", bench.path("home")),
        &bench.planner(&[]),
    );
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(refusal(&answer).contains("requires python3"));
}

#[test]
fn the_verifier_finds_what_is_wrong() {
    let bench = Bench::new("a notes command-line tool: add, list");
    let tasks = bench.plan();
    bench.implement(&tasks[0]);
    bench.implement(&tasks[1]);
    let code = bench.path("tree/notes/commands/add.py");
    let good = std::fs::read_to_string(&code).unwrap();
    std::fs::write(
        &code,
        good.replace("document[\"items\"].append", "document[\"items\"].count"),
    )
    .unwrap();
    let report = bench.verify(&tasks[1]);
    assert_eq!(report["verdict"], "revert");
    assert_eq!(report["criteria_results"][0]["result"], "fail");
    assert!(
        report.to_string().contains("does not hold `buy milk`"),
        "{report:#}"
    );
    std::fs::remove_file(&code).unwrap();
    assert!(
        bench.verify(&tasks[1])["findings"]
            .to_string()
            .contains("is not in the commit")
    );
    std::fs::write(&code, good).unwrap();
    assert_eq!(bench.verify(&tasks[1])["verdict"], "accept");
    let mut spec = bench.turn("verifier", &tasks[1], 1);
    spec["context"]["evidence"] =
        json!([{"command": "python3 -m unittest", "exit_code": 1, "result": "FAIL"}]);
    assert_eq!(bench.answer(&spec)["verdict"], "revert");
}

#[test]
fn a_failed_task_is_planned_again_once_and_never_silently_twice() {
    let bench = Bench::new("a notes command-line tool: add, list");
    let mut tasks = bench.plan();
    tasks[0]["status"] = json!("done");
    tasks[1]["status"] = json!("failed");
    tasks[1]["mine"] = json!("kept");
    let mut spec = bench.planner(&tasks);
    spec["context"]["feedback"] = json!("the tests failed");
    let report = bench.answer(&spec);
    assert_eq!(report["task_changes"]["updated"], json!(["T-002"]));
    assert_eq!(report["planner_requested_reason"], "");
    let mut again = bench.tasks();
    assert_eq!(
        (&again[1]["status"], &again[1]["mine"], &again[0]),
        (&json!("ready"), &json!("kept"), &tasks[0])
    );
    assert!(
        again[1]["description"]
            .as_str()
            .unwrap()
            .contains("the tests failed")
    );
    again[1]["status"] = json!("failed");
    let report = bench.answer(&bench.planner(&again));
    assert_eq!(report["task_changes"]["updated"], json!([]));
    assert!(
        report["planner_requested_reason"]
            .as_str()
            .unwrap()
            .contains("T-002"),
        "{report:#}"
    );
    assert_eq!(bench.tasks(), again);
    let mut untouched = bench.planner(&bench.plan());
    untouched["kind"] = json!("replan");
    untouched["context"]["feedback"] = Value::Null;
    let report = bench.answer(&untouched);
    assert!(
        report["planner_requested_reason"]
            .as_str()
            .unwrap()
            .contains("same as before"),
        "{report:#}"
    );
}

#[test]
fn the_same_turn_gives_the_same_bytes() {
    let read = |bench: &Bench| {
        for task in bench.plan() {
            bench.implement(&task);
        }
        let mut files = files_below(&bench.tree());
        files.sort();
        let mut all: Vec<_> = files
            .iter()
            .map(|path| {
                (
                    path.strip_prefix(bench.tree()).unwrap().to_owned(),
                    std::fs::read(path).unwrap(),
                )
            })
            .collect();
        all.push((
            "plan".into(),
            std::fs::read(bench.path("plan/tasks.json")).unwrap(),
        ));
        all
    };
    let goal = "a bookmarks command-line tool: add";
    assert_eq!(read(&Bench::new(goal)), read(&Bench::new(goal)));
}

#[test]
fn a_wrong_command_line_and_a_wrong_specification_are_said() {
    let bench = Bench::new("a notes command-line tool: add");
    let output = bench.raw(bench.agent().arg("--what"), &json!({}));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: harnessd offline-agent"));
    assert!(refusal(&bench.answer(&json!({"role": "cook"}))).contains("cannot be read"));
}
