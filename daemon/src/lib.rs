//! The shell of harness: everything that touches the outside world on behalf of the pure engine.
//!
//! Layers, strictly downward: `main`/`boot` → `api` → `runtime` → `store`, `git`, `agent`, `evidence`, `artifact` → `process` →
//! `config`, `clock`, `tasks`, `telemetry`. `runtime` is the only caller of `harness_core::supervisor::step`.

pub mod agent;
pub mod api;
pub mod artifact;
pub mod boot;
pub mod clock;
pub mod config;
pub mod evidence;
pub mod failpoint;
pub mod git;
pub mod process;
pub mod redact;
pub mod runtime;
pub mod store;
pub mod tasks;
pub mod telemetry;

use std::ffi::OsString;
use std::process::ExitCode;

/// The whole program: launcher stages and the `offline` agent first, before any thread or async runtime exists.
#[must_use]
pub fn entry() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = process::launcher::dispatch(&args) {
        return code;
    }
    if args.get(1).is_some_and(|word| word == "offline-agent") {
        return agent::offline::main(&args[2..]);
    }
    boot::main(&args)
}
