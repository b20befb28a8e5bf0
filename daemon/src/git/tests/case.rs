//! A repository with an accepted commit that is to be landed.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::git::testkit::{Bench, Picture, picture, write};
use crate::git::{GitError, LandOutcome, LandRequest, Mirror, Oid, PendingReason, RepoFacts, land};

pub(super) struct Case {
    pub(super) bench: Bench,
    pub(super) mirror: Mirror,
    pub(super) old: Oid,
    pub(super) new: Oid,
}

impl Case {
    /// A change that edits, adds, deletes, changes a mode, turns a file into a folder and a folder into a file.
    pub(super) fn broad() -> Self {
        Self::of(Bench::new(), broad_edit)
    }

    pub(super) fn of(bench: Bench, edit: impl FnOnce(&Path)) -> Self {
        let (mirror, old) = (bench.mirror(), bench.tip());
        let new = bench.trial(&mirror, &old, edit);
        mirror.keep("run_1", "integration", &new).unwrap();
        Self { bench, mirror, old, new }
    }

    pub(super) fn small() -> Self {
        Self::of(Bench::new(), |dir| {
            write(dir, "a.txt", b"ONE\ntwo\nthree\n");
            write(dir, "fresh/new.txt", b"new\n");
        })
    }

    pub(super) fn land(&self, started: bool) -> Result<LandOutcome, GitError> {
        self.land_in(&self.bench.facts(), started)
    }

    pub(super) fn land_in(&self, repo: &RepoFacts, started: bool) -> Result<LandOutcome, GitError> {
        land(LandRequest {
            repo,
            mirror: &self.mirror,
            run: "run_1",
            target_branch: "main",
            old: self.old.clone(),
            new: self.new.clone(),
            started,
            scratch: &self.bench.scratch(),
            mark_started: &mut || Ok(()),
        })
    }

    pub(super) fn landed(&self) {
        let outcome = self.land(false).unwrap();
        assert_eq!(outcome, LandOutcome::Landed { kept_edits: Vec::new() });
        assert_eq!(self.main(), self.new.as_str());
        self.no_litter();
    }

    pub(super) fn main(&self) -> String {
        self.bench.git(&["rev-parse", "main"])
    }

    pub(super) fn no_litter(&self) {
        for name in ["index.lock", "index.lock.harness", "harness-landing", "index.harness-new", "harness-saved"] {
            assert!(!self.bench.repo().join(".git").join(name).exists(), "{name} was left");
        }
        assert!(!self.bench.repo().join(".harness-landing").exists());
    }

    pub(super) fn status(&self) -> String {
        self.bench.git(&["status", "--porcelain", "--ignored"])
    }

    /// The checkout and the parts of `.git` that a refused landing must leave alone.
    pub(super) fn everything(&self) -> Picture {
        picture(&self.bench.repo(), &|p| p == ".git/objects" || p.starts_with(".git/objects/"))
    }

    /// Landing waits with `why` and `paths`, nothing at all is different afterwards; then `solve` and it lands.
    pub(super) fn waits(&self, why: PendingReason, paths: &[&str], solve: impl FnOnce(&Bench)) {
        let before = self.everything();
        let LandOutcome::Pending { why: found, paths: found_paths, command } = self.land(false).unwrap() else {
            panic!("it landed over {paths:?}");
        };
        assert_eq!((found, found_paths), (why, paths.iter().map(|p| (*p).to_owned()).collect()));
        assert!(!command.is_empty());
        assert_eq!(self.everything(), before, "a pending landing changes nothing");
        solve(&self.bench);
        self.landed();
    }
}

pub(super) fn broad_edit(dir: &Path) {
    broad_edit_without_submodule(dir);
    // A submodule nobody has checked out.
    fs::create_dir(dir.join("newsub")).unwrap();
    let entry = format!("160000,{},newsub", "1".repeat(40));
    let mut git = std::process::Command::new("git");
    git.args(["update-index", "--add", "--cacheinfo", &entry]);
    assert!(git.current_dir(dir).status().unwrap().success());
}

/// [`broad_edit`] for any object format.
pub(super) fn broad_edit_without_submodule(dir: &Path) {
    write(dir, "a.txt", b"ONE\ntwo\nthree\n");
    write(dir, "fresh/deep/new.txt", b"new\n");
    fs::set_permissions(dir.join("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_file(dir.join("link")).unwrap();
    write(dir, "link/inner", b"inner\n");
    fs::remove_dir_all(dir.join("dir")).unwrap();
    write(dir, "dir", b"a file now\n");
    symlink("fresh", dir.join("newlink")).unwrap();
}

/// The files of a commit as git itself checks them out.
pub(super) fn expected(bench: &Bench, commit: &Oid) -> Picture {
    let dir = bench.path("expected");
    fs::remove_dir_all(&dir).ok();
    let (ok, text) =
        bench.git_in(&bench.repo(), &["worktree", "add", "-q", "--detach", dir.to_str().unwrap(), commit.as_str()]);
    assert!(ok, "{text}");
    let found = picture(&dir, &|p| p == ".git");
    bench.git(&["worktree", "remove", "--force", dir.to_str().unwrap()]);
    found
}

pub(super) fn files(bench: &Bench) -> Picture {
    picture(&bench.repo(), &|p| p == ".git" || p.starts_with(".git/"))
}
