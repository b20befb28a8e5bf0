//! The built-in `offline` agent: deterministic, no key, no network.
//!
//! It runs as a child process, `harnessd offline-agent [--faults RULES]`, under the same launcher and walls as any
//! `command` agent: one turn specification on stdin, one report (or one failure) on stdout.
//! It plans, writes and checks small Python command-line tools within a fixed grammar ([`goal`]), for real: the code is
//! generated for the goal at hand, comes with tests, and the verifier runs both.
//! What is outside the grammar is a failed turn that says so (readings 000-10).
//!
//! Deliberately absent: git (the runtime commits), clocks and randomness (the same turn gives the same bytes), async.
//!
//! Requires `python3` 3.9 or newer on PATH; without it every turn fails with a message that says so.

pub mod fault;
pub mod goal;

mod criteria;
mod entry;
mod implementer;
mod part;
mod planner;
mod probe;
mod python;
mod render;
mod replan;
mod session;
mod step;
mod turn;
mod verifier;

pub use entry::main;
