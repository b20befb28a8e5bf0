//! The documents beside a target repository's code, as types (artifacts.md 1; S4-031 to S4-037).
//!
//! Owns: the members of each file, how they are written, and how files of a predecessor or of a crashed write are read.
//! Invariant: what is written has 2-space indent, sorted keys, ASCII only and one newline at the end, byte for byte as
//! Python's `json.dumps(.., indent=2, sort_keys=True)` writes it, so that a rewrite without a change changes nothing.
//! Does not: touch files, or trust what it reads: these files are projections, the store is the authority.

pub mod launch;
mod lenient;
pub mod lessons;
mod render;
pub mod runtime;
pub mod servers;
pub mod state;

pub use launch::{ConfigDoc, LaunchDoc};
pub use lenient::DocError;
pub use lessons::LessonDoc;
pub use render::{render, render_value};
pub use runtime::{RuntimeDoc, RuntimeStatus};
pub use servers::{ServerDoc, ServersDoc};
pub use state::{ActiveTaskDoc, RecoveryDoc, StateBodyDoc, StateDoc};

/// `version` of every document.
pub const DOC_VERSION: i64 = 1;
/// `mode` of launch and state.
pub const DOC_MODE: &str = "harness";

#[cfg(test)]
mod tests;
