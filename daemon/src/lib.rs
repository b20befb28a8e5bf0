//! The daemon.
pub mod artifact;
pub mod evidence;
pub mod failpoint;
pub mod process;
pub mod redact;
