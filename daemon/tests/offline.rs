//! Drives the built-in `offline` agent as the runtime does: one child process a turn, a specification on stdin, a report
//! on stdout; then uses the project that came of it. Real processes and a real python3; no network, no git.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

const COMMIT: &str = "0123456789012345678901234567890123456789";

/// A repository's tree, a plan folder and the goal of a run.
struct Bench {
    root: tempfile::TempDir,
    goal: String,
    faults: String,
}

impl Bench {
    fn new(goal: &str) -> Self {
        let root = tempfile::Builder::new().prefix("off").tempdir().unwrap();
        for folder in ["tree", "plan", "home", "state"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self {
            root,
            goal: goal.to_owned(),
            faults: String::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    fn agent(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harnessd"));
        command
            .arg("offline-agent")
            .args(["--faults", &self.faults])
            .current_dir(self.tree())
            .env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"));
        command
            .env("HARNESS_PLAN_DIR", self.path("plan"))
            .env("LANG", "C");
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn raw(&self, command: &mut Command, spec: &Value) -> Output {
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(spec.to_string().as_bytes())
            .unwrap();
        child.wait_with_output().unwrap()
    }

    fn answer(&self, spec: &Value) -> Value {
        let output = self.raw(&mut self.agent(), spec);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn planner(&self, tasks: &[Value]) -> Value {
        json!({
            "role": "planner", "kind": "plan", "run_id": "run_a", "task_id": "", "attempt": 1, "cwd": self.tree(), "prompt": "",
            "schema": {}, "context": {"goal": self.goal, "scope": "", "plan_dir": self.path("plan"), "revision": 1, "tasks": tasks},
        })
    }

    fn turn(&self, role: &str, task: &Value, attempt: u64) -> Value {
        let mut given = task.clone();
        let texts = task["acceptance_criteria"].as_array().unwrap();
        let criteria: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(n, text)| json!({"id": format!("C{}", n + 1), "text": text}))
            .collect();
        given["criteria"] = json!(criteria);
        json!({
            "role": role, "kind": "x", "run_id": "run_a", "task_id": task["id"], "attempt": attempt, "cwd": self.tree(), "prompt": "",
            "schema": {}, "context": {"goal": self.goal, "scope": "", "trial_commit": COMMIT, "task": given, "feedback": "",
                "evidence": []},
        })
    }

    fn plan(&self) -> Vec<Value> {
        let report = self.answer(&self.planner(&[]));
        assert_members(
            &report,
            &[
                "role",
                "revision",
                "summary",
                "task_changes",
                "planner_requested_reason",
            ],
        );
        assert!(
            std::fs::read_to_string(self.path("plan/plan.md"))
                .unwrap()
                .contains(&self.goal)
        );
        self.tasks()
    }

    fn tasks(&self) -> Vec<Value> {
        let text = std::fs::read(self.path("plan/tasks.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["tasks"]
            .as_array()
            .unwrap()
            .clone()
    }

    fn implement(&self, task: &Value) -> Value {
        let report = self.answer(&self.turn("implementer", task, 1));
        let members = [
            "role",
            "task_id",
            "attempt",
            "commit",
            "summary",
            "files_changed",
            "checks_run",
            "proposed_tasks",
        ];
        assert_members(&report, &members);
        report
    }

    fn verify(&self, task: &Value) -> Value {
        let report = self.answer(&self.turn("verifier", task, 1));
        let members = [
            "role",
            "task_id",
            "attempt",
            "commit",
            "verdict",
            "recovery_signal",
            "summary",
            "findings",
            "criteria_results",
            "proposed_tasks",
        ];
        assert_members(&report, &members);
        assert_eq!(report["commit"], COMMIT);
        report
    }

    /// Plans, implements and verifies until everything is accepted.
    fn build(&self) -> Vec<Value> {
        let tasks = self.plan();
        for task in &tasks {
            self.implement(task);
            let report = self.verify(task);
            assert_eq!(report["verdict"], "accept", "{report:#}");
            assert_eq!(report["findings"], json!([]));
            for (n, result) in report["criteria_results"]
                .as_array()
                .unwrap()
                .iter()
                .enumerate()
            {
                assert_eq!(result["criterion"], format!("C{}", n + 1));
                assert_eq!(result["result"], "pass");
                assert!(result["evidence"].as_str().unwrap().len() > 20, "{result}");
            }
        }
        tasks
    }

    fn python(&self, args: &[&str]) -> Output {
        let mut command = Command::new("python3");
        command
            .args(args)
            .current_dir(self.tree())
            .env("HOME", self.path("home"))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        command.output().unwrap()
    }

    fn tool(&self, args: &[&str]) -> String {
        let output = self.python(&[&["-m"], args].concat());
        assert!(output.status.success(), "{args:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn assert_members(report: &Value, members: &[&str]) {
    let mut have: Vec<&str> = report
        .as_object()
        .unwrap_or_else(|| panic!("{report}"))
        .keys()
        .map(String::as_str)
        .collect();
    let mut want = members.to_vec();
    have.sort_unstable();
    want.sort_unstable();
    assert_eq!(have, want, "{report:#}");
}

fn refusal(answer: &Value) -> String {
    assert_eq!(answer["failure"]["kind"], "refused", "{answer:#}");
    answer["failure"]["message"].as_str().unwrap().to_owned()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files_below(&path))
        } else {
            all.push(path)
        }
    }
    all
}

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
}

#[test]
fn the_same_turn_gives_the_same_bytes() {
    let read = |bench: &Bench| {
        bench.build();
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
fn faults_in_the_code_are_lied_about_and_the_tests_fail() {
    for fault in ["syntax_error", "failing_test"] {
        let mut bench = Bench::new("a notes command-line tool: add");
        let tasks = bench.plan();
        bench.faults = format!("{fault}@implementer:T-001:a1");
        let report = bench.implement(&tasks[0]);
        assert!(
            report["checks_run"][0]
                .as_str()
                .unwrap()
                .ends_with("exit 0")
        );
        assert!(
            !bench
                .python(&["-m", "unittest", "tests.test_store"])
                .status
                .success()
        );
        assert_eq!(bench.verify(&tasks[0])["verdict"], "revert");
        let second = bench.answer(&bench.turn("implementer", &tasks[0], 2));
        assert!(!second["files_changed"].as_array().unwrap().is_empty());
        assert_eq!(bench.verify(&tasks[0])["verdict"], "accept");
    }
}

#[test]
fn faults_of_roles_do_what_they_say() {
    let mut bench = Bench::new("a notes command-line tool: add");
    let tasks = bench.plan();
    bench.faults = "no_change".to_owned();
    assert!(
        !bench.implement(&tasks[0])["files_changed"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(files_below(&bench.tree()), Vec::<PathBuf>::new());
    bench.faults = "false_accept".to_owned();
    assert_eq!(bench.verify(&tasks[0])["verdict"], "accept");
    bench.faults = "touch_plan".to_owned();
    bench.implement(&tasks[0]);
    assert!(bench.path("tree/tasks.json").is_file());
    bench.faults = "revert".to_owned();
    assert_eq!(bench.verify(&tasks[0])["verdict"], "revert");
    bench.faults = "outside".to_owned();
    assert!(
        bench.verify(&tasks[0])["summary"]
            .as_str()
            .unwrap()
            .contains("outside the tree")
    );
    assert!(bench.path("harness-offline-outside.txt").is_file());
    for (flaw, check) in [
        (
            "cycle",
            Box::new(|tasks: &[Value]| tasks[0]["dependencies"][0] == tasks.last().unwrap()["id"])
                as Box<dyn Fn(&[Value]) -> bool>,
        ),
        (
            "dangling",
            Box::new(|tasks| tasks[0]["dependencies"][0] == "T-999"),
        ),
        (
            "duplicate",
            Box::new(|tasks| tasks[0]["id"] == tasks.last().unwrap()["id"]),
        ),
    ] {
        let mut fresh = Bench::new("a notes command-line tool: add");
        fresh.faults = format!("bad_plan={flaw}");
        assert!(check(&fresh.plan()), "{flaw}");
    }
}

#[test]
fn faults_of_the_answer_do_what_they_say() {
    let mut bench = Bench::new("a notes command-line tool: add");
    let spec = bench.planner(&[]);
    let mut raw = |faults: &str| {
        bench.faults = faults.to_owned();
        bench.raw(&mut bench.agent(), &spec)
    };
    assert!(serde_json::from_slice::<Value>(&raw("garbage").stdout).is_err());
    assert_eq!(raw("empty").stdout, b"");
    let ended = raw("exit=7");
    assert_eq!((ended.status.code(), ended.stdout.len()), (Some(7), 0));
    assert_eq!(raw("crash").status.code(), None);
    assert!(
        !serde_json::from_slice::<Value>(&raw("bad_report").stdout)
            .unwrap()
            .as_object()
            .unwrap()
            .contains_key("summary")
    );
    let big = raw("big_report=300000").stdout;
    assert!(big.len() >= 300_000 && serde_json::from_slice::<Value>(&big).is_ok());
    assert!(
        refusal(&serde_json::from_slice(&raw("refuse").stdout).unwrap()).contains("fault rule")
    );
    assert!(
        refusal(&serde_json::from_slice(&raw("nonsense").stdout).unwrap()).contains("`nonsense`")
    );
    let other = raw("garbage@verifier; empty:T-001; exit=3:a2");
    assert_eq!(
        serde_json::from_slice::<Value>(&other.stdout).unwrap()["role"],
        "planner"
    );
}

#[test]
fn a_counted_fault_stops_by_itself() {
    let mut bench = Bench::new("a notes command-line tool: add");
    bench.faults = "empty:x2".to_owned();
    let spec = bench.planner(&[]);
    let sizes: Vec<bool> = (0..4)
        .map(|_| {
            bench
                .raw(
                    bench
                        .agent()
                        .env("HARNESS_OFFLINE_STATE", bench.path("state")),
                    &spec,
                )
                .stdout
                .is_empty()
        })
        .collect();
    assert_eq!(sizes, [true, true, false, false]);
    let mut third = spec;
    third["attempt"] = json!(3);
    assert!(!bench.raw(&mut bench.agent(), &third).stdout.is_empty());
}

#[test]
fn a_hanging_turn_does_its_work_and_stays() {
    let mut bench = Bench::new("a notes command-line tool: add");
    bench.faults = "hang".to_owned();
    let mut child = bench.agent().spawn().unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(bench.planner(&[]).to_string().as_bytes())
        .unwrap();
    let (sender, ended) = std::sync::mpsc::channel();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let copied = std::io::copy(&mut stdout, &mut std::io::sink());
        sender.send(copied.unwrap()).unwrap();
    });
    assert!(
        ended.recv_timeout(Duration::from_millis(1500)).is_err(),
        "the turn ended"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    assert_eq!(ended.recv().unwrap(), 0);
    assert!(!bench.tasks().is_empty());
}

#[test]
fn a_wrong_command_line_and_a_wrong_specification_are_said() {
    let bench = Bench::new("a notes command-line tool: add");
    let output = bench.raw(bench.agent().arg("--what"), &json!({}));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("usage: harnessd offline-agent"));
    assert!(refusal(&bench.answer(&json!({"role": "cook"}))).contains("cannot be read"));
}
