//! Steps 6 and 7: the user's index with only the landed entries changed, then the branch.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::compare::user_git;
use super::outcome::{LandOutcome, LandRequest, Stop};
use super::place::Checkout;
use crate::failpoint;
use crate::git::command::Git;
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::oid::Oid;
use crate::git::parse::{ABSENT, Change};

/// Replaces the index by a copy in which exactly the changed paths are as in the new commit.
pub(super) fn replace_index(req: &LandRequest<'_>, checkout: &Checkout, changes: &[Change]) -> Result<(), GitError> {
    let theirs = checkout.git_dir.join("index");
    let copy = req.scratch.join("land-index");
    durable::make_dir(req.scratch)?;
    durable::remove_file(&copy)?;
    durable::remove_file(&copy.with_extension("lock"))?;
    // A repository in which nothing was ever staged has no index yet; git makes the copy then.
    let mode = match fs::read(&theirs) {
        Ok(bytes) => {
            durable::write_new(&copy, &bytes, 0o600)?;
            fs::metadata(&theirs).map_err(GitError::io("read", &theirs))?.permissions().mode() & 0o777
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0o644,
        Err(error) => return Err(GitError::io("read", &theirs)(error)),
    };
    let git = || user_git(req, checkout).index(&copy);
    failpoint::hit("git.land.index.entries.before");
    git().args(["update-index", "-z", "--index-info"]).stdin(entries(changes)).run()?;
    failpoint::hit("git.land.index.refresh.before");
    git().args(["update-index", "-q", "--refresh"]).allow(&[0, 1]).run()?;
    let bytes = fs::read(&copy).map_err(GitError::io("read", &copy))?;
    failpoint::hit("git.land.index.replace.before");
    durable::write_atomic(&theirs, &bytes, mode)?;
    failpoint::hit("git.land.index.replace.after");
    durable::remove_file(&copy)
}

/// `--index-info` lines: what goes first, so that a file may become a folder.
fn entries(changes: &[Change]) -> Vec<u8> {
    let mut list = Vec::new();
    let (gone, there): (Vec<_>, Vec<_>) = changes.iter().partition(|c| c.new_mode == ABSENT);
    for change in gone.into_iter().chain(there) {
        let mode = if change.new_mode == ABSENT { "0" } else { &change.new_mode };
        list.extend_from_slice(format!("{mode} {}\t", change.new).as_bytes());
        list.extend_from_slice(&change.raw);
        list.push(0);
    }
    list
}

/// Moves the branch from the old to the new commit, if it is still at the old one.
pub(super) fn move_branch(req: &LandRequest<'_>, git_dir: &Path) -> Result<(), Stop> {
    let name = format!("refs/heads/{}", req.target_branch);
    let reason = format!("harness: land {}", req.run);
    remove_own_ref_lock(req, git_dir, &name)?;
    failpoint::hit("git.land.ref.before");
    let moved = Git::as_user(git_dir, &req.repo.env)
        .args(["update-ref", "-m", &reason, &name, req.new.as_str(), req.old.as_str()])
        .run();
    failpoint::hit("git.land.ref.after");
    moved.map(drop).or_else(|error| unless_moved(req, error))
}

/// Fast-forwards a branch that is checked out nowhere; git itself refuses when it is in use.
pub(super) fn fast_forward(req: &LandRequest<'_>) -> Result<(), Stop> {
    let refspec = format!("{}:refs/heads/{}", req.new, req.target_branch);
    remove_own_ref_lock(req, &req.repo.common_dir, &format!("refs/heads/{}", req.target_branch))?;
    failpoint::hit("git.land.fetch.before");
    let moved = Git::as_user(&req.repo.common_dir, &req.repo.env)
        .env("GIT_REFLOG_ACTION", format!("harness: land {}", req.run))
        .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune"])
        .args(["--no-prune-tags", "--no-recurse-submodules", "--end-of-options", ".", &refspec])
        .run();
    failpoint::hit("git.land.fetch.after");
    moved.map(drop).or_else(|error| unless_moved(req, error))
}

/// A failed move: landed after all, moved by the user, or a real failure.
fn unless_moved(req: &LandRequest<'_>, error: GitError) -> Result<(), Stop> {
    match req.repo.branch_tip(req.target_branch)? {
        Some(tip) if tip == req.new => Ok(()),
        Some(tip) if tip != req.old => Err(Stop::Answer(LandOutcome::TargetMoved { tip })),
        _ => Err(error.into()),
    }
}

/// A git that was killed while it moved the branch leaves a lock that holds the id of our commit: only ours can.
/// The empty `HEAD.lock` beside it is of the same command, for nobody gets the second with the first taken.
fn remove_own_ref_lock(req: &LandRequest<'_>, git_dir: &Path, name: &str) -> Result<(), GitError> {
    let lock = req.repo.common_dir.join(format!("{name}.lock"));
    let ours = |bytes: Vec<u8>| Oid::parse(String::from_utf8_lossy(&bytes).trim_end()) == Some(req.new.clone());
    if !req.started || !durable::read_suspect(&lock, 4096).is_some_and(ours) {
        return Ok(());
    }
    let head = git_dir.join("HEAD.lock");
    if durable::read_suspect(&head, 4096).is_some_and(|b| b.is_empty()) {
        durable::remove_file(&head)?;
    }
    durable::remove_file(&lock)
}
