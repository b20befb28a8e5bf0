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
    Problem::new(code, error.to_string()).why(causes(error)).next(error.next())
}

/// A refusal because of the repository.
pub(in crate::runtime) fn git_problem(error: &GitError) -> Problem {
    let (detail, why, next) = match error {
        GitError::NotARepository { path } if !path.exists() => {
            let next = format!("mkdir -p {0} && git init {0} && git -C {0} commit --allow-empty -m begin", shell(path));
            (format!("`{}` does not exist", path.display()), "the path of a repository is needed".to_owned(), next)
        }
        GitError::NotARepository { path } if !path.is_dir() => (
            format!("`{}` is no folder", path.display()),
            "the path of a repository is needed".to_owned(),
            "harnessctl list --all".to_owned(),
        ),
        GitError::NotARepository { .. } => {
            let why = "work lands as commits; `create-launch --init-git` makes a repository of a folder";
            (error.to_string(), format!("{why} ({})", error.code()), error.next())
        }
        _ => (error.to_string(), format!("{} ({})", causes(error), error.code()), error.next()),
    };
    Problem::new("REPO_UNUSABLE", detail).why(why).next(next)
}

/// A path as a shell takes it.
fn shell(path: &std::path::Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}

/// Everything behind an error; the error itself when nothing is.
fn causes(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), chain)
}

/// A refusal because of the agent.
pub(super) fn agent_problem(error: &PreflightError) -> Problem {
    Problem::new("AGENT_MISSING", error.to_string())
        .why(causes(error))
        .next("install it, or name it with --codex-bin or --agent")
}

/// A refusal because of a file or folder.
pub(super) fn io_problem(what: &str, error: &dyn std::error::Error) -> Problem {
    Problem::new("IO", what.to_owned()).why(chain(error)).next("check permissions and free space, then try again")
}
