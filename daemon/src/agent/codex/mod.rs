//! The `codex` agent: `codex app-server`, JSON-RPC over stdio (measured with 0.171.0).
//!
//! `connection` moves frames, `session` is one process with one thread, `progress` follows a turn without I/O, `outcome`
//! turns its end into a report or a failure, `run` puts them together.
//!
//! Invariants: nothing but our thread's current turn can end a turn; nothing is trusted to answer (every wait ends at a
//! deadline or a stop); no process is kept after anything but a completed turn.

mod connection;
mod message;
mod meter;
mod outcome;
mod progress;
mod run;
mod session;

pub(super) use run::run;
pub(super) use session::Session;
