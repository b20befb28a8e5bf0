//! The runtime's side of a turn, as far as the tests need it.

#![expect(clippy::disallowed_methods, reason = "the runtime's side of the agent, and an outside look at its files")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

const COMMIT: &str = "0123456789012345678901234567890123456789";

/// A repository's tree, a plan folder and the goal of a run.
pub(crate) struct Bench {
    root: tempfile::TempDir,
    pub(crate) goal: String,
    pub(crate) faults: String,
}

impl Bench {
    pub(crate) fn new(goal: &str) -> Self {
        let root = tempfile::Builder::new().prefix("off").tempdir().unwrap();
        for folder in ["tree", "plan", "home", "state"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root, goal: goal.to_owned(), faults: String::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn tree(&self) -> PathBuf {
        self.path("tree")
    }

    pub(crate) fn agent(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_harnessd"));
        command.arg("offline-agent").args(["--faults", &self.faults]).current_dir(self.tree()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path("home"));
        command.env("HARNESS_PLAN_DIR", self.path("plan")).env("LANG", "C");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn raw(&self, command: &mut Command, spec: &Value) -> Output {
        let mut child = command.spawn().unwrap();
        let written = child.stdin.take().unwrap().write_all(spec.to_string().as_bytes());
        // A child that refuses its command line never reads.
        assert!(written.is_ok() || *spec == json!({}), "{written:?}");
        child.wait_with_output().unwrap()
    }

    pub(crate) fn answer(&self, spec: &Value) -> Value {
        let output = self.raw(&mut self.agent(), spec);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn planner(&self, tasks: &[Value]) -> Value {
        json!({
            "role": "planner", "kind": "plan", "run_id": "run_a", "task_id": "", "attempt": 1, "cwd": self.tree(), "prompt": "",
            "schema": {}, "context": {"goal": self.goal, "scope": "", "plan_dir": self.path("plan"), "revision": 1, "tasks": tasks},
        })
    }

    pub(crate) fn turn(&self, role: &str, task: &Value, attempt: u64) -> Value {
        let mut given = task.clone();
        let texts = task["acceptance_criteria"].as_array().unwrap();
        let criteria: Vec<Value> =
            texts.iter().enumerate().map(|(n, text)| json!({"id": format!("C{}", n + 1), "text": text})).collect();
        given["criteria"] = json!(criteria);
        json!({
            "role": role, "kind": "x", "run_id": "run_a", "task_id": task["id"], "attempt": attempt, "cwd": self.tree(), "prompt": "",
            "schema": {}, "context": {"goal": self.goal, "scope": "", "trial_commit": COMMIT, "task": given, "feedback": "",
                "evidence": []},
        })
    }

    pub(crate) fn plan(&self) -> Vec<Value> {
        let report = self.answer(&self.planner(&[]));
        assert_members(&report, &["role", "revision", "summary", "task_changes", "planner_requested_reason"]);
        assert!(std::fs::read_to_string(self.path("plan/plan.md")).unwrap().contains(&self.goal));
        self.tasks()
    }

    pub(crate) fn tasks(&self) -> Vec<Value> {
        let text = std::fs::read(self.path("plan/tasks.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["tasks"].as_array().unwrap().clone()
    }

    pub(crate) fn implement(&self, task: &Value) -> Value {
        let report = self.answer(&self.turn("implementer", task, 1));
        let members =
            ["role", "task_id", "attempt", "commit", "summary", "files_changed", "checks_run", "proposed_tasks"];
        assert_members(&report, &members);
        report
    }

    pub(crate) fn verify(&self, task: &Value) -> Value {
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
    pub(crate) fn build(&self) -> Vec<Value> {
        let tasks = self.plan();
        for task in &tasks {
            self.implement(task);
            let report = self.verify(task);
            assert_eq!(report["verdict"], "accept", "{report:#}");
            assert_eq!(report["findings"], json!([]));
            for (n, result) in report["criteria_results"].as_array().unwrap().iter().enumerate() {
                assert_eq!(result["criterion"], format!("C{}", n + 1));
                assert_eq!(result["result"], "pass");
                assert!(result["evidence"].as_str().unwrap().len() > 20, "{result}");
            }
        }
        tasks
    }

    pub(crate) fn python(&self, args: &[&str]) -> Output {
        let mut command = Command::new("python3");
        command.args(args).current_dir(self.tree()).env("HOME", self.path("home")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.output().unwrap()
    }

    pub(crate) fn tool(&self, args: &[&str]) -> String {
        let output = self.python(&[&["-m"], args].concat());
        assert!(output.status.success(), "{args:?} {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

fn assert_members(report: &Value, members: &[&str]) {
    let mut have: Vec<&str> =
        report.as_object().unwrap_or_else(|| panic!("{report}")).keys().map(String::as_str).collect();
    let mut want = members.to_vec();
    have.sort_unstable();
    want.sort_unstable();
    assert_eq!(have, want, "{report:#}");
}

pub(crate) fn refusal(answer: &Value) -> String {
    assert_eq!(answer["failure"]["kind"], "refused", "{answer:#}");
    answer["failure"]["message"].as_str().unwrap().to_owned()
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files_below(&path)) } else { all.push(path) }
    }
    all
}
