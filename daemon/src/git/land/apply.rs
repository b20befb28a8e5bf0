//! Step 5: new files are staged aside, then each is swapped with what is in the checkout; what came out is looked at.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use super::compare::{Todo, fill_index, user_git};
use super::journal::Stage;
use super::outcome::LandRequest;
use super::place::Checkout;
use crate::failpoint;
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::files::{Node, Stamp, at};
use crate::git::parse::{ABSENT, GITLINK};

/// Changes the files of the checkout. Returns the paths that were edited in that moment and kept.
pub(super) fn apply(req: &LandRequest<'_>, checkout: &Checkout, todo: &[Todo]) -> Result<Vec<String>, GitError> {
    let stage = Stage::create(checkout)?;
    stage_files(req, checkout, todo, &stage)?;
    stage.record(todo)?;
    let mut swap = Swap { checkout, stage: &stage, dirs: BTreeSet::new(), kept: Vec::new() };
    for (n, item) in todo.iter().enumerate().rev().filter(|(_, t)| t.change.new_mode == ABSENT) {
        swap.remove(n, item)?;
    }
    for item in todo.iter().filter(|t| t.change.new_mode != ABSENT) {
        swap.place(item)?;
    }
    for dir in &swap.dirs {
        if dir.is_dir() {
            durable::sync_dir(dir)?;
        }
    }
    let kept = swap.kept;
    Stage::discard(checkout)?;
    Ok(kept)
}

fn stage_files(req: &LandRequest<'_>, checkout: &Checkout, todo: &[Todo], stage: &Stage) -> Result<(), GitError> {
    let new: Vec<_> = todo.iter().filter(|t| t.change.new_mode != ABSENT && t.change.new_mode != GITLINK).collect();
    if new.is_empty() {
        return Ok(());
    }
    let index = req.scratch.join("land-stage");
    fill_index(req, checkout, &index, new.iter().map(|t| (&t.change, &t.change.new_mode, &t.change.new)))?;
    let mut prefix = std::ffi::OsString::from("--prefix=");
    prefix.push(stage.dir.join("files"));
    prefix.push("/");
    failpoint::hit("git.land.checkout.before");
    user_git(req, checkout)
        .index(&index)
        .global(format!("--attr-source={}", req.new))
        .args(["checkout-index", "-q", "-f", "-a"])
        .args([prefix])
        .run()?;
    failpoint::hit("git.land.checkout.after");
    durable::remove_file(&index)?;
    for item in &new {
        sync_file(&stage.file(&item.change.raw))?;
    }
    Ok(())
}

/// Syncs a regular file; a symlink is synced with its folder.
fn sync_file(path: &Path) -> Result<(), GitError> {
    let meta = fs::symlink_metadata(path).map_err(GitError::io("read", path))?;
    if !meta.is_file() {
        return Ok(());
    }
    let nofollow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let open = |write: bool| OpenOptions::new().read(!write).write(write).custom_flags(nofollow).open(path);
    open(false).or_else(|_| open(true)).and_then(|f| f.sync_all()).map_err(GitError::io("sync", path))
}

/// Renames only onto nothing.
pub(super) fn rename_absent(from: &Path, to: &Path) -> Result<(), Error> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
            // A file system without the flag: look first; the window is the time between two calls.
            if fs::symlink_metadata(to).is_ok() {
                return Err(Error::from(ErrorKind::AlreadyExists));
            }
            fs::rename(from, to)
        }
        other => other.map_err(Error::from),
    }
}

/// Swaps two files in one step.
pub(super) fn exchange(one: &Path, other: &Path) -> Result<(), Errno> {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)
}

struct Swap<'a> {
    checkout: &'a Checkout,
    stage: &'a Stage,
    dirs: BTreeSet<PathBuf>,
    kept: Vec<String>,
}

impl Swap<'_> {
    fn remove(&mut self, n: usize, item: &Todo) -> Result<(), GitError> {
        let path = at(&self.checkout.top, &item.change.raw);
        if item.change.old_mode == GITLINK {
            // A submodule that has files in it stays, as git leaves it.
            self.remove_empty_dirs(&path);
            return Ok(());
        }
        let Node::File(stamp) = item.node else {
            return Ok(());
        };
        let out = self.stage.taken(n);
        failpoint::hit("git.land.take.before");
        match fs::rename(&path, &out) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(GitError::io("remove", &path)(e)),
            Ok(()) => {
                failpoint::hit("git.land.take.after");
                if Stamp::of(&out) != Some(stamp) {
                    self.kept.push(item.change.path.clone());
                    return rename_absent(&out, &path).map_err(GitError::io("put back", &path));
                }
            }
        }
        if let Some(dir) = path.parent() {
            self.dirs.insert(dir.to_path_buf());
            self.remove_empty_dirs(dir);
        }
        Ok(())
    }

    /// Removes folders that are empty, from `dir` up to the root of the checkout.
    fn remove_empty_dirs(&mut self, dir: &Path) {
        let mut dir = dir;
        while dir != self.checkout.top && dir.starts_with(&self.checkout.top) {
            failpoint::hit("git.land.rmdir.before");
            if fs::remove_dir(dir).is_err() {
                return;
            }
            failpoint::hit("git.land.rmdir.after");
            let Some(parent) = dir.parent() else { return };
            self.dirs.insert(parent.to_path_buf());
            dir = parent;
        }
    }

    fn place(&mut self, item: &Todo) -> Result<(), GitError> {
        let path = at(&self.checkout.top, &item.change.raw);
        self.make_parents(&path)?;
        if item.change.new_mode == GITLINK {
            failpoint::hit("git.land.submodule.before");
            return fs::create_dir(&path).or_else(exists_is_fine).map_err(GitError::io("create", &path));
        }
        let new = self.stage.file(&item.change.raw);
        if let Node::File(stamp) = item.node {
            return self.exchange(&new, &path, stamp, &item.change.path);
        }
        if item.node == Node::Dir {
            remove_empty_below(&path);
        }
        failpoint::hit("git.land.place.before");
        match rename_absent(&new, &path) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => self.kept.push(item.change.path.clone()),
            Err(e) => return Err(GitError::io("create", &path)(e)),
        }
        failpoint::hit("git.land.place.after");
        Ok(())
    }

    fn exchange(&mut self, new: &Path, path: &Path, stamp: Stamp, name: &str) -> Result<(), GitError> {
        failpoint::hit("git.land.swap.before");
        let swapped = exchange(new, path);
        failpoint::hit("git.land.swap.after");
        match swapped {
            Ok(()) if Stamp::of(new) == Some(stamp) => Ok(()),
            Ok(()) => {
                self.kept.push(name.to_owned());
                exchange(new, path).map_err(|e| GitError::io("put back", path)(e.into()))
            }
            // The user removed the file in this moment: that is an edit, too.
            Err(Errno::NOENT) => {
                self.kept.push(name.to_owned());
                Ok(())
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if Stamp::of(path) == Some(stamp) => {
                fs::rename(new, path).map_err(GitError::io("replace", path))
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                self.kept.push(name.to_owned());
                Ok(())
            }
            Err(e) => Err(GitError::io("replace", path)(e.into())),
        }
    }

    /// Makes the folders of a path; each is synced later with the one above it.
    fn make_parents(&mut self, path: &Path) -> Result<(), GitError> {
        let Some(parent) = path.parent() else {
            return Ok(());
        };
        let missing: Vec<&Path> = parent.ancestors().take_while(|d| !d.is_dir()).collect();
        for dir in missing.into_iter().rev() {
            failpoint::hit("git.land.mkdir.before");
            fs::create_dir(dir).or_else(exists_is_fine).map_err(GitError::io("create", dir))?;
            failpoint::hit("git.land.mkdir.after");
            self.dirs.extend(dir.parent().map(Path::to_path_buf));
        }
        self.dirs.insert(parent.to_path_buf());
        Ok(())
    }
}

fn exists_is_fine(error: Error) -> Result<(), Error> {
    if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) }
}

/// Removes a folder whose files are gone; anything left in it keeps it, and the rename onto it then fails.
fn remove_empty_below(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            remove_empty_below(&entry.path());
        }
    }
    drop(fs::remove_dir(dir));
}
