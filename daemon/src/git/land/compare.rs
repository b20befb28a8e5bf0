//! Step 3: is every path the landing changes as the old commit has it, and is every new path free?
//!
//! Content is compared by git itself (its filters, line ends and mode rules) on two private indexes that hold only the
//! changed paths. The stamp of a file is taken before that, so that a later edit is seen by the stamp.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::outcome::{LandRequest, PendingReason, Stop};
use super::place::{Checkout, shell};
use crate::git::command::Git;
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::files::{Node, at, look};
use crate::git::oid::Oid;
use crate::git::parse::{self, ABSENT, Change, GITLINK, IndexEntry};

/// One path that is still to be changed.
#[derive(Debug, Clone)]
pub(super) struct Todo {
    pub(super) change: Change,
    pub(super) node: Node,
}

struct Comparison<'a> {
    top: &'a Path,
    nodes: BTreeMap<&'a [u8], Node>,
    index: BTreeMap<Vec<u8>, IndexEntry>,
    old: BTreeSet<Vec<u8>>,
    new: BTreeSet<Vec<u8>>,
    removed: BTreeSet<&'a [u8]>,
    added: BTreeSet<&'a [u8]>,
}

/// The paths still to be changed, or the reason to wait.
pub(super) fn compare(req: &LandRequest<'_>, checkout: &Checkout, changes: &[Change]) -> Result<Vec<Todo>, Stop> {
    refuse_collisions(req, changes)?;
    let top = checkout.top.as_path();
    let nodes = changes.iter().map(|c| (c.raw.as_slice(), look(top, &c.raw))).collect();
    let listed =
        user_git(req, checkout).index(&checkout.git_dir.join("index")).args(["ls-files", "-v", "-s", "-z"]).run()?;
    let entries = parse::index_entries(&listed.stdout)
        .ok_or(GitError::Unreadable { command: "ls-files".to_owned(), detail: "an index entry".to_owned() })?;
    let side = |mode: fn(&Change) -> &str| changes.iter().filter(move |c| mode(c) != ABSENT);
    let comparison = Comparison {
        top,
        nodes,
        index: entries.into_iter().map(|e| (e.path.clone(), e)).collect(),
        old: matching(req, checkout, &req.old, side(|c| &c.old_mode).map(|c| (c, &c.old_mode, &c.old)))?,
        new: matching(req, checkout, &req.new, side(|c| &c.new_mode).map(|c| (c, &c.new_mode, &c.new)))?,
        removed: changes.iter().filter(|c| c.new_mode == ABSENT).map(|c| c.raw.as_slice()).collect(),
        added: changes.iter().filter(|c| c.new_mode != ABSENT).map(|c| c.raw.as_slice()).collect(),
    };
    let mut todo = Vec::new();
    let mut blocked: Vec<(PendingReason, String)> = Vec::new();
    for change in changes {
        match comparison.judge(change) {
            Ok(true) => {
                let node = comparison.nodes[change.raw.as_slice()].clone();
                todo.push(Todo { change: change.clone(), node });
            }
            Ok(false) => {}
            Err(why) => blocked.push((why, change.path.clone())),
        }
    }
    let Some((first, _)) = blocked.first() else {
        return Ok(todo);
    };
    let why = if req.started && *first != PendingReason::SubmoduleReplaced {
        PendingReason::EditedDuringLanding
    } else {
        *first
    };
    let paths: Vec<String> = blocked.into_iter().map(|(_, p)| p).collect();
    let command = advice(why, checkout, &paths);
    Err(Stop::pending(why, paths, command))
}

/// A command of the user's git in the checkout.
pub(super) fn user_git(req: &LandRequest<'_>, checkout: &Checkout) -> Git {
    Git::as_user(&checkout.git_dir, &req.repo.env).work_tree(&checkout.top)
}

/// Feeds entries to a private index that is made anew.
pub(super) fn fill_index<'a>(
    req: &LandRequest<'_>,
    checkout: &Checkout,
    index: &Path,
    entries: impl Iterator<Item = (&'a Change, &'a String, &'a Oid)>,
) -> Result<(), GitError> {
    durable::make_dir(req.scratch)?;
    durable::remove_file(index)?;
    durable::remove_file(&index.with_extension("lock"))?;
    let mut list = Vec::new();
    for (change, mode, oid) in entries {
        list.extend_from_slice(format!("{mode} {oid}\t").as_bytes());
        list.extend_from_slice(&change.raw);
        list.push(0);
    }
    user_git(req, checkout).index(index).args(["update-index", "-z", "--index-info"]).stdin(list).run()?;
    Ok(())
}

/// Which of these entries the files on disk equal, in git's own judgement.
fn matching<'a>(
    req: &LandRequest<'_>,
    checkout: &Checkout,
    attributes: &Oid,
    entries: impl Iterator<Item = (&'a Change, &'a String, &'a Oid)>,
) -> Result<BTreeSet<Vec<u8>>, GitError> {
    let entries: Vec<_> = entries.filter(|(_, mode, _)| *mode != GITLINK).collect();
    if entries.is_empty() {
        return Ok(BTreeSet::new());
    }
    let index = req.scratch.join("land-compare");
    fill_index(req, checkout, &index, entries.iter().copied())?;
    let git = || user_git(req, checkout).index(&index).global(format!("--attr-source={attributes}"));
    git().args(["update-index", "-q", "--refresh"]).allow(&[0, 1]).run()?;
    let differing = git().args(["diff-files", "-z", "--name-only"]).run()?;
    durable::remove_file(&index)?;
    let differing: BTreeSet<Vec<u8>> = parse::names(&differing.stdout).into_iter().collect();
    Ok(entries.iter().map(|(c, _, _)| c.raw.clone()).filter(|p| !differing.contains(p)).collect())
}

impl Comparison<'_> {
    /// `true`: to be changed, `false`: is as the new commit has it; else what stands in the way.
    fn judge(&self, change: &Change) -> Result<bool, PendingReason> {
        self.judge_index(change)?;
        if change.old_mode == GITLINK || change.new_mode == GITLINK {
            return self.judge_submodule(change);
        }
        let (path, gone, new) = (change.raw.as_slice(), change.new_mode == ABSENT, change.old_mode == ABSENT);
        let edited = if new { PendingReason::InTheWay } else { PendingReason::LocalChanges };
        match &self.nodes[path] {
            Node::File(_) if self.new.contains(path) => Ok(false),
            Node::File(_) if self.old.contains(path) => Ok(true),
            Node::File(_) => Err(edited),
            Node::Absent if gone => Ok(false),
            Node::Absent if new => Ok(true),
            Node::Absent => Err(PendingReason::LocalChanges),
            // `a` became `a/b`, and `a/b` is there already.
            Node::Dir if gone && self.added_below(path) => Ok(false),
            Node::Dir if gone => Err(edited),
            Node::Dir if self.holds_only_removed(path) => Ok(true),
            Node::Dir => Err(PendingReason::InTheWay),
            // `a/b` became `a`, and `a` is there already.
            Node::Blocked(by) if gone && self.added.contains(by.as_slice()) => Ok(false),
            Node::Blocked(by) if !gone && self.removed.contains(by.as_slice()) => Ok(true),
            Node::Blocked(_) => Err(edited),
        }
    }

    fn judge_index(&self, change: &Change) -> Result<(), PendingReason> {
        let path = change.raw.as_slice();
        let Some(entry) = self.index.get(path) else {
            let expected = change.old_mode == ABSENT || change.new_mode == ABSENT;
            return if expected && self.no_staged_neighbour(change) { Ok(()) } else { Err(PendingReason::Staged) };
        };
        let is = |mode: &str, oid: &Oid| entry.mode == mode && entry.oid == *oid;
        let known = is(&change.old_mode, &change.old) || is(&change.new_mode, &change.new);
        match entry.tag {
            b'H' if entry.stage == 0 && known => Ok(()),
            b'h' | b'S' | b's' => Err(PendingReason::Flagged),
            _ => Err(PendingReason::Staged),
        }
    }

    /// No staged entry is a folder of the new path or lies below it, except those that go.
    fn no_staged_neighbour(&self, change: &Change) -> bool {
        if change.new_mode == ABSENT {
            return true;
        }
        let path = change.raw.as_slice();
        let stays = |p: &[u8]| self.index.contains_key(p) && !self.removed.contains(p);
        let above = path.iter().enumerate().filter(|(_, b)| **b == b'/').any(|(i, _)| stays(&path[..i]));
        let below = [path, b"/"].concat();
        let below = self.index.range(below.clone()..).take_while(|(p, _)| p.starts_with(&below));
        !above && below.map(|(p, _)| p.as_slice()).all(|p| self.removed.contains(p))
    }

    /// A submodule's folder belongs to the submodule: only its absence or presence is looked at.
    fn judge_submodule(&self, change: &Change) -> Result<bool, PendingReason> {
        let both = |mode: &str| mode == GITLINK || mode == ABSENT;
        if !both(&change.old_mode) || !both(&change.new_mode) {
            return Err(PendingReason::SubmoduleReplaced);
        }
        match &self.nodes[change.raw.as_slice()] {
            Node::Absent => Ok(change.new_mode == GITLINK),
            Node::Dir => Ok(change.new_mode == ABSENT),
            Node::Blocked(by) if self.removed.contains(by.as_slice()) => Ok(true),
            Node::File(_) | Node::Blocked(_) => Err(PendingReason::InTheWay),
        }
    }

    fn added_below(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        self.added.range(below.as_slice()..).next().is_some_and(|p| p.starts_with(&below))
    }

    /// Whether every file below a folder is one that goes, as the old commit has it.
    fn holds_only_removed(&self, path: &[u8]) -> bool {
        let Ok(entries) = fs::read_dir(at(self.top, path)) else {
            return false;
        };
        entries.into_iter().all(|entry| {
            let Ok(entry) = entry else { return false };
            let below = [path, b"/", entry.file_name().as_bytes()].concat();
            if entry.file_type().is_ok_and(|t| t.is_dir()) {
                return self.holds_only_removed(&below);
            }
            self.removed.contains(below.as_slice()) && self.old.contains(&below)
        })
    }
}

/// On a file system that folds case, two changed names that differ only in case would hit one file.
fn refuse_collisions(req: &LandRequest<'_>, changes: &[Change]) -> Result<(), Stop> {
    if !req.repo.setting_is_true("core.ignorecase") {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for change in changes {
        if let Some(other) = seen.insert(change.path.to_lowercase(), &change.path) {
            let paths = vec![other.clone(), change.path.clone()];
            let command = format!("git -C {} merge --ff-only {}", shell(&req.repo.top_level), req.new);
            return Err(Stop::pending(PendingReason::CaseCollision, paths, command));
        }
    }
    Ok(())
}

fn advice(why: PendingReason, checkout: &Checkout, paths: &[String]) -> String {
    let list = paths.iter().take(5).map(|p| shell(Path::new(p))).collect::<Vec<_>>().join(" ");
    let git = format!("git -C {}", shell(&checkout.top));
    match why {
        PendingReason::InTheWay => format!("move them away: {list} (in {})", shell(&checkout.top)),
        PendingReason::Flagged => format!(
            "{git} update-index --no-skip-worktree -- {list} && {git} update-index --no-assume-unchanged -- {list}"
        ),
        PendingReason::SubmoduleReplaced => format!("{git} switch --detach"),
        PendingReason::LocalChanges
        | PendingReason::Staged
        | PendingReason::EditedDuringLanding
        | PendingReason::IndexLocked
        | PendingReason::OperationInProgress
        | PendingReason::BranchBusy
        | PendingReason::CheckoutMissing
        | PendingReason::CheckedOutTwice
        | PendingReason::CaseCollision => format!("{git} stash push -- {list}"),
    }
}
