//! A repository, the scripted app-server under the name `codex`, and turns with short deadlines.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use harness_core::effect::{TurnLimits, TurnRequest};
use harness_core::input::TurnFailure;
use harness_proto::ids::{RunId, TaskId};
use harness_proto::report::schema::schema_for;
use harness_proto::vocab::{Kind, Role};
use harnessd::agent::{AgentKind, Agents, StopSignal, TurnResult, TurnSpec};
use harnessd::process::{Identity, Wall, alive, processes_of_run, set_launcher};
use serde_json::{Value, json};

/// The peer, as it lies in the repository.
const PEER: &str = include_str!("../../../tests/peers/fake_codex_app_server.py");
/// When something that must happen counts as broken.
const BROKEN: Duration = Duration::from_secs(30);

/// One run with its folders; what it started is checked to be gone.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) run: RunId,
    pub(crate) agents: Agents,
    pub(crate) started: Arc<Mutex<Vec<Identity>>>,
    settings: Mutex<Value>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        set_launcher(Path::new(env!("CARGO_BIN_EXE_harnessd")));
        let folder = tempfile::Builder::new().prefix("ha").tempdir().unwrap();
        let mut random = [0; 5];
        random.copy_from_slice(&uuid::Uuid::new_v4().as_bytes()[..5]);
        let bench = Self {
            folder,
            run: RunId::from_random(random),
            agents: Agents::new(PathBuf::from(env!("CARGO_BIN_EXE_harnessd"))),
            started: Arc::default(),
            settings: Mutex::new(json!({})),
        };
        for name in ["bin", "tmp", "plan", "scratch", "state"] {
            std::fs::create_dir(bench.path(name)).unwrap();
        }
        bench.program("bin/codex", PEER);
        bench.tree("tree");
        bench.set("STATE_DIR", &bench.path("state").to_string_lossy());
        bench.set("LEDGER", &bench.path("ledger").to_string_lossy());
        bench.set("LOG", &bench.path("log").to_string_lossy());
        bench
    }

    /// A bench whose peer errs by these rules.
    pub(crate) fn with_faults(rules: &str) -> Self {
        let bench = Self::new();
        bench.set("FAULTS", rules);
        bench
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Changes a setting of the peer, from its next turn on.
    pub(crate) fn set(&self, name: &str, value: &str) {
        let mut settings = self.settings.lock().unwrap();
        settings[name] = json!(value);
        std::fs::write(self.path("settings.json"), settings.to_string()).unwrap();
    }

    /// Leaves an executable script.
    pub(crate) fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Makes a repository with one commit.
    pub(crate) fn tree(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir(&path).unwrap();
        for line in ["init -q -b main", "commit -q --allow-empty -m base"] {
            self.git(&path, line);
        }
        path
    }

    #[expect(clippy::disallowed_methods, reason = "the test's own git, not the daemon's")]
    pub(crate) fn git(&self, tree: &Path, line: &str) -> String {
        let done = std::process::Command::new("git")
            .args(line.split(' '))
            .current_dir(tree)
            .env_clear()
            .envs(self.env())
            .output()
            .unwrap();
        assert!(done.status.success(), "git {line}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let config = self.path("settings.json");
        vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap()),
            ("HOME".into(), self.path("").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
            ("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()),
            ("GIT_AUTHOR_NAME".into(), "A".into()),
            ("GIT_AUTHOR_EMAIL".into(), "a@example.invalid".into()),
            ("GIT_COMMITTER_NAME".into(), "A".into()),
            ("GIT_COMMITTER_EMAIL".into(), "a@example.invalid".into()),
            ("PYTHONDONTWRITEBYTECODE".into(), "1".into()),
            ("FAKE_CODEX_CONFIG".into(), config.into()),
            ("AGENT_API_KEY".into(), "planted-secret-value".into()),
        ]
    }

    pub(crate) fn codex(&self) -> AgentKind {
        AgentKind::Codex { program: self.path("bin/codex").to_string_lossy().into_owned() }
    }

    /// A turn of `role` for task `T1`, attempt 1, in `tree`.
    pub(crate) fn spec(&self, role: Role) -> TurnSpec {
        let criteria = ["C1".to_owned(), "C2".to_owned()];
        let head = self.git(&self.path("tree"), "rev-parse HEAD");
        let (kind, prompt) = match role {
            Role::Planner => (
                Kind::Plan,
                "You are the planner.\nTasks: {{PLAN_DIR}}/tasks.json\nPlan: {{PLAN_DIR}}/plan.md\n".to_owned(),
            ),
            Role::Implementer => (Kind::Implement, "You are the implementer.\nTask: T1\nAttempt: 1\n".to_owned()),
            Role::Verifier => (
                Kind::Verify,
                format!(
                    "You are the verifier.\nTask: T1\nAttempt: 1\nTrial commit: {head}\n- C1: it is there\n- C2: it works\n"
                ),
            ),
        };
        let planner = role == Role::Planner;
        TurnSpec {
            run: self.run.clone(),
            request: TurnRequest {
                turn: 1,
                role,
                kind,
                task: (!planner).then(|| TaskId::parse("T1").unwrap()),
                attempt: u32::from(!planner),
                tree: None,
                commit: head.clone(),
                base: head,
                prompt,
                template: String::new(),
                handover: String::new(),
                session: None,
                context: Value::Null,
                repair: false,
                limits: limits(20, 20, 30),
            },
            cwd: self.path("tree"),
            plan_dir: planner.then(|| self.path("plan")),
            tmp: self.path("tmp"),
            writable_roots: vec![self.path("tree/.git")],
            wall: Wall::Open,
            env: self.env(),
            schema: match role {
                Role::Planner => schema_for(role, "", 0, &[]),
                Role::Implementer => schema_for(role, "T1", 1, &[]),
                Role::Verifier => schema_for(role, "T1", 1, &criteria),
            },
            scratch: self.path("scratch"),
            transcript: self.path("transcript.jsonl"),
            danger: false,
            network: false,
            session_key: format!("{}/T1/{role}", self.run),
        }
    }

    pub(crate) async fn run(&self, kind: &AgentKind, spec: &TurnSpec) -> TurnResult {
        self.run_with(kind, spec, StopSignal::default()).await
    }

    pub(crate) async fn run_with(&self, kind: &AgentKind, spec: &TurnSpec, stop: StopSignal) -> TurnResult {
        let started = Arc::clone(&self.started);
        let note = move |identity: Identity| {
            let started = Arc::clone(&started);
            async move { started.lock().unwrap().push(identity) }.boxed()
        };
        let turn = self.agents.run_turn(kind, spec, stop, &note);
        tokio::time::timeout(BROKEN * 3, turn).await.expect("a turn ends within its limits")
    }

    /// Ends every kept session and fails when a process of the run is left.
    pub(crate) async fn finish(&self) {
        self.agents.close_all().await;
        let left = processes_of_run(self.run.as_str());
        assert!(left.is_empty(), "{left:?}");
        for identity in self.started.lock().unwrap().iter() {
            assert!(!alive(identity), "{identity:?}");
        }
    }

    /// The lines of a JSON Lines file.
    pub(crate) fn lines(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns once a line of the ledger has this effect.
    pub(crate) async fn effect(&self, effect: &str) {
        let begun = Instant::now();
        while !self.lines("ledger").iter().any(|line| line["effect"] == effect) {
            assert!(begun.elapsed() < BROKEN, "no {effect}");
            // why: paces the look at a predicate; a file tells nobody that it grew
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Limits in seconds: until taken up, silence, whole turn.
pub(crate) fn limits(start_s: u32, silence_s: u32, max_s: u32) -> TurnLimits {
    TurnLimits { start_s, silence_s, max_s, tokens: 0 }
}

/// The failure of a turn that must have failed.
pub(crate) fn failed(result: &TurnResult) -> &TurnFailure {
    result.text_report.as_ref().expect_err("the turn fails")
}
