//! The agents that take a turn.

pub mod offline;
