//! The control surface: HTTP/JSON over a Unix socket (DESIGN 11).
//!
//! Owns: the socket, who may talk, routes, bodies, streams, idempotency, how state is shown.
//! Does not: decide or store anything. Everything behind it is [`Control`].
//!
//! Architecture invariant: a mutation goes on when its connection breaks; a repeat with the same request id gets its answer.

mod control;
#[cfg(test)]
mod fake;
mod openapi;
mod peer;
mod reject;
mod requests;
mod router;
mod runs;
mod seam;
mod server;
mod stream;
#[cfg(test)]
mod tests;
mod view;
mod view_task;
#[cfg(test)]
mod view_tests;

pub use peer::{Ancestry, PeerRefusal};
pub use router::{App, router};
pub use seam::{Answer, Control, Notice, Recorded, Selector, TaskVerb};
pub use server::{ApiError, Limits, bind, serve};
pub use view::{Paths, ViewFacts, recovery_object, run_view};
pub use view_task::task_view;
