//! A scratch folder and a `Spec` for each test, and waiting on predicates.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use harnessd::process::{
    Child, Exit, Limits, Marker, OutputMode, SpawnError, Spec, StdinMode, Wall, processes_of_run, set_launcher, spawn,
};

/// A private folder and a run id that no other test uses.
pub(crate) struct Bench {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) run: String,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::inside(&std::env::temp_dir())
    }

    /// For a process that will be killed: whoever owns `parent` cleans up after it.
    pub(crate) fn inside(parent: &Path) -> Self {
        set_launcher(Path::new(env!("CARGO_BIN_EXE_harnessd")));
        let folder = tempfile::Builder::new().prefix("hp").tempdir_in(parent).unwrap();
        let run = format!("run_{}", uuid::Uuid::new_v4().simple());
        Self { folder, run }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn spec(&self, argv: &[&str]) -> Spec {
        let marker = Marker::new(&self.run, "T1", 1, "implementer");
        Spec {
            argv: argv.iter().map(OsString::from).collect(),
            cwd: self.path(""),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
            stdin: StdinMode::Null,
            stdout: self.file("out", 1 << 20),
            stderr: self.file("err", 1 << 20),
            wall: Wall::Open,
            limits: Limits::default(),
            record: self.path(&format!("{}.exit", marker.nonce)),
            scratch: self.path("scratch"),
            marker,
        }
    }

    pub(crate) fn sh(&self, script: &str) -> Spec {
        self.spec(&["sh", "-c", script])
    }

    pub(crate) fn python(&self, script: &str) -> Spec {
        self.spec(&["python3", "-c", script])
    }

    pub(crate) fn file(&self, name: &str, cap_bytes: u64) -> OutputMode {
        OutputMode::File { path: self.path(name), cap_bytes }
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8_lossy(&self.read(name)).into_owned()
    }

    /// Returns once the file exists and is not empty.
    pub(crate) async fn appears(&self, name: &str) -> String {
        let path = self.path(name);
        until(&format!("{name} appears"), || std::fs::metadata(&path).is_ok_and(|found| found.len() > 0)).await;
        self.text(name)
    }

    /// Fails when anything of this bench's run lives.
    pub(crate) fn nothing_lives(&self) {
        assert_eq!(processes_of_run(&self.run), vec![]);
    }
}

pub(crate) async fn run(spec: Spec) -> Exit {
    spawn(spec).await.unwrap().wait().await.unwrap()
}

pub(crate) async fn start(spec: Spec) -> Child {
    spawn(spec).await.unwrap()
}

pub(crate) async fn refused(spec: Spec) -> SpawnError {
    spawn(spec).await.unwrap_err()
}

/// Waits for a predicate; thirty seconds mean that it is broken.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        // why: paces the look at a predicate
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
