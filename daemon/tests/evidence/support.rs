//! A tree, folders and a specification for each test.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use harness_core::evidence::{CommandExit, CommandRun};
use harness_proto::plan::{Check, CommandLine};
use harnessd::evidence::{Collected, EvidenceError, EvidenceSpec, allowed_environment, collect};
use harnessd::process::{Wall, processes_of_run, set_launcher};
use harnessd::redact::Redactor;
use tokio_util::sync::CancellationToken;

/// Folders of one test and a run id that no other test uses.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) run: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        set_launcher(Path::new(env!("CARGO_BIN_EXE_harnessd")));
        let folder = tempfile::Builder::new().prefix("he").tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("tree/sub")).unwrap();
        Self { folder, run: format!("run_{}", uuid::Uuid::new_v4().simple()) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn spec(&self, checks: Vec<Check>) -> EvidenceSpec {
        EvidenceSpec {
            run: self.run.clone(),
            task: "T-1".into(),
            attempt: 1,
            tree_path: self.path("tree"),
            tree_id: "t".repeat(40),
            tmp: self.path("tmp"),
            scratch: self.path("scratch"),
            output_dir: self.path("outputs"),
            wall: Wall::Open,
            env: allowed_environment(daemon(), &[]),
            setup: vec![],
            checks,
            timeout_s: 60,
            network_default: false,
            redactor: Redactor::default(),
            restore: None,
        }
    }

    pub(crate) async fn collect(&self, spec: EvidenceSpec) -> Result<Collected, EvidenceError> {
        let mut notes = Vec::new();
        let result = collect(spec, CancellationToken::new(), |note| notes.push(note)).await;
        assert_eq!(notes.len() % 2, 0, "each process began and ended");
        assert_eq!(processes_of_run(&self.run), vec![], "nothing lives");
        result
    }

    pub(crate) async fn runs(&self, checks: Vec<Check>) -> Vec<CommandRun> {
        self.collect(self.spec(checks)).await.unwrap().runs
    }

    pub(crate) async fn one(&self, check: Check) -> CommandRun {
        self.runs(vec![check]).await.remove(0)
    }

    pub(crate) async fn sh(&self, text: &str) -> CommandRun {
        self.one(Check::shell(text)).await
    }

    pub(crate) fn output(&self, run: &CommandRun) -> Vec<u8> {
        std::fs::read(self.path("outputs").join(&run.output)).unwrap()
    }
}

/// An environment as a daemon could have it: its secrets must not pass.
pub(crate) fn daemon() -> Vec<(OsString, OsString)> {
    let own = ["PATH", "HOME", "LANG"].into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    own.chain([("OPENAI_API_KEY".into(), "planted-secret-1".into()), ("GIT_DIR".into(), "/nowhere".into())]).collect()
}

pub(crate) fn argv(words: &[&str]) -> Check {
    Check { command: CommandLine::Argv(words.iter().map(|word| (*word).to_owned()).collect()), ..Check::shell("") }
}

pub(crate) fn exits(runs: &[CommandRun]) -> Vec<CommandExit> {
    runs.iter().map(|run| run.exit.clone()).collect()
}
