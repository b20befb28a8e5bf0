//! The files of a run in the target repository and in its run directory (DESIGN 10, artifacts.md 1; S4-029 to S4-042).
//!
//! Owns: where the files lie, what each holds, how each is written, the launch gate.
//! Invariant: every file is a projection of the store, except the plan that a planner or a human wrote; a projection that
//! fails is a warning and is tried again, never a failed run.
//! Invariant: each write is whole or not at all, also after a power cut: temporary file, fsync, rename, fsync of the folder;
//! appended lines are cut back to whole ones when a file is opened.
//! Does not: decide anything, read the store, import a plan (that is `harness-core::dag`).
//!
//! Everything here is synchronous and may block on the disk; callers use a blocking task.

mod atomic;
mod gate;
mod lessons;
mod lines;
mod paths;
mod project;
mod rotate;
mod writer;

pub use atomic::{FileError, remove_leftovers, remove_synced, write_atomic};
pub use gate::{Gate, GateDecision, GateFacts, Presence, decide, read_facts};
pub use lessons::append_lessons;
pub use lines::{LineError, LineLog, last_seq};
pub use paths::{FileName, Layout, LayoutError, ReportName};
pub use project::{DaemonIdentity, ProjectContext, project, report_bytes, runtime_status, tasks_value};
pub use rotate::rotate;
pub(crate) use writer::read;
pub use writer::{ArtifactWriter, Edits, WriteSummary};

#[cfg(test)]
mod tests;
