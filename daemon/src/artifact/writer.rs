//! Writes projections: only what changed, never over a human's edit, and without failing a run.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::atomic::{FileError, ensure_folder, on, remove_leftovers, remove_synced, write_atomic};
use super::paths::{FileName, Layout};
use super::project::FIRST_PLAN;

/// Largest file that is read back; more is no plan.
const READ_MAX: u64 = 16 * 1024 * 1024;

/// What a human changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Edits {
    /// `tasks.json` as it stands now; none when it is ours or gone.
    pub plan: Option<Vec<u8>>,
    /// `harness-launch.json` differs from what `create-launch` wrote (corrections 31).
    pub launch: bool,
}

/// How a projection went.
#[derive(Debug, Default)]
pub struct WriteSummary {
    /// Files written or removed.
    pub written: usize,
    /// Files that could not be; they are tried again at the next call.
    pub failures: Vec<FileError>,
    /// A human's `tasks.json`, which was not overwritten: import it, then project again with [`ArtifactWriter::accept_plan`].
    pub edited_plan: Option<Vec<u8>>,
}

/// The one writer of a run's files.
#[derive(Debug)]
pub struct ArtifactWriter {
    layout: Layout,
    run_dir: PathBuf,
    written: HashMap<FileName, [u8; 32]>,
}

impl ArtifactWriter {
    /// Prepares the folders and removes what a crash left. Copies of what was written last are in `<run_dir>/projected`.
    ///
    /// # Errors
    /// [`FileError`]; the caller warns and tries again later.
    pub fn open(layout: Layout, run_dir: &Path) -> Result<Self, FileError> {
        let copies = run_dir.join("projected");
        fs::create_dir_all(&copies).map_err(on("create", &copies))?;
        for folder in [layout.folder(), layout.reports(), run_dir.to_owned(), copies] {
            remove_leftovers(&folder)?;
        }
        Ok(Self { layout, run_dir: run_dir.to_owned(), written: HashMap::new() })
    }

    /// Where the files lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Writes the launch manifest; only `create-launch` does.
    ///
    /// # Errors
    /// [`FileError`]; nothing changed.
    pub fn write_launch(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        self.own_folder()?;
        write_atomic(&self.copy("harness-launch.json"), bytes)?;
        write_atomic(&self.layout.path(&FileName::Launch), bytes)
    }

    /// Writes the files whose content changed or that are gone from the disk. Every file is tried; failures are returned, not
    /// raised, and such files are tried again at the next call (style 2.7: artifacts failing).
    pub fn write(&mut self, files: &[(FileName, Option<Vec<u8>>)]) -> WriteSummary {
        let mut summary = WriteSummary::default();
        for (name, bytes) in files {
            match self.write_one(name, bytes.as_deref(), &mut summary) {
                Ok(true) => summary.written += 1,
                Ok(false) => {}
                Err(error) => summary.failures.push(error),
            }
        }
        summary
    }

    fn write_one(
        &mut self,
        name: &FileName,
        bytes: Option<&[u8]>,
        summary: &mut WriteSummary,
    ) -> Result<bool, FileError> {
        let path = self.layout.path(name);
        let Some(bytes) = bytes else {
            let there = path.symlink_metadata().is_ok();
            self.written.remove(name);
            return remove_synced(&path).map(|()| there);
        };
        let digest = digest(name, bytes);
        let same = self.written.get(name) == Some(&digest);
        if same && path.symlink_metadata().is_ok() {
            return Ok(false);
        }
        self.own_folder()?;
        if matches!(name, FileName::Report(_)) {
            ensure_folder(&self.layout.reports())?;
        }
        // A user's own prose is never replaced by the first text, only by a planner's.
        if *name == FileName::Plan && bytes.starts_with(FIRST_PLAN.as_bytes()) && path.symlink_metadata().is_ok() {
            return Ok(false);
        }
        if *name == FileName::Tasks {
            if let Some(edited) = self.edited_plan()?.filter(|edited| edited != bytes) {
                summary.edited_plan = Some(edited);
                return Ok(false);
            }
            // Written before the file itself: after a crash in between the file still equals one of the two copies.
            write_atomic(&self.copy("tasks.next.json"), bytes)?;
        }
        if self.written.contains_key(name) || read(&path).ok().flatten().as_deref() != Some(bytes) {
            write_atomic(&path, bytes)?;
        }
        if *name == FileName::Tasks {
            let next = self.copy("tasks.next.json");
            fs::rename(&next, self.copy("tasks.json")).map_err(on("rename", &next))?;
        }
        if *name == FileName::State {
            write_atomic(&self.run_dir.join("state.json"), bytes)?;
        }
        self.written.insert(name.clone(), digest);
        Ok(true)
    }

    /// What a human changed since the last write. Cheap enough to ask every few seconds.
    ///
    /// # Errors
    /// [`FileError`] when a file is there and cannot be read.
    pub fn edits(&self) -> Result<Edits, FileError> {
        let launch = read(&self.layout.path(&FileName::Launch))?;
        let ours = read(&self.copy("harness-launch.json"))?;
        Ok(Edits { plan: self.edited_plan()?, launch: ours.is_some() && launch != ours })
    }

    /// Says that this edit was imported or refused: the next projection may replace it. Also for a `tasks.json` that was there
    /// before the first projection of a run, once it is imported.
    ///
    /// # Errors
    /// [`FileError`].
    pub fn accept_plan(&mut self, edited: &[u8]) -> Result<(), FileError> {
        self.written.remove(&FileName::Tasks);
        write_atomic(&self.copy("tasks.json"), edited)
    }

    /// `tasks.json` when it is neither what we wrote last nor what we were about to write. A file that is gone was no edit:
    /// it is written again.
    fn edited_plan(&self) -> Result<Option<Vec<u8>>, FileError> {
        let Some(found) = read(&self.layout.path(&FileName::Tasks))? else { return Ok(None) };
        for copy in ["tasks.json", "tasks.next.json"] {
            if read(&self.copy(copy))?.as_ref() == Some(&found) {
                return Ok(None);
            }
        }
        Ok(Some(found))
    }

    fn own_folder(&self) -> Result<(), FileError> {
        if self.layout.in_own_folder() { ensure_folder(&self.layout.folder()) } else { Ok(()) }
    }

    fn copy(&self, name: &str) -> PathBuf {
        self.run_dir.join("projected").join(name)
    }
}

/// Digest of what matters: a plan in which only the time changed is not written again.
fn digest(name: &FileName, bytes: &[u8]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if *name != FileName::Tasks || !line.starts_with(b"  \"updated_at\":") {
            hasher.update(line);
        }
    }
    hasher.finalize().into()
}

/// A file's bytes; none when it is not there.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    match fs::metadata(path) {
        Ok(found) if found.len() > READ_MAX => {
            Err(on("read", path)(std::io::Error::new(ErrorKind::FileTooLarge, "it is larger than 16 MiB")))
        }
        // A pipe would block for ever.
        Ok(found) if !found.is_file() => {
            Err(on("read", path)(std::io::Error::new(ErrorKind::InvalidInput, "it is no file")))
        }
        Ok(_) => fs::read(path).map(Some).map_err(on("read", path)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(on("read", path)(error)),
    }
}
