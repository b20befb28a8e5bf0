//! The shell of harness: everything that touches the outside world on behalf of the pure engine.
//!
//! Layers, strictly downward: `main`/`boot` → `api` → `runtime` → `store`, `git`, `agent`, `evidence`, `artifact` → `process` →
//! `config`, `clock`, `tasks`, `telemetry`. `runtime` is the only caller of `harness_core::supervisor::step`.

pub mod agent;
pub mod api;
pub mod artifact;
pub mod evidence;
pub mod failpoint;
pub mod git;
pub mod process;
pub mod redact;
pub mod store;
//! The daemon.
