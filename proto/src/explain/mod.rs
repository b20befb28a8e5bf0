//! What every symbolic code means and what to do about it: the text of `harnessctl explain CODE`.
//!
//! One row a code, in one table per part of the product. Codes are stable; adding one means adding a row.

mod control;
mod gate;
mod git;
mod lookup;
mod run;
mod store;

pub use lookup::{Explanation, all, explain};
