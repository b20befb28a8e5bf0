//! The supervisor: [`step`] turns one input into rows, history and effects.
//!
//! The stages of an attempt and who leaves them:
//!
//! ```text
//! Preparing ─tree─▶ Setup ─commands─▶ Implementing ─report + facts─▶ Proving ─evidence─▶ Verifying
//!     verdict + gate ─▶ Building ─candidate─▶ (Reproving) ─▶ Advancing ─▶ done          any ─▶ revert ─▶ next attempt
//! ```
//!
//! A result moves an attempt to its next stage; the `pump` module alone decides whether the stage's effect is asked for now. So a
//! stopped, paused or restarted run goes on from its stage, and crash recovery is no path of its own.
//!
//! Deliberately absent: waiting, clocks, retries by loop. A delay is a `retry_at` that a `Tick` finds passed.

mod commands;
mod cx;
mod finishing;
mod implementing;
mod integrating;
mod landing;
mod planning;
mod pump;
mod recovery;
mod register;
mod step;
mod verifying;

pub use register::register;
pub use step::step;

#[cfg(test)]
mod tests;
