//! Agents: one turn in, one report or one typed failure out (DESIGN 7).
//!
//! Owns: the adapters `codex`, `command` and `offline`, their live sessions, deadlines of a turn, transcripts.
//! Does not: decide what a turn is for, judge a report beyond its schema, touch git or the store.
//! Invariants: a turn always ends within its limits; after it no process of the turn lives but a kept session of an
//! agent that can take a second turn; nothing an agent writes can make more than a bounded amount of memory or disk used.
//!
//! Read in this order: `kind`, `turn`, `pool`, `codex`, `command`; `offline` is a program of its own.

mod answer;
mod codex;
mod command;
mod kind;
mod launch;
mod lines;
pub mod offline;
mod pool;
mod preflight;
mod transcript;
mod turn;
mod watch;
pub use kind::{AgentKind, AgentKindError};
pub use pool::Agents;
pub use preflight::{AgentFacts, PreflightError, preflight};
pub use turn::{OnProcess, StopSignal, TurnResult, TurnSpec};
