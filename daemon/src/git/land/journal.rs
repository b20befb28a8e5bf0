//! The folder where new files wait and swapped-out files are looked at, and what a later try needs to know of it.
//!
//! Layout: `files/<path>` new files; after a swap the file that was in the checkout. `old/<n>` files taken out.
//! `journal` one record per path: the stamp that was compared and the stamp of the new file.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::compare::Todo;
use super::place::Checkout;
use crate::failpoint;
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::files::{Node, Stamp, at};
use crate::git::parse::ABSENT;

/// The stage of one try.
pub(super) struct Stage {
    pub(super) dir: PathBuf,
}

/// What one line says.
struct Line {
    stamp: Stamp,
    new: Stamp,
    path: Vec<u8>,
}

impl Stage {
    /// Beside the files on the same file system: in the git folder if that is on it, else in the checkout.
    fn place(checkout: &Checkout) -> PathBuf {
        let device = |p: &Path| fs::metadata(p).map(|m| m.dev()).ok();
        if device(&checkout.git_dir) == device(&checkout.top) {
            checkout.git_dir.join("harness-landing")
        } else {
            checkout.top.join(".harness-landing")
        }
    }

    /// Makes the folder anew.
    pub(super) fn create(checkout: &Checkout) -> Result<Self, GitError> {
        let dir = Self::place(checkout);
        failpoint::hit("git.land.stage.create.before");
        durable::remove_dir(&dir)?;
        durable::make_dir(&dir.join("files"))?;
        durable::make_dir(&dir.join("old"))?;
        failpoint::hit("git.land.stage.create.after");
        Ok(Self { dir })
    }

    /// Where the new file of a path waits.
    pub(super) fn file(&self, raw: &[u8]) -> PathBuf {
        at(&self.dir.join("files"), raw)
    }

    /// Where the n-th path's file goes when it is taken out.
    pub(super) fn taken(&self, n: usize) -> PathBuf {
        self.dir.join("old").join(n.to_string())
    }

    /// Writes down what was compared, before anything moves.
    pub(super) fn record(&self, todo: &[Todo]) -> Result<(), GitError> {
        let mut bytes = Vec::new();
        for item in todo {
            let old = match item.node {
                Node::File(stamp) => stamp,
                Node::Absent | Node::Dir | Node::Blocked(_) => Stamp::NONE,
            };
            let new = Stamp::of(&self.file(&item.change.raw)).filter(|_| item.change.new_mode != ABSENT);
            for Stamp { inode, size, mtime: (s, n) } in [old, new.unwrap_or(Stamp::NONE)] {
                bytes.extend_from_slice(format!("{inode} {size} {s} {n} ").as_bytes());
            }
            bytes.extend_from_slice(&item.change.raw);
            bytes.push(0);
        }
        failpoint::hit("git.land.journal.before");
        durable::write_atomic(&self.dir.join("journal"), &bytes, 0o600)?;
        failpoint::hit("git.land.journal.after");
        Ok(())
    }

    /// Removes the folder when all swaps were looked at. Repeatable.
    pub(super) fn discard(checkout: &Checkout) -> Result<(), GitError> {
        failpoint::hit("git.land.stage.remove.before");
        durable::remove_dir(&Self::place(checkout))?;
        failpoint::hit("git.land.stage.remove.after");
        Ok(())
    }

    /// After a crash: a file that was swapped out but is not the one that was compared is the user's; it goes back,
    /// in exchange for the new file. Where the place holds yet another edit, it is kept in `harness-saved` in the git
    /// folder; these are returned. Then the folder goes.
    pub(super) fn restore(checkout: &Checkout) -> Result<Vec<String>, GitError> {
        let mut saved = Vec::new();
        let stage = Self { dir: Self::place(checkout) };
        let bytes = match fs::read(stage.dir.join("journal")) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                Self::discard(checkout)?;
                return Ok(saved);
            }
            Err(e) => return Err(GitError::io("read", stage.dir.join("journal"))(e)),
        };
        for (n, line) in crate::git::parse::records(&bytes).filter_map(read_line).enumerate() {
            for slot in [stage.taken(n), stage.file(&line.path)] {
                let Some(found) = Stamp::of(&slot).filter(|_| !slot.is_dir() || slot.is_symlink()) else {
                    continue;
                };
                if found == line.new || found == line.stamp {
                    continue;
                }
                failpoint::hit("git.land.restore.before");
                saved.extend(put_back(checkout, &slot, &line)?);
                failpoint::hit("git.land.restore.after");
            }
        }
        Self::discard(checkout)?;
        Ok(saved)
    }
}

fn put_back(checkout: &Checkout, slot: &Path, line: &Line) -> Result<Option<String>, GitError> {
    let place = at(&checkout.top, &line.path);
    if super::apply::rename_absent(slot, &place).is_ok() {
        return Ok(None);
    }
    if Stamp::of(&place) == Some(line.new) && super::apply::exchange(slot, &place).is_ok() {
        return Ok(None);
    }
    let saved = checkout.git_dir.join("harness-saved");
    durable::make_dir(&saved)?;
    let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let free = (0..).map(|n| saved.join(format!("{name}.{n}"))).find(|p| fs::symlink_metadata(p).is_err());
    let free = free.unwrap_or_else(|| saved.join(name));
    fs::rename(slot, &free).map_err(GitError::io("save a file as", &free))?;
    Ok(Some(super::place::lossy(&free)))
}

fn read_line(record: &[u8]) -> Option<Line> {
    let mut parts = record.splitn(9, |b| *b == b' ');
    let mut stamp = || {
        let mut number = || std::str::from_utf8(parts.next()?).ok();
        let (inode, size) = (number()?.parse().ok()?, number()?.parse().ok()?);
        Some(Stamp { inode, size, mtime: (number()?.parse().ok()?, number()?.parse().ok()?) })
    };
    let (old, new) = (stamp()?, stamp()?);
    Some(Line { stamp: old, new, path: parts.next()?.to_vec() })
}
