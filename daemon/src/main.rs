//! The daemon's binary: the launcher stages come first, before any thread or runtime exists.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = harnessd::process::launcher::dispatch(&args) {
        return code;
    }
    ExitCode::SUCCESS
}
