//! Evidence with real processes: every way to end, every kind of output, every way out of the tree.
#![expect(clippy::unwrap_used, reason = "tests")]

mod ends;
mod outputs;
mod support;
mod walls;
