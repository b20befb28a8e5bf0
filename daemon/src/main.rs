//! Entry of the daemon binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().collect();
    if args.get(1).is_some_and(|word| word == "offline-agent") {
        return harnessd::agent::offline::main(&args[2..]);
    }
    ExitCode::SUCCESS
}
