//! The daemon.
pub mod artifact;
pub mod failpoint;
pub mod process;
