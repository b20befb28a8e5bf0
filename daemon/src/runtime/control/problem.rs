//! Errors of the shell as refusals: symbolic code, what, why, next command.

use harness_proto::error::Problem;

use crate::agent::PreflightError;
use crate::git::GitError;
use crate::store::StoreError;

/// The whole chain of causes in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// A refusal because of the store.
pub(in crate::runtime) fn store_problem(error: &StoreError) -> Problem {
    let code = match error {
        StoreError::UnknownRun(_) => "RUN_UNKNOWN",
        StoreError::Full(_) => "DISK_FULL",
        StoreError::Busy(_) => "BUSY",
        StoreError::Corrupt { .. } => "DB_DAMAGED",
        StoreError::NewerSchema { .. } => "SCHEMA_NEWER",
        _ => "INTERNAL",
    };
    Problem::new(code, error.to_string()).why(chain(error)).next(error.next())
}

/// A refusal because of the repository.
pub(super) fn git_problem(error: &GitError) -> Problem {
    Problem::new("REPO_UNUSABLE", error.to_string())
        .why(format!("{} ({})", chain(error), error.code()))
        .next(error.next())
}

/// A refusal because of the agent.
pub(super) fn agent_problem(error: &PreflightError) -> Problem {
    Problem::new("AGENT_MISSING", error.to_string())
        .why(chain(error))
        .next("install it, or name it with --codex-bin or --agent")
}

/// A refusal because of a file or folder.
pub(super) fn io_problem(what: &str, error: &dyn std::error::Error) -> Problem {
    Problem::new("IO", what.to_owned()).why(chain(error)).next("check permissions and free space, then try again")
}
