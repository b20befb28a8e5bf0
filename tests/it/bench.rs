//! A repository, and the scripted app-server under the name `codex`, whose behaviour a test sets turn by turn.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness_tests::{Finished, RepoKind, Snapshot, TestEnv, check_run};
use serde_json::{Value, json};

/// A suite that every commit of these tests passes.
pub(crate) const SUITE: &str = "test -f README.md";
/// After this long a wait is broken and not slow.
const LIMIT: &str = "100s";

/// One test's world.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) repo: PathBuf,
    /// The repository before anything was registered.
    before: RefCell<Snapshot>,
}

impl World {
    /// A plain repository and a peer that plans one task.
    pub(crate) fn new() -> Self {
        Self::of(RepoKind::Plain)
    }

    /// A repository of a kind.
    pub(crate) fn of(kind: RepoKind) -> Self {
        let env = TestEnv::new();
        let repo = env.repo("repo", kind);
        let before = RefCell::new(Snapshot::of(&env, &repo));
        let world = Self { env, repo, before };
        let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/fake_codex_app_server.py");
        let settings = world.env.path("codex.json");
        world.program(
            "codex",
            &format!("#!/bin/sh\nFAKE_CODEX_CONFIG='{}' exec python3 -I -S -B '{peer}' \"$@\"\n", settings.display()),
        );
        let path = |name: &str| world.env.path(name).to_string_lossy().into_owned();
        let begin = json!({"TASKS": "1", "LOG": path("codex.log"), "LOG_PROMPTS": "1", "STATE_DIR": path("peer"),
            "LEDGER": path("ledger")});
        fs::write(settings, begin.to_string()).unwrap();
        world
    }

    /// Takes the present state of the repository as the one before the run.
    pub(crate) fn settle(&self) {
        self.before.replace(Snapshot::of(&self.env, &self.repo));
    }

    /// The repository before the run.
    pub(crate) fn before(&self) -> Snapshot {
        self.before.borrow().clone()
    }

    /// Changes settings of the peer, from its next turn on.
    pub(crate) fn set(&self, changes: &[(&str, &str)]) {
        let place = self.env.path("codex.json");
        let mut all: Value = serde_json::from_str(&fs::read_to_string(&place).unwrap()).unwrap();
        for (name, value) in changes {
            all[*name] = json!(value);
        }
        let aside = self.env.path("codex.json.new");
        fs::write(&aside, all.to_string()).unwrap();
        fs::rename(aside, place).unwrap();
    }

    /// The peer errs by these rules.
    pub(crate) fn faults(&self, rules: &str) {
        self.set(&[("FAULTS", rules)]);
    }

    /// The plan that the peer makes at first.
    pub(crate) fn plan(&self, tasks: &Value) {
        let place = self.env.path("first-plan.json");
        fs::write(&place, tasks.to_string()).unwrap();
        self.set(&[("PLAN_FILE", place.to_str().unwrap())]);
    }

    /// Leaves an executable script and returns its path.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.env.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.env.git(&self.repo, args).trim_end().to_owned()
    }

    pub(crate) fn ctl(&self, args: &[&str]) -> Finished {
        self.env.harnessctl(args)
    }

    /// `create-launch` for the peer. Given neither `--verify` nor `--no-verification`, the suite is [`SUITE`].
    pub(crate) fn create(&self, extra: &[&str]) -> Finished {
        let (repo, codex) = (self.repo.to_string_lossy(), self.env.path("codex"));
        let mut args = vec!["create-launch", "--json", "--repo", &repo, "--original-goal", "Write the files"];
        args.extend(["--goal", "Write the files", "--scope", ".", "--codex-bin", codex.to_str().unwrap()]);
        args.extend(["--set", "fault.delay_s=0"]);
        if !extra.iter().any(|word| matches!(*word, "--verify" | "--no-verification")) {
            args.extend(["--verify", SUITE]);
        }
        args.extend(extra);
        self.ctl(&args)
    }

    /// A registered run.
    pub(crate) fn register(&self, extra: &[&str]) -> String {
        text(&self.create(extra).success().json()["run_id"])
    }

    /// A started run.
    pub(crate) fn start(&self, extra: &[&str]) -> String {
        let run = self.register(extra);
        self.ctl(&["start", &run]).success();
        run
    }

    /// Waits for a condition; the exit code and the run.
    pub(crate) fn wait(&self, run: &str, condition: &str) -> (i32, Value) {
        let done = self.ctl(&["wait", run, "--for", condition, "--timeout", LIMIT, "--json"]);
        assert_ne!(done.code, 124, "never {condition}: {:#}\n{}", self.status(run), self.history(run));
        (done.code, serde_json::from_str(&done.stdout).unwrap_or(Value::Null))
    }

    /// Waits until the run is over, which it must be in a good way, with every promise kept.
    pub(crate) fn completed(&self, run: &str) -> Value {
        let (code, status) = self.wait(run, "done");
        assert_eq!(code, 0, "{status:#}\n{}", self.history(run));
        assert_eq!(status["lifecycle"], "completed", "{status:#}");
        let broken = check_run(&self.env, &self.repo, run, &self.before());
        assert!(broken.is_empty(), "{broken:#?}\n{}", self.history(run));
        status
    }

    /// Starts a run and waits until it has completed.
    pub(crate) fn complete(&self, extra: &[&str]) -> (String, Value) {
        let run = self.start(extra);
        let status = self.completed(&run);
        (run, status)
    }

    pub(crate) fn status(&self, run: &str) -> Value {
        self.env.store(run).status()
    }

    /// Waits, event by event, until one fits.
    pub(crate) fn event(&self, run: &str, status: &str, decision: &str) -> Value {
        harness_tests::wait_for(&format!("{status}/{decision}\n{}", self.history(run)), || {
            self.events(run, status, decision).pop()
        })
    }

    /// Every event of a kind; an empty decision is any.
    pub(crate) fn events(&self, run: &str, status: &str, decision: &str) -> Vec<Value> {
        let all = self.env.store(run).events();
        all.into_iter()
            .filter(|e| e["status"] == status && (decision.is_empty() || e["decision"] == decision))
            .collect()
    }

    /// The history in short lines, for messages and comparisons.
    pub(crate) fn history(&self, run: &str) -> String {
        let line = |e: &Value| {
            let word = |member: &str| e[member].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} a{} {}/{} {}\n",
                e["seq"],
                word("role"),
                word("task_id"),
                e["attempt"],
                word("status"),
                word("decision"),
                word("description").chars().take(160).collect::<String>()
            )
        };
        self.env.store(run).events().iter().map(line).collect()
    }

    /// Turns that the peer began and ended, oldest first.
    pub(crate) fn turns(&self, role: &str) -> Vec<Value> {
        self.log("turn").into_iter().filter(|line| role.is_empty() || line["role"] == role).collect()
    }

    /// Waits until the peer has begun a turn of this role and attempt.
    pub(crate) fn begun(&self, role: &str, attempt: u32) {
        harness_tests::wait_for(&format!("{role} begins attempt {attempt}"), || {
            let all = fs::read_to_string(self.env.path("ledger")).unwrap_or_default();
            let mut lines = all.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let is = |l: &Value| l["effect"] == "turn_begun" && l["role"] == role && l["attempt"] == attempt;
            lines.any(|line| is(&line)).then_some(())
        });
    }

    /// Lines of the peer's log of one kind.
    pub(crate) fn log(&self, event: &str) -> Vec<Value> {
        let all = fs::read_to_string(self.env.path("codex.log")).unwrap_or_default();
        let lines = all.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.filter(|line| line["event"] == event).collect()
    }

    /// Subjects of the commits that a branch got since the beginning, oldest first.
    pub(crate) fn landed(&self, branch: &str) -> Vec<String> {
        let range = format!("{}..{branch}", self.before().refs["refs/heads/main"]);
        self.git(&["log", "--reverse", "--format=%s", &range]).lines().map(str::to_owned).collect()
    }
}

/// A text member.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

/// A task of a plan, ready for the peer.
pub(crate) fn task(id: &str, needs: &[&str], verification: &[&str]) -> Value {
    json!({"id": id, "title": format!("Write {id}"), "description": format!("One file for {id}."),
        "acceptance_criteria": [format!("The file of {id} is there.")], "priority": 1, "dependencies": needs,
        "status": if needs.is_empty() { "ready" } else { "pending" }, "verification": verification})
}

/// Every member of an object.
pub(crate) fn members(value: &Value) -> Vec<&str> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).keys().map(String::as_str).collect()
}

/// A JSON file of the repository.
pub(crate) fn read_json(path: &Path) -> Value {
    let bytes = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
