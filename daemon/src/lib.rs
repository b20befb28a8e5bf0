//! The daemon.
pub mod failpoint;
pub mod process;
//! The shell of harness: everything that touches the outside world on behalf of the pure engine.

pub mod git;
pub mod agent;
