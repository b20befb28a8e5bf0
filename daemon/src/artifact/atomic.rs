//! One way to replace a file: all of it or nothing, also after a power cut (weaknesses 25, 26).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failpoint;

/// How a temporary file's name begins, so that a leftover of a crash is recognised as ours.
pub(crate) const TEMP_PREFIX: &str = ".harness-tmp-";
/// Mode of our own files whatever the umask is (corrections 23).
const MODE: u32 = 0o644;

/// An operation on a file that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} `{}`", path.display())]
pub struct FileError {
    /// What was tried.
    pub operation: &'static str,
    /// On which file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Names the operation and the file of an I/O error.
pub(crate) fn on(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError { operation, path, source }
}

/// Replaces `path` by `bytes`, mode 0644. A link at `path` is replaced, never followed.
///
/// # Errors
/// [`FileError`]; then `path` is unchanged and no temporary file is left.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let temp = folder.join(format!("{TEMP_PREFIX}{}-{number}", std::process::id()));
    let written = fill(&temp, bytes).map_err(on("write", path)).and_then(|()| {
        failpoint::hit("artifact.replace.before");
        fs::rename(&temp, path).map_err(on("replace", path))
    });
    if let Err(error) = written {
        // The first error is the one to tell; a leftover is removed at the next start as well.
        drop(fs::remove_file(&temp));
        return Err(error);
    }
    failpoint::hit("artifact.replace.after");
    sync_folder(folder)
}

fn fill(temp: &Path, bytes: &[u8]) -> io::Result<()> {
    // A leftover with our own pid can only be of an earlier process.
    match fs::remove_file(temp) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(temp)?;
    file.set_permissions(Permissions::from_mode(MODE))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes names in `folder` durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), FileError> {
    File::open(folder).and_then(|dir| dir.sync_all()).map_err(on("sync", folder))
}

/// Makes a folder durably, but never its parents: a repository that was moved away is not made again. A link in its place is
/// refused: it would lead our writes elsewhere.
///
/// # Errors
/// [`FileError`].
pub(crate) fn ensure_folder(folder: &Path) -> Result<(), FileError> {
    match fs::symlink_metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => {
            let not_a_folder = io::Error::new(io::ErrorKind::NotADirectory, "something that is no folder stands there");
            Err(on("use", folder)(not_a_folder))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::create_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(on("create", folder)(error)),
            _ => folder.parent().map_or(Ok(()), sync_folder),
        },
        Err(error) => Err(on("look at", folder)(error)),
    }
}

/// Removes a file durably; that it is gone already is no error.
///
/// # Errors
/// [`FileError`].
pub fn remove_synced(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(on("remove", path)(error)),
    }
}

/// Removes temporary files that a crash left in `folder`; returns how many. A missing folder has none.
///
/// # Errors
/// [`FileError`] when the folder cannot be read or a leftover cannot be removed.
pub fn remove_leftovers(folder: &Path) -> Result<usize, FileError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(on("read", folder)(error)),
    };
    let mut removed = 0;
    for entry in entries {
        let entry = entry.map_err(on("read", folder))?;
        if entry.file_name().as_encoded_bytes().starts_with(TEMP_PREFIX.as_bytes()) {
            remove_synced(&entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}
