//! The shell of harness: everything that touches the outside world on behalf of the pure engine.

pub mod failpoint;
pub mod store;
