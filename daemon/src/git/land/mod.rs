//! Landing: the only way anything reaches the user's branch and checkout.
//!
//! The recipe, repeatable from the top after a kill at any instruction: bring the objects over; look where the branch
//! is checked out; where it is not, a plain fast-forward; where it is: no operation in progress, take `index.lock` by
//! linking a file that names the landing, compare every changed path with the old commit, record that it starts,
//! stage the new files aside, swap them in one by one, replace the index, swap the ref, unlock.
//!
//! Invariant: no byte of the user's is overwritten or removed. A file is swapped out, looked at, and swapped back when
//! it is not the one that was compared. A lock that is not ours stays.

mod apply;
mod compare;
mod finish;
mod journal;
mod lock;
mod outcome;
mod place;
mod recipe;

pub use outcome::{LandOutcome, LandRequest, MarkStarted, PendingReason};
pub use recipe::land;
