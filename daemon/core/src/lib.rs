//! The pure engine of harness: every decision about a run, as functions of facts.
//!
//! Owns: [`step`](supervisor::step), the plan graph, the gate, classification, prompts, budgets, the audit of a state.
//!
//! Invariant: no clock, no randomness, no file, no process, no network, no thread. Time and facts come in as inputs.
//! Invariant: the same inputs give the same decisions (DESIGN P7); a stored run replays to the same events.
//!
//! Read in this order: `input`, `effect`, `state`, `supervisor`.

pub mod dag;
pub mod effect;
pub mod evidence;
pub mod input;
pub mod policy;
pub mod state;
pub mod step;
