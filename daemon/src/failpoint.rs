//! Named crash points, so that a test can kill the process between any two steps.
//!
//! A hit does nothing unless the crate is built for tests or with the feature `failpoints`.
//! Then `HARNESS_FAILPOINT=name[:n]` aborts the process at the n-th hit (default 1) and
//! `HARNESS_FAILPOINT_LOG=path` gets each name appended first, which proves that the point was reached.

/// Every failpoint of the daemon, in no particular order; a test hits each of them.
pub const REGISTRY: &[&str] = &[
    "process.spawn.before",
    "process.spawn.after",
    "process.record.before_rename",
    "process.record.after_rename",
];

/// Marks a point where a test may abort the process.
#[cfg(any(test, feature = "failpoints"))]
pub fn hit(name: &'static str) {
    armed::hit(name);
}

/// Marks a point where a test may abort the process; here a no-op.
#[cfg(not(any(test, feature = "failpoints")))]
pub fn hit(_name: &'static str) {}

#[cfg(any(test, feature = "failpoints"))]
mod armed {
    use std::collections::HashMap;
    use std::io::Write as _;
    use std::sync::Mutex;

    static HITS: Mutex<Option<HashMap<&'static str, u64>>> = Mutex::new(None);

    pub(super) fn hit(name: &'static str) {
        if let Some(path) = std::env::var_os("HARNESS_FAILPOINT_LOG") {
            let mut log = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(path)
                .expect("the failpoint log can be opened");
            log.write_all(format!("{name}\n").as_bytes())
                .expect("the failpoint log can be written");
        }
        let Ok(wanted) = std::env::var("HARNESS_FAILPOINT") else {
            return;
        };
        let (wanted_name, nth) = wanted.split_once(':').unwrap_or((&wanted, "1"));
        if wanted_name != name {
            return;
        }
        let nth: u64 = nth.parse().expect("HARNESS_FAILPOINT is name[:n]");
        let mut hits = HITS.lock().expect("no failpoint panics while counting");
        let count = hits.get_or_insert_default().entry(name).or_insert(0);
        *count += 1;
        if *count == nth {
            std::process::abort();
        }
    }
}
