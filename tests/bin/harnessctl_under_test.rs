//! The real client as a binary of the test crate, so that tests know where it is (`CARGO_BIN_EXE_harnessctl_under_test`).

use std::process::ExitCode;

fn main() -> ExitCode {
    harnessctl::entry()
}
