//! Repositories of every kind that a user may have (DESIGN 6).

use std::fs;
use std::path::{Path, PathBuf};

use crate::env::TestEnv;

/// A kind of repository. Invariant: each is made by git itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepoKind {
    /// One commit on `main`, checked out.
    Plain,
    /// No commit yet.
    Unborn,
    /// No checkout.
    Bare,
    /// HEAD is a commit.
    Detached,
    /// A linked worktree of another repository, on branch `side`.
    LinkedWorktree,
    /// A clone with one commit of two.
    Shallow,
    /// Object ids of 64 digits.
    Sha256,
    /// With a submodule `sub`.
    Submodule,
    /// HEAD tracks a file `tasks.json` of the project's own.
    TrackedTasks,
    /// A folder without git.
    NoGit,
}

impl RepoKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Plain,
        Self::Unborn,
        Self::Bare,
        Self::Detached,
        Self::LinkedWorktree,
        Self::Shallow,
        Self::Sha256,
        Self::Submodule,
        Self::TrackedTasks,
        Self::NoGit,
    ];
}

impl TestEnv {
    /// Makes a repository named `name` and returns its folder.
    pub fn repo(&self, name: &str, kind: RepoKind) -> PathBuf {
        let folder = self.path(name);
        fs::create_dir(&folder).expect("a folder");
        match kind {
            RepoKind::Plain => self.begin(&folder, &[]),
            RepoKind::NoGit => fs::write(folder.join("README.md"), "# No git\n").expect("a file"),
            RepoKind::Unborn => drop(self.git(&folder, &["init", "--quiet"])),
            RepoKind::Bare => drop(self.git(&folder, &["init", "--quiet", "--bare"])),
            RepoKind::Sha256 => self.begin(&folder, &["--object-format=sha256"]),
            RepoKind::Detached => {
                self.begin(&folder, &[]);
                self.git(&folder, &["checkout", "--quiet", "--detach"]);
            }
            RepoKind::TrackedTasks => {
                self.begin(&folder, &[]);
                self.commit(&folder, "tasks.json", "{\"theirs\": true}\n");
            }
            RepoKind::LinkedWorktree => {
                let main = self.repo(&format!("{name}-main"), RepoKind::Plain);
                let place = folder.to_str().expect("a test's path is text");
                self.git(&main, &["worktree", "add", "--quiet", "-b", "side", place]);
            }
            RepoKind::Shallow => {
                let from = self.repo(&format!("{name}-from"), RepoKind::Plain);
                self.commit(&from, "second.txt", "second\n");
                let url = format!("file://{}", from.display());
                self.git(self.root(), &["clone", "--quiet", "--depth", "1", &url, name]);
            }
            RepoKind::Submodule => {
                let sub = self.repo(&format!("{name}-sub"), RepoKind::Plain);
                self.begin(&folder, &[]);
                let place = sub.to_str().expect("a test's path is text");
                self.git(&folder, &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", place, "sub"]);
                self.git(&folder, &["commit", "--quiet", "-m", "Add a submodule"]);
            }
        }
        folder
    }

    fn begin(&self, folder: &Path, args: &[&str]) {
        self.git(folder, &[&["init", "--quiet"], args].concat());
        self.commit(folder, "README.md", "# A project\n");
    }

    /// Writes a file, commits it, and returns the commit.
    pub fn commit(&self, folder: &Path, file: &str, text: &str) -> String {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
        self.git(folder, &["add", "--", file]);
        self.git(folder, &["commit", "--quiet", "-m", &format!("Write {file}")]);
        self.git(folder, &["rev-parse", "HEAD"]).trim().to_owned()
    }
}
