//! Real repositories for the tests of this module: hermetic, in a short temporary folder.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "git as the user calls it")]

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use super::{CandidateRequest, Identity, Mirror, Oid, RepoFacts, UserEnv, discover_with};

/// A user's repository with one commit, a home, and places for the mirror and trees.
pub(super) struct Bench {
    root: PathBuf,
    _guard: Option<TempDir>,
}

/// A file, folder or symlink with mode and content: what "byte for byte" compares.
pub(super) type Picture = BTreeMap<String, (u32, Vec<u8>)>;

impl Bench {
    /// An empty root with a home whose `.gitconfig` names a user.
    pub(super) fn bare_home() -> Self {
        let guard = TempDir::new().unwrap();
        let root = fs::canonicalize(guard.path()).unwrap();
        fs::create_dir(root.join("home")).unwrap();
        fs::create_dir(root.join("tmp")).unwrap();
        let config = "[user]\n\tname = Ann User\n\temail = ann@example.org\n[init]\n\tdefaultBranch = main\n\
                      [protocol \"file\"]\n\tallow = always\n";
        fs::write(root.join("home/.gitconfig"), config).unwrap();
        Self { root, _guard: Some(guard) }
    }

    /// A repository `repo` with `a.txt`, `dir/b.txt`, `run.sh` (executable), `link`, `.gitignore`.
    pub(super) fn new() -> Self {
        Self::with(&[])
    }

    /// [`Self::new`] with more arguments for `git init`.
    pub(super) fn with(init: &[&str]) -> Self {
        let bench = Self::bare_home();
        fs::create_dir(bench.repo()).unwrap();
        let args: Vec<&str> = ["init", "-q"].iter().chain(init).copied().collect();
        bench.git(&args);
        bench.write("a.txt", "one\ntwo\nthree\n");
        bench.write("dir/b.txt", "b\n");
        bench.write("run.sh", "#!/bin/sh\n");
        fs::set_permissions(bench.repo().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("a.txt", bench.repo().join("link")).unwrap();
        bench.write(".gitignore", "*.ignored\n");
        bench.commit("start");
        bench
    }

    /// The bench of another process, which removes it.
    pub(super) fn existing(root: &Path) -> Self {
        Self { root: root.to_path_buf(), _guard: None }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub(super) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    pub(super) fn env(&self) -> UserEnv {
        UserEnv::from_process()
            .with("HOME", self.path("home"))
            .with("TMPDIR", self.path("tmp"))
            .with("XDG_CONFIG_HOME", self.path("home/.config"))
            .with("GIT_CONFIG_NOSYSTEM", "1")
            .with("GIT_CONFIG_GLOBAL", self.path("home/.gitconfig"))
    }

    pub(super) fn git_in(&self, dir: &Path, args: &[&str]) -> (bool, String) {
        let out = Command::new("git")
            .args(args)
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", self.path("home/.gitconfig"))
            .env("GIT_AUTHOR_DATE", "@1700000000 +0000")
            .env("GIT_COMMITTER_DATE", "@1700000000 +0000")
            .output()
            .unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        (out.status.success(), text.trim_end().to_owned())
    }

    /// Runs git in the user's repository; it must succeed.
    pub(super) fn git(&self, args: &[&str]) -> String {
        let (ok, text) = self.git_in(&self.repo(), args);
        assert!(ok, "git {args:?}: {text}");
        text
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        write(&self.repo(), name, text.as_bytes());
    }

    /// Commits everything in the user's repository.
    pub(super) fn commit(&self, message: &str) -> Oid {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.tip()
    }

    pub(super) fn tip(&self) -> Oid {
        Oid::parse(&self.git(&["rev-parse", "HEAD"])).unwrap()
    }

    pub(super) fn facts(&self) -> RepoFacts {
        discover_with(&self.repo(), &self.env()).unwrap()
    }

    pub(super) fn mirror(&self) -> Mirror {
        Mirror::ensure(&self.path("mirror.git"), &self.facts()).unwrap()
    }

    pub(super) fn scratch(&self) -> PathBuf {
        self.path("scratch")
    }

    /// Makes a commit in a tree of the mirror at `from` by running `edit` in it, as an agent would.
    pub(super) fn trial(&self, mirror: &Mirror, from: &Oid, edit: impl FnOnce(&Path)) -> Oid {
        let dest = self.path("trial");
        mirror.add_tree(&dest, from).unwrap();
        edit(&dest);
        let (ok, text) = self.git_in(&dest, &["add", "-A", "-f"]);
        assert!(ok, "{text}");
        let (ok, text) = self.git_in(&dest, &["commit", "-q", "--allow-empty", "-m", "trial"]);
        assert!(ok, "{text}");
        let (_, id) = self.git_in(&dest, &["rev-parse", "HEAD"]);
        mirror.remove_tree(&dest).unwrap();
        Oid::parse(&id).unwrap()
    }

    pub(super) fn who(&self) -> Identity {
        Identity { name: "Ann User".to_owned(), email: "ann@example.org".to_owned() }
    }

    pub(super) fn request(&self, head: &Oid, base: &Oid, trial: &Oid) -> CandidateRequest {
        CandidateRequest {
            head: head.clone(),
            base: base.clone(),
            trial: trial.clone(),
            committer: self.who(),
            message: "T-1: title\n\nbody\n\nHarness-Run: run_1\n".to_owned(),
            at_unix: 1_700_000_100,
        }
    }
}

pub(super) fn write(dir: &Path, name: &str, bytes: &[u8]) {
    let path = dir.join(OsStr::from_bytes(name.as_bytes()));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// Everything below `dir`, except paths for which `skip` says so (relative, without leading slash).
pub(super) fn picture(dir: &Path, skip: &dyn Fn(&str) -> bool) -> Picture {
    let mut found = Picture::new();
    collect(dir, "", skip, &mut found);
    found
}

fn collect(dir: &Path, prefix: &str, skip: &dyn Fn(&str) -> bool, found: &mut Picture) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if skip(&name) {
            continue;
        }
        let meta = entry.path().symlink_metadata().unwrap();
        let bytes = if meta.is_symlink() {
            fs::read_link(entry.path()).unwrap().as_os_str().as_bytes().to_vec()
        } else if meta.is_dir() {
            collect(&entry.path(), &format!("{name}/"), skip, found);
            Vec::new()
        } else {
            fs::read(entry.path()).unwrap()
        };
        found.insert(name, (meta.mode(), bytes));
    }
}
