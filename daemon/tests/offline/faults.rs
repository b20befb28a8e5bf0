//! Every fault does what its name says, and no more often than it is asked to.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::bench::{Bench, files_below, refusal};

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
