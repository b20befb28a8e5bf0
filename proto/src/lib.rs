//! The words of harness as types, shared by the daemon and the client.
//!
//! Owns: ids, closed vocabularies with one text form each, the shapes of every file and message that leaves a process.
//! Does not: read or write anything, know a clock, decide. Decisions are in `harness-core`.
//!
//! Read in this order: `ids`, `vocab`, `plan`, `report`, `event`, then what you need.

pub mod ids;
pub mod vocab;

pub mod api;
pub mod blocker;
pub mod doc;
pub mod error;
pub mod event;
pub mod event_words;
pub mod exit;
pub mod explain;
pub mod place;
pub mod plan;
pub mod policy;
pub mod report;
