//! A home, a state directory, a socket and a git configuration that belong to one test.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::processes;

/// The world of one test. Dropping it kills what the test left running and removes every file.
#[derive(Debug)]
pub struct TestEnv {
    root: TempDir,
    bin: PathBuf,
}

/// A finished program.
#[derive(Debug)]
pub struct Finished {
    /// Exit code; -1 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Finished {
    fn of(output: &Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code().unwrap_or(-1), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// The answer of a `--json` verb.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// This; panics unless it ended with 0.
    pub fn success(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

impl Default for TestEnv {
    fn default() -> Self {
        Self::new()
    }
}

impl TestEnv {
    /// Makes the folders. The path is short, because a socket's path may have about 100 bytes.
    #[must_use]
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("ht").tempdir_in("/tmp").expect("a temporary folder");
        for name in ["home", "state", "runs", "tmp"] {
            fs::create_dir(root.path().join(name)).expect("a folder");
        }
        let config = "[user]\n\tname = Tester\n\temail = tester@example.invalid\n[init]\n\tdefaultBranch = main\n";
        fs::write(root.path().join("home/.gitconfig"), config).expect("a file");
        Self { root, bin: programs() }
    }

    /// The folder of everything; unique, so that a process with it in its environment is ours.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The state directory.
    #[must_use]
    pub fn state_dir(&self) -> PathBuf {
        self.path("state")
    }

    /// The folder with `harnessd` and `harnessctl`, side by side as they are installed.
    #[must_use]
    pub fn bin(&self) -> &Path {
        &self.bin
    }

    /// A program in this environment and nothing of the tester's own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.variables()).stdin(Stdio::null()).current_dir(self.root());
        command
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut path = OsString::from(&self.bin);
        for folder in tools() {
            path.push(":");
            path.push(folder);
        }
        vec![
            ("PATH", path),
            ("HOME", self.path("home").into()),
            ("TMPDIR", self.path("tmp").into()),
            ("LC_ALL", "C".into()),
            ("NO_COLOR", "1".into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", self.path("home/.gitconfig").into()),
            ("GIT_AUTHOR_DATE", "2026-01-02T03:04:05Z".into()),
            ("GIT_COMMITTER_DATE", "2026-01-02T03:04:05Z".into()),
            ("HARNESS_STATE_DIR", self.state_dir().into()),
            ("HARNESS_RUNS_DIR", self.path("runs").into()),
            ("HARNESS_SOCKET", self.path("s").into()),
        ]
    }

    /// Runs `harnessctl` to its end.
    pub fn harnessctl<S: AsRef<OsStr>>(&self, args: &[S]) -> Finished {
        let output = self.command(self.bin.join("harnessctl")).args(args).output().expect("harnessctl starts");
        Finished::of(&output)
    }

    /// Runs git in a folder to its end; it must succeed.
    pub fn git(&self, folder: &Path, args: &[&str]) -> String {
        let output = self.command("git").arg("-C").arg(folder).args(args).output().expect("git starts");
        let done = Finished::of(&output);
        assert_eq!(done.code, 0, "git {args:?} in {}: {done:?}", folder.display());
        done.stdout
    }
}

impl Drop for TestEnv {
    fn drop(&mut self) {
        // Whatever a test left running would write into a folder that is gone, and be blamed on the next test.
        processes::kill_all(self.root.path());
    }
}

/// Folders with programs: those of the machine, not what the tester has at home, which the walls of another home keep closed.
/// A machine whose only python or git is at home has to do with those.
fn tools() -> Vec<PathBuf> {
    let all: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let at_home = |folder: &PathBuf| home.parent().is_some() && folder.starts_with(&home);
    let machine: Vec<PathBuf> = all.iter().filter(|folder| !at_home(folder)).cloned().collect();
    let has = |name: &str| machine.iter().any(|folder| folder.join(name).is_file());
    if has("python3") && has("git") { machine } else { all }
}

/// A folder with both programs under the names they are installed with: the client looks for `harnessd` beside itself.
///
/// Hard links in the target folder, made once for all tests and made anew when a program was built anew.
fn programs() -> PathBuf {
    // Threads of one test would use one name aside.
    static ONCE: std::sync::OnceLock<PathBuf> = std::sync::OnceLock::new();
    ONCE.get_or_init(link_programs).clone()
}

fn link_programs() -> PathBuf {
    let own = std::env::current_exe().expect("a test knows where it is");
    let built = own.ancestors().nth(2).expect("a test stands in target/<profile>/deps");
    let folder = built.join("under-test");
    fs::create_dir_all(&folder).expect("a folder in target");
    for name in ["harnessd", "harnessctl"] {
        let from = built.join(format!("{name}_under_test"));
        let to = folder.join(name);
        let same = |a: &Path, b: &Path| match (fs::metadata(a), fs::metadata(b)) {
            (Ok(a), Ok(b)) => a.ino() == b.ino(),
            _ => false,
        };
        if from.exists() && !same(&from, &to) {
            // Tests of other processes do the same at the same time: make aside, then replace.
            let aside = folder.join(format!("{name}.{}", std::process::id()));
            fs::hard_link(&from, &aside).expect("a link in target");
            fs::rename(&aside, &to).expect("a name in target");
            // A rename onto another link of the same file does nothing and leaves the name.
            if aside.exists() {
                fs::remove_file(&aside).expect("a name in target");
            }
        }
    }
    folder
}
