//! Agents as real processes: the app-server peer in all its failure modes, and `command` programs.
#![expect(clippy::unwrap_used, reason = "tests")]

mod codex_course;
mod codex_faults;
mod codex_sessions;
mod command;
mod support;
