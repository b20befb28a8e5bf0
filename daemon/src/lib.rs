//! The daemon.

pub mod agent;
