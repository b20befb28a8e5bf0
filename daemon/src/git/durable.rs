//! Files that survive a power cut: written aside, synced, renamed, folder synced.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use super::error::GitError;
use crate::failpoint;

/// Syncs a folder, so that names in it are durable.
pub(super) fn sync_dir(path: &Path) -> Result<(), GitError> {
    File::open(path).and_then(|d| d.sync_all()).map_err(GitError::io("sync", path))
}

/// Creates a folder with its parents and mode 0700 where it makes one.
pub(super) fn make_dir(path: &Path) -> Result<(), GitError> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(GitError::io("create", path))
}

/// Extension of a file that is about to replace the one without it.
pub(super) const ASIDE: &str = "harness-new";

/// Writes and syncs a new file; an old one of that name is replaced first.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> Result<(), GitError> {
    remove_file(path)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(mode).open(path).map_err(GitError::io("create", path))?;
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(GitError::io("set the mode of", path))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(GitError::io("write", path))
}

/// Replaces a file as one step: readers see the old or the new bytes, also after a power cut.
pub(super) fn write_atomic(path: &Path, bytes: &[u8], mode: u32) -> Result<(), GitError> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{ASIDE}"));
    let aside = dir.join(name);
    failpoint::hit("git.durable.write.before");
    write_new(&aside, bytes, mode)?;
    failpoint::hit("git.durable.rename.before");
    fs::rename(&aside, path).map_err(GitError::io("replace", path))?;
    failpoint::hit("git.durable.rename.after");
    sync_dir(dir)?;
    failpoint::hit("git.durable.write.after");
    Ok(())
}

/// Like [`write_atomic`], but leaves a file alone that has these bytes already.
pub(super) fn write_if_different(path: &Path, bytes: &[u8], mode: u32) -> Result<(), GitError> {
    match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() && fs::read(path).is_ok_and(|old| old == bytes) => Ok(()),
        _ => write_atomic(path, bytes, mode),
    }
}

/// Removes a file or symlink; absent is fine.
pub(super) fn remove_file(path: &Path) -> Result<(), GitError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(GitError::io("remove", path)(e)),
        _ => Ok(()),
    }
}

/// Removes a folder with all in it, also where modes forbid it; absent is fine, symlinks are not followed.
pub(super) fn remove_dir(path: &Path) -> Result<(), GitError> {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !meta.is_dir() {
        return remove_file(path);
    }
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(_) => {
            open_modes(path);
            fs::remove_dir_all(path).map_err(GitError::io("remove", path))
        }
    }
}

/// Makes every folder below `path` writable; what fails here fails again, with its reason, in the removal.
fn open_modes(path: &Path) {
    drop(fs::set_permissions(path, fs::Permissions::from_mode(0o700)));
    let Ok(entries) = fs::read_dir(path) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            open_modes(&entry.path());
        }
    }
}

/// Reads a small file that an agent may have replaced by anything: a symlink, FIFO, device or a file longer than
/// `limit` bytes is `None`, and nothing blocks.
pub(super) fn read_suspect(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || meta.len() > limit {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
