//! Finds objects that do not have the content their id promises.
//!
//! An agent may write the mirror's `objects/`, and git does not hash what it reads: a forged copy of an old file
//! would be checked out for evidence while the user's branch gets the true one. So everything the mirror holds itself
//! is hashed before a tree is made or believed; forged objects are removed, which uncovers the true ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::durable;
use super::error::GitError;
use super::mirror::Mirror;
use super::oid::Oid;
use crate::failpoint;

static NEXT: AtomicU64 = AtomicU64::new(0);

impl Mirror {
    /// Removes forged objects and packs of the mirror; returns what it removed.
    pub(super) fn remove_forged(&self) -> Result<Vec<String>, GitError> {
        self.guard()?;
        let mut removed = Vec::new();
        for index in self.pack_indexes()? {
            if !self.is_true_pack(&index)? {
                failpoint::hit("git.forged.pack.before");
                for kind in ["idx", "pack", "rev", "bitmap"] {
                    durable::remove_file(&index.with_extension(kind))?;
                }
                removed.push(index.file_name().unwrap_or_default().to_string_lossy().into_owned());
            }
        }
        let loose = self.loose_objects()?;
        if self.are_true(&loose)? {
            return Ok(removed);
        }
        for (oid, path) in &loose {
            if !self.are_true(&[(oid.clone(), path.clone())])? {
                failpoint::hit("git.forged.object.before");
                durable::remove_file(path)?;
                removed.push(oid.to_string());
            }
        }
        Ok(removed)
    }

    fn pack_indexes(&self) -> Result<Vec<PathBuf>, GitError> {
        let dir = self.path.join("objects/pack");
        let mut found = Vec::new();
        for path in list(&dir)? {
            if path.extension().is_some_and(|e| e == "idx") {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn loose_objects(&self) -> Result<Vec<(Oid, PathBuf)>, GitError> {
        let mut found = Vec::new();
        for dir in list(&self.path.join("objects"))? {
            let start = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if start.len() != 2 || !dir.is_dir() {
                continue;
            }
            for path in list(&dir)? {
                let rest = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                found.extend(Oid::parse(&format!("{start}{rest}")).map(|oid| (oid, path)));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Packs the objects as git reads them and hashes the pack.
    fn are_true(&self, objects: &[(Oid, PathBuf)]) -> Result<bool, GitError> {
        if objects.is_empty() {
            return Ok(true);
        }
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = self.path.join("harness-verify").join(format!("{}-{n}", std::process::id()));
        durable::make_dir(&dir)?;
        let list: String = objects.iter().map(|(oid, _)| format!("{oid}\n")).collect();
        let packed = self
            .git()
            .config("core.fsync=none")
            .config("pack.writeReverseIndex=false")
            .args(["pack-objects", "-q", "--window=0", "--threads=1"])
            .args([dir.join("p")])
            .stdin(list.into_bytes())
            .allow(&[0, 1, 128])
            .run()?;
        let index = dir.join(format!("p-{}.idx", packed.line()));
        let answer = packed.code == 0 && self.is_true_pack(&index)?;
        durable::remove_dir(&dir)?;
        Ok(answer)
    }

    fn is_true_pack(&self, index: &Path) -> Result<bool, GitError> {
        let checked = self.git().args(["verify-pack", "--"]).args([index]).allow(&[0, 1, 128]).run()?;
        Ok(checked.code == 0)
    }
}

fn list(dir: &Path) -> Result<Vec<PathBuf>, GitError> {
    match fs::read_dir(dir) {
        Ok(entries) => entries.map(|e| e.map(|e| e.path()).map_err(GitError::io("list", dir))).collect(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(GitError::io("list", dir)(e)),
    }
}
