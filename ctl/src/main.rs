//! `harnessctl`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(harnessctl::run(std::env::args_os().collect()))
}
