//! The client as a stranger types it: every refusal in three lines with a next command, every exit code of the table (ux.md 3, 9, 10).

#![expect(clippy::unwrap_used, reason = "tests")]
#![expect(clippy::print_stderr, reason = "a skipped test must be seen")]

mod daemons;
mod launching;
mod looking;
mod places;
mod plans;
mod said;
mod typing;
