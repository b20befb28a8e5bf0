//! Whole runs as unit tests: one promise each, friendly answers where nothing else is said.
#![expect(clippy::unwrap_used, reason = "tests")]

mod bench;
mod faults;
mod flow;
mod landing;
mod plans;
