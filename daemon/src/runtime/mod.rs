//! Drives runs: the only caller of `harness_core::supervisor::step`.
//!
//! One driver task owns one run. Everything that happens to the run comes through its mailbox, one thing at a time; a step is
//! stored before anything it asks for is done, and results come back through the same mailbox.
//!
//! ```text
//! control ─┐                    ┌─▶ store (one transaction) ─▶ effects ─┐
//! results ─┼─▶ mailbox ─▶ step ─┤                                       ├─▶ results
//! deadline ┘                    └─▶ projections (files)                 ┘
//! ```
//!
//! Deliberately absent: decisions. Whatever depends on the state of a run is in `harness-core`.

mod context;
mod control;
mod driver;
mod effects;
mod loops;
mod processes;
mod projector;
mod registry;
mod views;

pub use registry::{Runtime, RuntimeParts};
