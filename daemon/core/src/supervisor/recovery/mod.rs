//! What goes wrong: reverts, faults, lost and failed turns, blocked tasks (DESIGN 4, 12).
//!
//! Invariant: environment failures never cost an attempt. Invariant: every repeat is counted and bounded.

mod faults;
mod reverts;
mod turns;

pub(super) use faults::{environment, fault, internal, no_ready_tasks};
pub(super) use reverts::{block_task, blocked_by_gate, revert};
pub(super) use turns::{invalid_report, lost, planner_failed, turn_failed};
