//! The only place of the daemon that reads the wall clock; timeouts use tokio's monotonic time.

use std::time::{SystemTime, UNIX_EPOCH};

use harness_proto::ids::Millis;

/// Now, by the wall clock; for display, resets of limits and dates of commits, never for measuring.
#[must_use]
pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
