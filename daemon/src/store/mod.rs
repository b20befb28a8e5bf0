//! The store: one SQLite file that is the authority for every run, and the queue that runs are claimed from (DESIGN 5).
//!
//! Owns: the schema (`migrations/`), every SQL text of the daemon, the one writer, the readers.
//! Does not: decide anything about a run; `commit_step` writes what `step` decided, in one transaction under the fence.
//!
//! Rules of sqlx that hold here (deps.md "sqlx rules", each shown by a test):
//! 1. Never `fetch_one` or `fetch_optional` a write: `fetch_all` inside an explicit transaction.
//! 2. Connections of the pool are checked after release.
//! 3. A cancelled commit has an unknown outcome, so no caller can cancel one: see `writer`.
//! 4. One writer, `BEGIN IMMEDIATE` always; readers are `query_only`.
//! 5. The plans of the queue's statements are pinned: covering partial index, `INDEXED BY`, literal state.
//! 6. Statements are `const` texts; a test prepares each on a fresh database.
//!
//! Read in this order: `handle`, `writer`, `commit`, `lease`, `load`, then the table that you need.

/// Names SQL texts and lists them for the test that prepares each.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)*) => {
        $($(#[$doc])* pub(super) const $name: &str = $sql;)*
        /// Every statement of this file.
        #[cfg(test)]
        pub(super) const STATEMENTS: &[(&str, &str)] = &[$((stringify!($name), $name)),*];
    };
}

mod check;
mod commit;
mod error;
mod handle;
mod history;
mod lease;
mod load;
mod open;
mod prepared;
mod processes;
mod read;
mod requests;
mod rows;
mod runs;
mod writer;

#[cfg(test)]
mod tests;

pub use check::CheckReport;
pub use error::{CommitError, StoreError};
pub use handle::{Committed, Store};
pub use history::StoredInput;
pub use lease::{Claimed, Queue};
pub use load::LoadedRun;
pub use processes::ProcessRow;
pub use read::{IncidentRow, LandingRow, QueueLengths, ReportRow, StoredTurn, UsageSum};
pub use requests::{RequestKey, RequestState};
pub use runs::{NewRun, QueueState, Registration, RepoKey, RunFilter, RunName, RunRow};

/// Name of the database in the state directory.
pub const DATABASE: &str = "harness.db";
