//! The daemon.
pub mod failpoint;
pub mod process;
pub mod agent;
