//! Everything harness does with git, and the only place that starts it.
//!
//! The runtime never works inside the user's `.git`: each repository gets a bare mirror that borrows the
//! user's objects, and attempts are worktrees of that mirror with a detached HEAD. The user's checkout
//! changes only through [`land`].
//!
//! All functions block; callers on an async runtime wrap them.
//!
//! Invariant: no command here discovers a repository (except [`discover`]), runs a hook, asks a question,
//! or reads configuration from a place an agent can write.
//! Invariant: every change can be repeated from the top after a kill at any instruction.

mod candidate;
mod child;
mod command;
mod discover;
mod durable;
mod env;
mod error;
mod files;
mod forgery;
mod inspect;
mod land;
mod mirror;
mod oid;
mod parse;
mod refs;
mod restack;
mod setup;
mod tree;

#[cfg(test)]
mod testkit;
#[cfg(test)]
mod tests;

pub use candidate::{Candidate, CandidateRequest, Identity};
pub use command::{GitVersion, MINIMUM, OWNER_VARIABLE, own_children, version};
pub use discover::{ARTIFACT_NAMES, Head, RepoFacts, dirty, discover, discover_with};
pub use env::UserEnv;
pub use error::GitError;
pub use inspect::{CommitFacts, Finding, TreeFacts};
pub use land::{LandOutcome, LandRequest, MarkStarted, PendingReason, land};
pub use mirror::{Mirror, clear_stale_locks};
pub use oid::{ObjectFormat, Oid};
pub use parse::{Change, ChangeKind};
pub use refs::{Advance, Pin};
pub use restack::{Restack, RestackRequest};
pub use setup::{exclude_block, init_repository};
pub use tree::Tree;
