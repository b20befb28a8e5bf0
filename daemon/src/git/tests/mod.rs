//! Tests of the git module with real git: what repositories are, trees, candidates, landing, kills.

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(
    clippy::disallowed_methods,
    reason = "git as an oracle, shells that play the user, and this test binary to be killed"
)]

mod candidates;
mod case;
mod kills;
mod landing;
mod landing_places;
mod mirrors;
mod repositories;
mod trees;
