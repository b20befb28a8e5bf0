//! Where a branch is in use: which checkout has it, and which operation works on it.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::outcome::{PendingReason, Stop};
use crate::git::command::Git;
use crate::git::discover::RepoFacts;
use crate::git::error::GitError;
use crate::git::parse;

/// One checkout of the user's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Checkout {
    /// Root of its files.
    pub(super) top: PathBuf,
    /// Its own git folder.
    pub(super) git_dir: PathBuf,
}

/// Files and folders that say what is in progress in a checkout.
const OPERATIONS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("sequencer", "cherry-pick"),
];

/// The one checkout that has the branch, `None` if there is none.
///
/// Stops pending when it is checked out twice, in a folder that is gone, or busy elsewhere.
pub(super) fn find(repo: &RepoFacts, branch: &str) -> Result<Option<Checkout>, Stop> {
    let full = format!("refs/heads/{branch}");
    let mut having = Vec::new();
    for checkout in all(repo)? {
        let head =
            Git::isolated(&checkout.git_dir, &repo.env).args(["symbolic-ref", "-q", "HEAD"]).allow(&[0, 1]).run()?;
        if head.line() == full {
            having.push(checkout);
        } else if let Some(what) = works_on(&checkout.git_dir, branch) {
            let command = format!("git -C {} {what} --abort", shell(&checkout.top));
            return Err(Stop::pending(PendingReason::BranchBusy, vec![lossy(&checkout.top)], command));
        }
    }
    if having.len() > 1 {
        let paths = having.iter().map(|c| lossy(&c.top)).collect();
        let command = format!("git -C {} switch --detach", shell(&having[1].top));
        return Err(Stop::pending(PendingReason::CheckedOutTwice, paths, command));
    }
    let Some(checkout) = having.pop() else {
        return Ok(None);
    };
    if !checkout.top.is_dir() {
        let command = format!("git -C {} worktree prune", shell(&repo.top_level));
        return Err(Stop::pending(PendingReason::CheckoutMissing, vec![lossy(&checkout.top)], command));
    }
    Ok(Some(checkout))
}

/// Stops pending while the user is in the middle of an operation.
pub(super) fn refuse_operation(checkout: &Checkout) -> Result<(), Stop> {
    for (marker, what) in OPERATIONS {
        if fs::symlink_metadata(checkout.git_dir.join(marker)).is_ok() {
            let end = if *what == "bisect" { "reset" } else { "--continue" };
            let command = format!("git -C {} {what} {end}", shell(&checkout.top));
            return Err(Stop::pending(PendingReason::OperationInProgress, vec![(*what).to_owned()], command));
        }
    }
    Ok(())
}

/// Every checkout: the main one first.
fn all(repo: &RepoFacts) -> Result<Vec<Checkout>, GitError> {
    let mut found = Vec::new();
    if repo.git_dir == repo.common_dir {
        found.push(Checkout { top: repo.top_level.clone(), git_dir: repo.git_dir.clone() });
    } else {
        let list = Git::isolated(&repo.common_dir, &repo.env).args(["worktree", "list", "--porcelain", "-z"]).run()?;
        if let Some(main) = parse::worktrees(&list.stdout).into_iter().next().filter(|w| !w.bare) {
            found.push(Checkout { top: path(main.path), git_dir: repo.common_dir.clone() });
        }
    }
    let dir = repo.common_dir.join("worktrees");
    let Ok(entries) = fs::read_dir(&dir) else {
        return Ok(found);
    };
    for entry in entries {
        let git_dir = entry.map_err(GitError::io("list", &dir))?.path();
        let Ok(mut back) = fs::read(git_dir.join("gitdir")) else {
            continue;
        };
        while back.ends_with(b"\n") {
            back.pop();
        }
        // A relative path (git 2.48) is relative to the private folder.
        let dot_git = git_dir.join(path(back));
        let top = dot_git.parent().unwrap_or(&dot_git).to_path_buf();
        let top = fs::canonicalize(&top).unwrap_or(top);
        found.push(Checkout { top, git_dir });
    }
    Ok(found)
}

/// The operation in a checkout that will move `branch` when it ends.
fn works_on(git_dir: &Path, branch: &str) -> Option<&'static str> {
    let full = format!("refs/heads/{branch}");
    let names = |file: &str| fs::read_to_string(git_dir.join(file)).unwrap_or_default();
    let rebase = ["rebase-merge/head-name", "rebase-apply/head-name", "rebase-merge/update-refs"];
    if rebase.iter().any(|f| names(f).lines().any(|l| l == full)) {
        return Some("rebase");
    }
    (names("BISECT_START").trim_end() == branch).then_some("bisect")
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

pub(super) fn lossy(path: &Path) -> String {
    path.display().to_string()
}

/// A path as one word of a shell command.
pub(super) fn shell(path: &Path) -> String {
    let text = lossy(path);
    shlex::try_quote(&text).map_or_else(|_| text.clone(), std::borrow::Cow::into_owned)
}
