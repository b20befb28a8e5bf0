//! The daemon.

pub mod api;
