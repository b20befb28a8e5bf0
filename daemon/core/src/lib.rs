//! The pure engine of harness: every decision about a run, as functions of facts.
//!
//! Owns: [`step`](supervisor::step), the plan graph, the gate, classification, prompts, budgets, the audit of a state.
//!
//! Invariant: no clock, no randomness, no file, no process, no network, no thread. Time and facts come in as inputs.
//! Invariant: the same inputs give the same decisions (DESIGN P7); a stored run replays to the same events.
//!
//! Read in this order: `input`, `effect`, `state`, `supervisor`.

pub mod audit;
pub mod classify;
pub mod commit_message;
pub mod dag;
pub mod effect;
pub mod evidence;
pub mod gate;
pub mod input;
pub mod output;
pub mod policy;
pub mod prompt;
pub mod report_check;
pub mod signature;
pub mod state;
pub mod step;
pub mod supervisor;
pub mod tests_count;

#[cfg(test)]
pub(crate) mod fixtures;
