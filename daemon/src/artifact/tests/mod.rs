//! Files of a run on a real disk: shapes, crashes, full disks, human edits.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests; a skipped one says so")]
#![expect(clippy::disallowed_methods, reason = "git as an oracle, and this very test binary to be killed")]

mod crash;
mod files;
mod golden;
mod places;
mod sample;
