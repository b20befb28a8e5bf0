//! Names for commits: the run's integration head and kept work in the mirror, pins and recovered branches at the user's.

use std::path::Path;

use super::command::Git;
use super::discover::RepoFacts;
use super::durable;
use super::env::UserEnv;
use super::error::GitError;
use super::mirror::Mirror;
use super::oid::Oid;
use crate::failpoint;

/// Which pin in the user's repository; it keeps the user's `gc` from what the mirror borrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// The commit the run started from.
    Base,
    /// The newest commit of the target branch the run builds on.
    Head,
}

/// The answer to a compare-and-swap of a run's integration head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Advance {
    /// It moved from the old to the new commit.
    Moved,
    /// It was at the new commit before (a repeat).
    AlreadyThere,
    /// It is somewhere else; nothing changed.
    Stale {
        /// Where; `None` when it does not exist.
        actual: Option<Oid>,
    },
}

/// Refuses what cannot be one or several components of a ref name (git's own rules, and no `@{`).
pub(super) fn check_name(name: &str) -> Result<(), GitError> {
    let bad_byte = |b: u8| b < 0x21 || b == 0x7f || b"~^:?*[\\".contains(&b);
    let bad_part = |p: &str| p.is_empty() || p.starts_with('.') || p.ends_with('.') || p.ends_with(".lock");
    let bad = name.starts_with('-')
        || name == "@"
        || name.contains("..")
        || name.contains("@{")
        || name.bytes().any(bad_byte)
        || name.split('/').any(bad_part);
    if bad { Err(GitError::BadName { name: name.to_owned() }) } else { Ok(()) }
}

/// What a full ref name is at, in any repository.
pub(super) fn read(git_dir: &Path, env: &UserEnv, name: &str) -> Result<Option<Oid>, GitError> {
    let out = Git::isolated(git_dir, env)
        .args(["rev-parse", "-q", "--verify", "--end-of-options", name])
        .allow(&[0, 1, 128])
        .run()?;
    Ok(if out.code == 0 { Oid::parse(&out.line()) } else { None })
}

fn run_ref(run: &str, suffix: &str) -> Result<String, GitError> {
    check_name(run)?;
    check_name(suffix)?;
    Ok(format!("refs/harness/{run}/{suffix}"))
}

impl Mirror {
    /// Sets `refs/harness/<run>/{base,head}` in the user's repository. Repeatable.
    pub fn pin(&self, run: &str, pin: Pin, commit: &Oid) -> Result<(), GitError> {
        let name = run_ref(run, if pin == Pin::Base { "base" } else { "head" })?;
        if read(&self.user_common_dir, &self.env, &name)?.as_ref() == Some(commit) {
            return Ok(());
        }
        // Only we write below this name, and one at a time: a lock there is a killed git's.
        durable::remove_file(&self.user_common_dir.join(format!("{name}.lock")))?;
        failpoint::hit("git.pin.before");
        Git::isolated(&self.user_common_dir, &self.env)
            .config("core.logAllRefUpdates=false")
            .args(["update-ref", "--no-deref", &name, commit.as_str()])
            .run()?;
        failpoint::hit("git.pin.after");
        Ok(())
    }

    /// Removes both pins of a run from the user's repository. Repeatable.
    pub fn unpin(&self, run: &str) -> Result<(), GitError> {
        for suffix in ["base", "head"] {
            let name = run_ref(run, suffix)?;
            failpoint::hit("git.unpin.before");
            Git::isolated(&self.user_common_dir, &self.env).args(["update-ref", "--no-deref", "-d", &name]).run()?;
            failpoint::hit("git.unpin.after");
        }
        Ok(())
    }

    /// Names a commit `refs/harness/<run>/<suffix>` in the mirror, so that it is never lost. Repeatable.
    pub fn keep(&self, run: &str, suffix: &str, commit: &Oid) -> Result<(), GitError> {
        let name = run_ref(run, suffix)?;
        self.remove_ref_lock(&name)?;
        failpoint::hit("git.keep.before");
        self.git().args(["update-ref", "--no-deref", &name, commit.as_str()]).run()?;
        failpoint::hit("git.keep.after");
        Ok(())
    }

    /// Removes what a git left that was killed while it moved this name. Only the daemon moves names here, one at a time.
    fn remove_ref_lock(&self, name: &str) -> Result<(), GitError> {
        durable::remove_file(&self.path.join(format!("{name}.lock")))
    }

    /// All names of a run in the mirror, without their common prefix, in order.
    pub fn kept(&self, run: &str) -> Result<Vec<(String, Oid)>, GitError> {
        check_name(run)?;
        let prefix = format!("refs/harness/{run}/");
        let out = self.git().args(["for-each-ref", "--format=%(objectname) %(refname)", &prefix]).run()?;
        let text = String::from_utf8_lossy(&out.stdout);
        let entry = |line: &str| {
            let (id, name) = line.split_once(' ')?;
            Some((name.strip_prefix(&prefix)?.to_owned(), Oid::parse(id)?))
        };
        Ok(text.lines().filter_map(entry).collect())
    }

    /// The run's integration head, if it has one yet.
    pub fn integration_head(&self, run: &str) -> Result<Option<Oid>, GitError> {
        read(&self.path, &self.env, &run_ref(run, "integration")?)
    }

    /// Moves the run's integration head from exactly `from` (`None`: it must not exist) to `to`. Repeatable.
    pub fn advance(&self, run: &str, from: Option<&Oid>, to: &Oid) -> Result<Advance, GitError> {
        let name = run_ref(run, "integration")?;
        let expected = from.cloned().unwrap_or_else(|| to.zero_like());
        self.remove_ref_lock(&name)?;
        failpoint::hit("git.advance.before");
        let moved = self.git().args(["update-ref", "--no-deref", &name, to.as_str(), expected.as_str()]).run();
        failpoint::hit("git.advance.after");
        let Err(error) = moved else {
            return Ok(if from == Some(to) { Advance::AlreadyThere } else { Advance::Moved });
        };
        match self.integration_head(run)? {
            Some(actual) if actual == *to => Ok(Advance::AlreadyThere),
            actual if actual.as_ref() != from => Ok(Advance::Stale { actual }),
            // It is where we thought, so that the swap failed for another reason (disk, lock).
            _ => Err(error),
        }
    }

    /// Brings a commit of the mirror into the user's repository as a new branch; one that exists is never moved.
    ///
    /// Errors: [`GitError::BranchExists`] when it is at another commit. Repeatable.
    pub fn recover_branch(&self, repo: &RepoFacts, branch: &str, commit: &Oid) -> Result<(), GitError> {
        match repo.branch_tip(branch)? {
            Some(tip) if tip == *commit => return Ok(()),
            Some(_) => {
                return Err(GitError::BranchExists { branch: branch.to_owned() });
            }
            None => {}
        }
        self.export(repo, commit)?;
        failpoint::hit("git.recover.before");
        let name = format!("refs/heads/{branch}");
        let zero = commit.zero_like();
        let made = Git::as_user(&repo.common_dir, &repo.env)
            .args(["update-ref", "-m", "harness: recover", &name, commit.as_str(), zero.as_str()])
            .run();
        failpoint::hit("git.recover.after");
        match (made, repo.branch_tip(branch)?) {
            (Ok(_), _) => Ok(()),
            (Err(_), Some(tip)) if tip == *commit => Ok(()),
            (Err(_), Some(_)) => Err(GitError::BranchExists { branch: branch.to_owned() }),
            (Err(error), None) => Err(error),
        }
    }

    /// Brings the objects of a commit into the user's repository, checked and synced; names nothing there.
    pub(super) fn export(&self, repo: &RepoFacts, commit: &Oid) -> Result<(), GitError> {
        self.guard()?;
        failpoint::hit("git.export.before");
        Git::isolated(&repo.common_dir, &repo.env)
            .config("fetch.fsckObjects=true")
            .args(["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-prune"])
            .args(["--no-prune-tags", "--no-recurse-submodules", "--refmap=", "--end-of-options"])
            .args([self.path.as_os_str(), std::ffi::OsStr::new(commit.as_str())])
            .run()?;
        failpoint::hit("git.export.after");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::check_name;

    #[test]
    fn ref_names_follow_gits_rules() {
        for good in ["main", "feature/x", "T-001/a1", "run_abc"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "-x", "a..b", "a.lock", "a/.b", "a//b", "a b", "a~1", "a@{0}", "@", "x.", "a\\b", "a\nb"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
