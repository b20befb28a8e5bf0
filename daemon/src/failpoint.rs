//! Named crash points: the process aborts at a chosen one, so that tests can kill it before and after every change.
//!
//! Compiled to nothing unless the crate is built for tests or with feature `failpoints`.
//! `HARNESS_FAILPOINT=name[:n]` aborts at the n-th hit of `name` (default the first);
//! `HARNESS_FAILPOINT_LOG=path` appends one line per hit, so that a test can prove that it hit.

/// Every crash point of this crate, in the order of the source files.
pub const REGISTRY: &[&str] = &[
    "artifact.append.after",
    "artifact.append.before",
    "artifact.lesson.after",
    "artifact.lesson.before",
    "artifact.replace.after",
    "artifact.replace.before",
    "artifact.rotate.after",
    "artifact.rotate.before",
    "git.advance.after",
    "git.advance.before",
    "git.candidate.commit.after",
    "git.candidate.commit.before",
    "git.durable.rename.after",
    "git.durable.rename.before",
    "git.durable.write.after",
    "git.durable.write.before",
    "git.export.after",
    "git.export.before",
    "git.forged.object.before",
    "git.forged.pack.before",
    "git.init.after",
    "git.init.before",
    "git.init.commit.before",
    "git.init.ref.after",
    "git.init.ref.before",
    "git.keep.after",
    "git.keep.before",
    "git.land.checkout.after",
    "git.land.checkout.before",
    "git.land.fetch.after",
    "git.land.fetch.before",
    "git.land.index.entries.before",
    "git.land.index.refresh.before",
    "git.land.index.replace.after",
    "git.land.index.replace.before",
    "git.land.journal.after",
    "git.land.journal.before",
    "git.land.lock.link.after",
    "git.land.lock.link.before",
    "git.land.lock.unlink.after",
    "git.land.lock.write.before",
    "git.land.mkdir.after",
    "git.land.mkdir.before",
    "git.land.place.after",
    "git.land.place.before",
    "git.land.ref.after",
    "git.land.ref.before",
    "git.land.restore.after",
    "git.land.restore.before",
    "git.land.rmdir.after",
    "git.land.rmdir.before",
    "git.land.stage.create.after",
    "git.land.stage.create.before",
    "git.land.stage.remove.after",
    "git.land.stage.remove.before",
    "git.land.start.after",
    "git.land.start.before",
    "git.land.submodule.before",
    "git.land.swap.after",
    "git.land.swap.before",
    "git.land.take.after",
    "git.land.take.before",
    "git.land.unlock.after",
    "git.land.unlock.before",
    "git.leftover.after",
    "git.leftover.before",
    "git.merge.after",
    "git.merge.before",
    "git.mirror.create.after",
    "git.mirror.create.before",
    "git.mirror.init.after",
    "git.mirror.init.before",
    "git.mirror.unlock.after",
    "git.mirror.unlock.before",
    "git.pin.after",
    "git.pin.before",
    "git.recover.after",
    "git.recover.before",
    "git.restack.commit.after",
    "git.restack.commit.before",
    "git.snapshot.after",
    "git.snapshot.before",
    "git.tree.add.before",
    "git.tree.checkout.after",
    "git.tree.checkout.before",
    "git.tree.private.after",
    "git.tree.private.before",
    "git.tree.remove.after",
    "git.tree.remove.before",
    "git.tree.remove.private.before",
    "git.tree.remove.record.before",
    "git.tree.reset.after",
    "git.tree.reset.before",
    "git.unpin.after",
    "git.unpin.before",
    "process.record.after_rename",
    "process.record.before_rename",
    "process.spawn.after",
    "process.spawn.before",
    "runtime.effect.after",
    "runtime.effect.before",
    "runtime.registered",
    "store.claim.after",
    "store.claim.before",
    "store.commit.after",
    "store.commit.before",
    "store.control.after",
    "store.control.before",
    "store.enqueue.after",
    "store.enqueue.before",
    "store.launch.after",
    "store.launch.before",
    "store.process.add.after",
    "store.process.add.before",
    "store.process.remove.after",
    "store.process.remove.before",
    "store.register.after",
    "store.register.before",
    "store.release.after",
    "store.release.before",
    "store.request.begin.after",
    "store.request.begin.before",
    "store.request.finish.after",
    "store.request.finish.before",
    "store.request.forget.after",
    "store.request.forget.before",
    "store.takeover.after",
    "store.takeover.before",
];

/// Marks a crash point. Invariant: `name` is in [`REGISTRY`].
#[cfg(not(any(test, feature = "failpoints")))]
#[inline(always)]
pub fn hit(_name: &'static str) {}

/// Marks a crash point. Invariant: `name` is in [`REGISTRY`].
#[cfg(any(test, feature = "failpoints"))]
pub fn hit(name: &'static str) {
    armed::hit(name);
}

#[cfg(any(test, feature = "failpoints"))]
mod armed {
    use std::collections::HashMap;
    use std::fs::OpenOptions;
    use std::io::Write as _;
    use std::sync::{LazyLock, Mutex, PoisonError};

    static COUNTS: LazyLock<Mutex<HashMap<&'static str, u32>>> = LazyLock::new(Mutex::default);

    pub(super) fn hit(name: &'static str) {
        let target = std::env::var("HARNESS_FAILPOINT").ok();
        let log = std::env::var_os("HARNESS_FAILPOINT_LOG");
        if target.is_none() && log.is_none() {
            return;
        }
        let n = {
            let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
            let n = counts.entry(name).or_insert(0);
            *n += 1;
            *n
        };
        if let Some(path) = log {
            let mut file = OpenOptions::new().create(true).append(true).open(path).expect("failpoint log opens");
            file.write_all(format!("{name}\n").as_bytes()).expect("failpoint log is writable");
        }
        let Some(target) = target else { return };
        let (wanted, at) = match target.rsplit_once(':') {
            Some((wanted, at)) => (wanted, at.parse().expect("HARNESS_FAILPOINT is name[:n]")),
            None => (target.as_str(), 1),
        };
        if wanted == name && n == at {
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeSet;
    use std::path::Path;

    fn collect(dir: &Path, found: &mut BTreeSet<String>) {
        let start = ["hit", "(\""].concat();
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for part in text.split(&start).skip(1) {
                    found.insert(part.split('"').next().unwrap().to_owned());
                }
            }
        }
    }

    #[test]
    fn registry_lists_exactly_the_crash_points_in_the_source() {
        let mut found = BTreeSet::new();
        collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
        let listed: BTreeSet<String> = super::REGISTRY.iter().map(|&s| s.to_owned()).collect();
        assert_eq!(listed.len(), super::REGISTRY.len(), "a name is listed twice");
        assert_eq!(found, listed);
    }
}
