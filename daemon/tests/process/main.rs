//! The launcher, walls and tree kill, with real processes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod basics;
mod flood;
mod orphans;
mod support;
mod tree;
