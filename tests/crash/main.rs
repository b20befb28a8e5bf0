//! Killed at every named point, at random and in every stage of an attempt, a run goes on by itself and keeps its promises
//! (DESIGN 1 P2, style 3.4, reliability.md T1).
//!
//! Read in this order: `scene` (a repository, an agent and what a user types), `drive` (what a user types, also when the daemon
//! dies under it), `truths` (the oracle), then the tests `points`, `stages`, `storm`.

#![cfg(feature = "failpoints")]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

mod drive;
mod pool;
mod scene;
mod truths;

mod points;
mod stages;
mod storm;
