//! Where a run is killed: a repository as users have it, an agent, and what is asked of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_tests::{Snapshot, TestEnv};

/// What stands in a checkout beside what is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checkout {
    Clean,
    /// A changed, an untracked and an ignored file, none of which the run touches.
    Dirty,
    /// The target branch is not checked out.
    Elsewhere,
    /// A folder with one file and no repository.
    NoGit,
}

/// A kind of run. Invariant: run without a kill it completes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) checkout: Checkout,
    /// Tasks that the scripted planner makes; 0 for the built-in agent, which makes its own.
    pub(crate) tasks: u32,
    /// Rules of the scripted agent (`tests/peers`).
    pub(crate) faults: &'static str,
    /// Seconds that each turn takes.
    pub(crate) delay: &'static str,
    /// Flags of `create-launch` besides.
    pub(crate) flags: &'static [&'static str],
    /// A second run in the same repository after the first.
    pub(crate) again: bool,
    /// The daemon that is to abort follows one that was killed in the middle, in a mirror with a lock of a dead git.
    pub(crate) reborn: bool,
}

/// A replaced file, a removed file that empties its folders, a new file in a new folder.
const CHANGES: &str = "write=shared.txt@implementer;delete=gone/deep/old.txt@implementer";

pub(crate) const SMALL: Scene = Scene {
    name: "small",
    checkout: Checkout::Dirty,
    tasks: 1,
    faults: CHANGES,
    delay: "0",
    flags: &[],
    again: false,
    reborn: false,
};
/// Two tasks in a row, one revert, and work that the agent left uncommitted.
pub(crate) const FULL: Scene = Scene {
    name: "full",
    tasks: 2,
    faults: "write=shared.txt@implementer;delete=gone/deep/old.txt@implementer;revert@verifier:T-001:a1;dirty@implementer",
    ..SMALL
};
pub(crate) const CLEAN: Scene = Scene { name: "clean", checkout: Checkout::Clean, ..SMALL };
pub(crate) const ELSEWHERE: Scene =
    Scene { name: "elsewhere", checkout: Checkout::Elsewhere, flags: &["--branch", "target"], ..SMALL };
/// The user commits to the target while the implementer works.
pub(crate) const MOVED: Scene =
    Scene { name: "moved", checkout: Checkout::Clean, faults: "advance_main=theirs.txt@implementer:x1", ..SMALL };
pub(crate) const OFFLINE: Scene = Scene { name: "offline", tasks: 0, faults: "", ..SMALL };
pub(crate) const NO_GIT: Scene =
    Scene { name: "no_git", checkout: Checkout::NoGit, faults: "", flags: &["--init-git"], ..SMALL };
pub(crate) const AGAIN: Scene = Scene {
    name: "again",
    faults: "",
    again: true,
    flags: &["--verify", "echo built >> shared.txt", "--verify", "true"],
    ..SMALL
};
pub(crate) const REBORN: Scene = Scene { name: "reborn", delay: "0.3", reborn: true, ..SMALL };

/// A scene with its repository and its agent in place.
pub(crate) struct Stage {
    pub(crate) env: Arc<TestEnv>,
    pub(crate) repo: PathBuf,
    pub(crate) scene: Scene,
    pub(crate) before: Option<Snapshot>,
}

impl Scene {
    pub(crate) fn set(self) -> Stage {
        self.set_beside(&Arc::new(TestEnv::new()), "repo")
    }

    /// The same in an environment that several runs share.
    pub(crate) fn set_beside(self, env: &Arc<TestEnv>, name: &str) -> Stage {
        let env = env.clone();
        let repo = env.path(name);
        fs::create_dir(&repo).unwrap();
        agent(&env, &repo, self);
        if self.checkout == Checkout::NoGit {
            fs::write(repo.join("mine.txt"), "mine\n").unwrap();
            return Stage { env, repo, scene: self, before: None };
        }
        committed(&env, &repo);
        match self.checkout {
            Checkout::Elsewhere => drop(env.git(&repo, &["branch", "target"])),
            Checkout::Dirty => {
                fs::write(repo.join("mine.txt"), "changed and not committed\n").unwrap();
                fs::write(repo.join("untracked.txt"), "untracked\n").unwrap();
                fs::create_dir(repo.join("work")).unwrap();
                fs::write(repo.join("work/secret.local"), "ignored\n").unwrap();
            }
            Checkout::Clean | Checkout::NoGit => {}
        }
        let before = Some(Snapshot::of(&env, &repo));
        Stage { env, repo, scene: self, before }
    }

    /// Branch that the run lands on.
    pub(crate) fn target(self) -> &'static str {
        if self.checkout == Checkout::Elsewhere { "target" } else { "main" }
    }
}

fn committed(env: &TestEnv, repo: &Path) {
    env.git(repo, &["init", "--quiet"]);
    fs::create_dir_all(repo.join("gone/deep")).unwrap();
    for (name, text) in [
        (".gitignore", "*.local\n"),
        ("mine.txt", "mine\n"),
        ("shared.txt", "shared\n"),
        ("gone/deep/old.txt", "old\n"),
    ] {
        fs::write(repo.join(name), text).unwrap();
    }
    env.git(repo, &["add", "."]);
    env.git(repo, &["commit", "--quiet", "-m", "Begin"]);
}

/// The scripted agent as a program of its own, because settings do not pass through the daemon's environment.
fn agent(env: &TestEnv, repo: &Path, scene: Scene) {
    let peer = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/fake_codex_app_server.py");
    let place = env.root().display();
    let script = format!(
        "#!/bin/sh\nexport FAKE_CODEX_LEDGER='{place}/ledger' FAKE_CODEX_STATE_DIR='{place}/fake' FAKE_CODEX_TASKS={} \
         FAKE_CODEX_SHAPE=chain FAKE_CODEX_MAIN_TREE='{}' FAKE_CODEX_DELAY={} FAKE_CODEX_FAULTS='{}'\nexec python3 '{peer}' \"$@\"\n",
        scene.tasks,
        repo.display(),
        scene.delay,
        scene.faults,
    );
    let path = program(env, repo);
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where the scripted agent of a repository stands.
pub(crate) fn program(env: &TestEnv, repo: &Path) -> PathBuf {
    env.path(&format!("codex-{}", repo.file_name().unwrap().to_string_lossy()))
}
