//! Named crash points: the process aborts at a chosen one, so that tests can kill it before and after every change.
//!
//! Compiled to nothing unless the crate is built for tests or with feature `failpoints`.
//! `HARNESS_FAILPOINT=name[:n]` aborts at the n-th hit of `name` (default the first);
//! `HARNESS_FAILPOINT_LOG=path` appends one line per hit, so that a test can prove that it hit.

/// Every crash point of this crate, in the order of the source files.
pub const REGISTRY: &[&str] = &[
    "store.commit.before",
    "store.commit.after",
    "store.control.before",
    "store.control.after",
    "store.claim.before",
    "store.claim.after",
    "store.takeover.before",
    "store.takeover.after",
    "store.release.before",
    "store.release.after",
    "store.enqueue.before",
    "store.enqueue.after",
    "store.process.add.before",
    "store.process.add.after",
    "store.process.remove.before",
    "store.process.remove.after",
    "store.request.begin.before",
    "store.request.begin.after",
    "store.request.finish.before",
    "store.request.finish.after",
    "store.request.forget.before",
    "store.request.forget.after",
    "store.register.before",
    "store.register.after",
    "store.launch.before",
    "store.launch.after",
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
