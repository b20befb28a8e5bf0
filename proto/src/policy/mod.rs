//! The policy of a run: every tunable, in one table (DESIGN 3, profiles.md 2.1).
//!
//! Owns: keys, types, ranges, defaults per preset, meanings, and which behaviour is built.
//! `--set`, validation, `config show`, `docs/policy.md` and the core's typed policy all come from [`FIELDS`].

mod check;
mod doc;
mod field;
mod table;
#[cfg(test)]
mod tests;
mod validate;
mod value;
mod values;

pub use check::{CheckError, check_from_value, check_to_value};
pub use doc::markdown;
pub use field::{Built, Field, Kind, PRESETS, Preset};
pub use table::{ALIASES, FIELDS, field};
pub use value::show;
pub use values::{PolicyError, PolicyValues};
