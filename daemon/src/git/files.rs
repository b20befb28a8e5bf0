//! What is on disk at a path of a tree, looked at without following symlinks.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What identifies a file and its content without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) inode: u64,
    pub(super) size: u64,
    pub(super) mtime: (i64, i64),
}

impl Stamp {
    /// The stamp of no file.
    pub(super) const NONE: Self = Self { inode: 0, size: 0, mtime: (0, 0) };

    /// The stamp of a file or symlink.
    pub(super) fn of(path: &Path) -> Option<Self> {
        fs::symlink_metadata(path).ok().map(|m| Self::from_metadata(&m))
    }

    fn from_metadata(meta: &fs::Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.size(), mtime: (meta.mtime(), meta.mtime_nsec()) }
    }
}

/// What is on disk at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    Absent,
    /// A leading component is a file or symlink.
    Blocked(Vec<u8>),
    /// A file, symlink or special file.
    File(Stamp),
    Dir,
}

/// The path of a changed file below `top`.
pub(super) fn at(top: &Path, raw: &[u8]) -> PathBuf {
    top.join(OsStr::from_bytes(raw))
}

/// Looks at one path without following symlinks anywhere below `top`.
pub(super) fn look(top: &Path, raw: &[u8]) -> Node {
    let slashes = raw.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(i, _)| i);
    for end in slashes {
        match fs::symlink_metadata(at(top, &raw[..end])) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Node::Blocked(raw[..end].to_vec()),
            Err(_) => return Node::Absent,
        }
    }
    match fs::symlink_metadata(at(top, raw)) {
        Ok(meta) if meta.is_dir() => Node::Dir,
        Ok(meta) => Node::File(Stamp::from_metadata(&meta)),
        Err(_) => Node::Absent,
    }
}

/// Whether git can store what is at a path: a regular file or a symlink, reached without following one.
pub(super) fn storable(top: &Path, raw: &[u8]) -> bool {
    let kind = || fs::symlink_metadata(at(top, raw)).map(|m| m.file_type());
    matches!(look(top, raw), Node::File(_)) && kind().is_ok_and(|t| t.is_file() || t.is_symlink())
}
