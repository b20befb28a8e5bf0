//! What tests with the real programs stand on: an environment of their own, the daemon as a process, three truths to look at.
//!
//! Nothing here is a stand-in: real git, real SQLite files, the real binaries (`tests/bin`).
//! Read in this order: `env`, `repo`, `daemon`, then the truths `store`, `snapshot`, `processes`, and `oracle`, which asks all three.

mod daemon;
mod env;
mod oracle;
mod processes;
mod repo;
mod snapshot;
mod store;
mod wait;

pub use daemon::{Daemon, Failpoint};
pub use env::{Finished, TestEnv};
pub use oracle::{check_landed, check_run};
pub use processes::{Living, living};
pub use repo::RepoKind;
pub use snapshot::Snapshot;
pub use store::Store;
pub use wait::{BROKEN, wait_for};

#[cfg(test)]
mod tests;
