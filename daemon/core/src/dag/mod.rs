//! The plan graph: import of `tasks.json`, readiness, three-way merge of human edits, rendering (artifacts.md 1.6).
//!
//! Invariant: only an import changes topology, and only [`import`] and [`merge_user_edit`] make one (S4-021).
//! Invariant: status comes from the store; a plan can only ask to put a task back or to close it.

mod check;
mod graph;
mod import;
mod merge;
mod read;
mod render;
mod text;

pub use check::{check_from_text, check_from_value, check_to_value, escaping_path};
pub(crate) use graph::hex;
pub use graph::{naive_ready, topology_digest};
pub use import::{Import, ImportSource, import};
pub use merge::merge_user_edit;
pub use read::{PLAN_BYTES_MAX, TASKS_MAX};
pub use render::render_tasks_json;

#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod tests;
