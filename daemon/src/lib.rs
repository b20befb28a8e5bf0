//! The daemon.

pub mod agent;
pub mod failpoint;
pub mod process;
