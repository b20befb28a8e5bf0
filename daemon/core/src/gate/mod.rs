//! The gate: a pure function from policy, evidence and verdict to pass (no blockers) or named blockers (DESIGN 8; S4-023, S4-024).
//!
//! Invariant: no report, however confident, makes up for failed or missing evidence (DESIGN P1).
//! Invariant: codes are stable; each has a row in `harness_proto::explain`.

mod evidence;
mod paths;
mod rules;

pub use evidence::{evidence_blockers, expected_checks, unproven};
pub use paths::{HARNESS_FILES, glob_matches, path_blockers};
pub use rules::{Blocker, CODES, GateInput, criterion_place, gate, tree_blockers};

#[cfg(test)]
mod tests;
