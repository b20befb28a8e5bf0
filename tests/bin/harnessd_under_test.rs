//! The real daemon as a binary of the test crate, so that tests know where it is (`CARGO_BIN_EXE_harnessd_under_test`).
//!
//! It is also the launcher and the offline agent, as the shipped binary is: both are hidden subcommands of the running program.

use std::process::ExitCode;

fn main() -> ExitCode {
    harnessd::entry()
}
