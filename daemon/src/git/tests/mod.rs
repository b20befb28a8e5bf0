//! Tests of the git module with real git: what repositories are, trees, candidates, landing, kills.

#![expect(clippy::unwrap_used, reason = "tests")]

mod candidates;
mod case;
mod kills;
mod landing;
mod landing_places;
mod mirrors;
mod repositories;
mod trees;
