//! Waiting for a predicate: level-triggered, with a limit that means "broken" and not "slow".

use std::time::{Duration, Instant};

/// After this long nothing slow is left to blame.
pub const BROKEN: Duration = Duration::from_secs(120);

/// Looks until there is something; panics with `what` when it never comes.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < BROKEN, "never: {what}");
        // why: paces the look at a predicate over other processes; nothing tells when it changes
        std::thread::sleep(Duration::from_millis(10));
    }
}
