//! The launcher, walls and tree kill, with real processes.
#![expect(clippy::unwrap_used, reason = "tests")]

mod basics;
mod escapes;
mod flood;
mod orphans;
mod support;
mod tree;
mod walls;
mod world;
