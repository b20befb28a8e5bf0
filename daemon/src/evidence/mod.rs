//! Running setup and checks in a clean tree, walled, and keeping what they printed (DESIGN 8).
//!
//! Owns: how a check becomes a process, which environment it gets, how its end is told, where its output goes.
//! Invariant: fail closed. What cannot be run, told or kept is never a pass.
//! Invariant: nothing that a command does outlives it except files in the tree and in its TMPDIR; both are thrown away.
//! Does not: make trees, judge results (that is `harness-core`), or touch git.

mod collect;
mod command;
mod environment;
mod fingerprint;
mod output;
mod spec;

pub use collect::collect;
pub use environment::{agent_environment, allowed_environment};
pub use fingerprint::fingerprint;
pub use output::{OUTPUT_CAP_BYTES, TAIL_CHARS};
pub use spec::{Collected, EvidenceError, EvidenceSpec, ProcessNote, Restore};
