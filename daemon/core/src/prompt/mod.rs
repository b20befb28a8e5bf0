//! What agents are asked (S4-050; artifacts.md 11). Constant templates filled with facts of one turn, every part capped.
//!
//! Invariant: no path of the user's repository is in any prompt (corrections 26); the plan folder is the literal [`PLAN_DIR`], which
//! the shell replaces by the folder that it made for the turn.
//! Invariant: text of the repository, of plans and of other agents is set between marks and called data.
//! Invariant: the last JSON object of a prompt that has a `role` is the filled-in example of the report.

mod context;
mod implementer;
mod parts;
mod planner;
mod repair;
mod verifier;

pub use context::{attempt_context, planner_context};
pub use implementer::implementer_prompt;
pub use parts::{PLAN_DIR, Prompt};
pub use planner::planner_prompt;
pub use repair::{handover, repair_prompt};
pub use verifier::verifier_prompt;

#[cfg(test)]
mod tests;
