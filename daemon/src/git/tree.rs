//! Throw-away worktrees of the mirror, built by hand so that nothing in them has to be believed afterwards.
//!
//! `git worktree add` would race with other commands that list worktrees (`failed to read commondir: Success`) and
//! choose the private folder's name itself. Here that name follows from the path, and the folder appears in one
//! rename.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::command::Git;
use super::durable;
use super::error::GitError;
use super::mirror::Mirror;
use super::oid::Oid;
use crate::failpoint;

/// A worktree as the runtime recorded it; never read back from files inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The files.
    pub path: PathBuf,
    /// The private git folder: HEAD and index of this tree. An agent may write it.
    pub git_dir: PathBuf,
}

impl Mirror {
    /// The tree at `dest` as it would be recorded, whether it exists or not.
    pub fn tree_at(&self, dest: &Path) -> Tree {
        let digest = Sha256::digest(dest.as_os_str().as_bytes());
        let name: String = digest.iter().take(8).map(|b| format!("{b:02x}")).collect();
        Tree { path: dest.to_path_buf(), git_dir: self.path.join("worktrees").join(format!("t-{name}")) }
    }

    /// Checks `commit` out at `dest` with a detached HEAD. What was at `dest` before is removed first.
    ///
    /// Errors: [`GitError::MissingCommit`]. Repeatable; not for two callers at once on the same `dest`.
    pub fn add_tree(&self, dest: &Path, commit: &Oid) -> Result<Tree, GitError> {
        self.remove_forged()?;
        if !self.commit_exists(commit)? {
            return Err(GitError::MissingCommit { commit: commit.clone() });
        }
        self.remove_tree(dest)?;
        let tree = self.tree_at(dest);
        failpoint::hit("git.tree.add.before");
        durable::write_atomic(&self.record_of(&tree), dest.as_os_str().as_bytes(), 0o600)?;
        durable::make_dir(dest)?;
        let pointer = [b"gitdir: ", tree.git_dir.as_os_str().as_bytes(), b"\n"].concat();
        durable::write_new(&dest.join(".git"), &pointer, 0o600)?;
        self.make_private_dir(&tree, commit)?;
        failpoint::hit("git.tree.checkout.before");
        self.check_out(&tree, commit)?;
        failpoint::hit("git.tree.checkout.after");
        Ok(tree)
    }

    /// Puts the tracked files, the index and HEAD of a tree back to `commit`; files that git does not track stay, also caches.
    ///
    /// A file that is as it was keeps its times, so that builds do not start over.
    /// Errors: [`GitError`] when git fails, for example because a folder was made unwritable. Repeatable.
    pub fn reset_tree(&self, tree: &Tree, commit: &Oid) -> Result<(), GitError> {
        failpoint::hit("git.tree.reset.before");
        durable::write_atomic(&tree.git_dir.join("HEAD"), format!("{commit}\n").as_bytes(), 0o600)?;
        self.check_out(tree, commit)?;
        failpoint::hit("git.tree.reset.after");
        Ok(())
    }

    fn check_out(&self, tree: &Tree, commit: &Oid) -> Result<(), GitError> {
        Git::isolated(&self.path, &self.env)
            .work_tree(&tree.path)
            .index(&tree.git_dir.join("index"))
            .args(["read-tree", "-u", "--reset", commit.as_str()])
            .run()?;
        Ok(())
    }

    fn make_private_dir(&self, tree: &Tree, commit: &Oid) -> Result<(), GitError> {
        let name = tree.git_dir.file_name().unwrap_or_default();
        let aside = self.path.join("harness-trees").join(Path::new(name).with_extension("new"));
        durable::remove_dir(&aside)?;
        durable::make_dir(&aside)?;
        durable::write_new(&aside.join("commondir"), b"../..\n", 0o600)?;
        let back = [tree.path.as_os_str().as_bytes(), b"/.git\n"].concat();
        durable::write_new(&aside.join("gitdir"), &back, 0o600)?;
        durable::write_new(&aside.join("HEAD"), format!("{commit}\n").as_bytes(), 0o600)?;
        durable::make_dir(&self.path.join("worktrees"))?;
        failpoint::hit("git.tree.private.before");
        fs::rename(&aside, &tree.git_dir).map_err(GitError::io("create", &tree.git_dir))?;
        failpoint::hit("git.tree.private.after");
        Ok(())
    }

    fn record_of(&self, tree: &Tree) -> PathBuf {
        self.path.join("harness-trees").join(tree.git_dir.file_name().unwrap_or_default())
    }

    /// Removes the tree at `dest`; commits in it stay in the mirror's objects. Repeatable.
    pub fn remove_tree(&self, dest: &Path) -> Result<(), GitError> {
        let tree = self.tree_at(dest);
        failpoint::hit("git.tree.remove.before");
        durable::remove_dir(dest)?;
        failpoint::hit("git.tree.remove.private.before");
        durable::remove_dir(&tree.git_dir)?;
        failpoint::hit("git.tree.remove.record.before");
        durable::remove_file(&self.record_of(&tree))?;
        failpoint::hit("git.tree.remove.after");
        Ok(())
    }

    /// The places of all trees that were added and not removed, for the reaper at start.
    pub fn trees(&self) -> Result<Vec<PathBuf>, GitError> {
        use std::os::unix::ffi::OsStringExt as _;
        let dir = self.path.join("harness-trees");
        let mut found = Vec::new();
        for entry in fs::read_dir(&dir).map_err(GitError::io("list", &dir))? {
            let path = entry.map_err(GitError::io("list", &dir))?.path();
            if path.extension().is_none() && path.is_file() {
                let bytes = fs::read(&path).map_err(GitError::io("read", &path))?;
                found.push(PathBuf::from(std::ffi::OsString::from_vec(bytes)));
            }
        }
        found.sort();
        Ok(found)
    }
}
