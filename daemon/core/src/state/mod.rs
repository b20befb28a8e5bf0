//! The state of one run, as rows: what is stored, and the indexes that are rebuilt from it.
//!
//! Invariant: [`RunState`] is changed by `step` only; the store writes the rows that `step` names.
//! Invariant: indexes (`ready`, `dependants`, `open_count`) follow from the rows; `audit` compares them.

mod attempt;
mod head;
mod run;
mod task;

pub use attempt::{Attempt, Stage};
pub use head::{Baseline, Brief, Counts, Hold, Incident, Landing, LastWords, Planner, Restacked, RunHead};
pub use run::RunState;
pub use task::{Feedback, Task};
