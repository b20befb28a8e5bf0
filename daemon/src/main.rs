//! The daemon's binary: the launcher stages come first, before any thread or runtime exists.

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = harnessd::process::launcher::dispatch(&args) {
        return code;
    }
    if args.get(1).is_some_and(|word| word == "offline-agent") {
        return harnessd::agent::offline::main(&args[2..]);
    }
    ExitCode::SUCCESS
}
