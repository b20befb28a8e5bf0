//! The user's `index.lock`, held by a file that names the landing, so that a crash leaves a lock we know as ours.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use super::outcome::{PendingReason, Stop};
use super::place::{Checkout, lossy};
use crate::failpoint;
use crate::git::durable;
use crate::git::error::GitError;
use crate::git::oid::Oid;

/// The lock while a landing holds it. Not released on drop: a crash and an early return differ.
pub(super) struct IndexLock {
    path: PathBuf,
    prefix: String,
}

impl IndexLock {
    /// Takes the lock, or takes over the one an earlier try of the same run left.
    pub(super) fn take(checkout: &Checkout, run: &str, new: &Oid) -> Result<Self, Stop> {
        let lock = Self { path: checkout.git_dir.join("index.lock"), prefix: format!("harness landing {run} ") };
        let aside = checkout.git_dir.join("index.lock.harness");
        failpoint::hit("git.land.lock.write.before");
        durable::write_new(&aside, format!("{}{new}\n", lock.prefix).as_bytes(), 0o644)?;
        failpoint::hit("git.land.lock.link.before");
        let linked = fs::hard_link(&aside, &lock.path);
        failpoint::hit("git.land.lock.link.after");
        durable::remove_file(&aside)?;
        failpoint::hit("git.land.lock.unlink.after");
        match linked {
            Ok(()) => Ok(lock),
            Err(e) if e.kind() == ErrorKind::AlreadyExists && lock.is_ours() => Ok(lock),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                let command = format!("wait for the other git; if none runs: rm {}", super::place::shell(&lock.path));
                Err(Stop::pending(PendingReason::IndexLocked, vec![lossy(&lock.path)], command))
            }
            Err(e) => Err(GitError::io("lock", &lock.path)(e).into()),
        }
    }

    /// Whether the lock that exists names a landing of this run.
    fn is_ours(&self) -> bool {
        durable::read_suspect(&self.path, 4096).is_some_and(|b| b.starts_with(self.prefix.as_bytes()))
    }

    /// Gives the lock back if it is still ours.
    pub(super) fn release(self) -> Result<(), GitError> {
        failpoint::hit("git.land.unlock.before");
        if self.is_ours() {
            durable::remove_file(&self.path)?;
        }
        failpoint::hit("git.land.unlock.after");
        Ok(())
    }

    /// Removes a lock that an earlier try of this run left, when the landing turns out to be over.
    pub(super) fn release_leftover(checkout: &Checkout, run: &str) -> Result<(), GitError> {
        durable::remove_file(&checkout.git_dir.join("index.lock.harness"))?;
        Self { path: checkout.git_dir.join("index.lock"), prefix: format!("harness landing {run} ") }.release()
    }
}
