//! What can go wrong with git, kept apart by who has to do something about it.

use std::path::PathBuf;

use super::command::{GitVersion, MINIMUM};
use super::oid::Oid;

/// A failure of a git operation; a conflict or a moved branch is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// Git itself failed; nothing is known about the question that was asked.
    #[error("`git {command}` failed with exit {exit:?}: {stderr}")]
    Infrastructure {
        /// Subcommand and arguments, shortened.
        command: String,
        /// Exit code; `None` when a signal ended it.
        exit: Option<i32>,
        /// The last part of its standard error.
        stderr: String,
    },
    /// The command was killed at its deadline.
    #[error("`git {command}` was killed after {seconds} s")]
    Timeout {
        /// Subcommand and arguments, shortened.
        command: String,
        /// The deadline in seconds.
        seconds: u64,
    },
    /// The command printed more than it may.
    #[error("`git {command}` printed more than {limit} bytes")]
    OutputTooLarge {
        /// Subcommand and arguments, shortened.
        command: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// Git could not be started.
    #[error("cannot start `git {command}`")]
    Spawn {
        /// Subcommand and arguments, shortened.
        command: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A file or folder could not be read or written.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried, as an infinitive.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Git answered with something this version does not understand.
    #[error("cannot understand the answer of `git {command}`: {detail}")]
    Unreadable {
        /// Subcommand.
        command: String,
        /// What was not understood.
        detail: String,
    },
    /// The folder is in no git repository.
    #[error("`{}` is not a git repository", path.display())]
    NotARepository {
        /// The folder that was asked about.
        path: PathBuf,
    },
    /// The repository belongs to another user and git refuses to read it.
    #[error("`{}` belongs to another user", path.display())]
    NotYours {
        /// The folder that was asked about.
        path: PathBuf,
    },
    /// The repository has no checkout.
    #[error("`{}` is a bare repository", path.display())]
    Bare {
        /// The repository.
        path: PathBuf,
    },
    /// The repository is a partial clone: objects are fetched when first read, which nothing unattended can rely on.
    #[error("`{}` is a partial clone", path.display())]
    Partial {
        /// The repository.
        path: PathBuf,
    },
    /// The branch has no commit yet.
    #[error("branch `{branch}` has no commit yet")]
    Unborn {
        /// Short name of the branch.
        branch: String,
    },
    /// HEAD names a commit, not a branch, so that there is nothing to land on.
    #[error("HEAD is detached at {commit}")]
    DetachedHead {
        /// The commit.
        commit: Oid,
    },
    /// The target branch does not exist.
    #[error("there is no branch `{branch}`")]
    MissingTarget {
        /// Short name of the branch.
        branch: String,
    },
    /// A commit is in neither repository (for example cut off by a shallow clone).
    #[error("commit {commit} does not exist here")]
    MissingCommit {
        /// The commit.
        commit: Oid,
    },
    /// A branch that was to be created is there already.
    #[error("branch `{branch}` exists already at another commit")]
    BranchExists {
        /// Short name of the branch.
        branch: String,
    },
    /// A name cannot be used in a ref.
    #[error("`{name}` cannot be part of a ref name")]
    BadName {
        /// The name.
        name: String,
    },
    /// The mirror was made for another object format.
    #[error("the mirror `{}` has another object format than its repository", path.display())]
    FormatMismatch {
        /// The mirror.
        path: PathBuf,
    },
    /// Git is older than harness needs.
    #[error("git {found} is older than {MINIMUM}")]
    TooOld {
        /// The version that was found.
        found: GitVersion,
    },
    /// The caller could not record durably that landing starts; nothing was touched.
    #[error("cannot record that the landing starts")]
    Record {
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl GitError {
    /// The stable symbolic code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Infrastructure { .. } => "git_failed",
            Self::Timeout { .. } => "git_timeout",
            Self::OutputTooLarge { .. } => "git_output_too_large",
            Self::Spawn { .. } => "git_missing",
            Self::Io { .. } => "git_io",
            Self::Unreadable { .. } => "git_unreadable",
            Self::NotARepository { .. } => "not_a_repository",
            Self::NotYours { .. } => "repository_not_yours",
            Self::Bare { .. } => "bare_repository",
            Self::Partial { .. } => "partial_clone",
            Self::Unborn { .. } => "unborn_branch",
            Self::DetachedHead { .. } => "detached_head",
            Self::MissingTarget { .. } => "missing_branch",
            Self::MissingCommit { .. } => "missing_commit",
            Self::BranchExists { .. } => "branch_exists",
            Self::BadName { .. } => "bad_ref_name",
            Self::FormatMismatch { .. } => "object_format_mismatch",
            Self::TooOld { .. } => "git_too_old",
            Self::Record { .. } => "landing_not_recorded",
        }
    }

    /// The next step, as a command where there is one.
    pub fn next(&self) -> String {
        match self {
            Self::NotARepository { path } => {
                format!("git init {0} && git -C {0} commit --allow-empty -m begin", quoted(path))
            }
            Self::NotYours { path } => {
                format!("git config --global --add safe.directory {}", quoted(path))
            }
            Self::Bare { path } => {
                format!("git clone {} <folder>, then use that folder", quoted(path))
            }
            Self::Partial { path } => {
                format!("git -C {} fetch --refetch --no-filter", quoted(path))
            }
            Self::Unborn { .. } => "git commit --allow-empty -m 'first commit' (or pass --init-git)".to_owned(),
            Self::DetachedHead { .. } => "git switch -c <branch> (or pass --branch <branch>)".to_owned(),
            Self::MissingTarget { branch } => {
                format!("git branch {branch} (or pass another --branch)")
            }
            Self::MissingCommit { .. } => "git fetch --unshallow".to_owned(),
            Self::BranchExists { branch } => format!("pass another --branch than {branch}"),
            Self::TooOld { .. } => {
                format!("install git {MINIMUM} or newer, then harnessctl doctor")
            }
            Self::Spawn { .. } => "install git and put it on PATH, then harnessctl doctor".to_owned(),
            Self::BadName { .. } => "use another name".to_owned(),
            Self::Infrastructure { .. }
            | Self::Timeout { .. }
            | Self::OutputTooLarge { .. }
            | Self::Io { .. }
            | Self::Unreadable { .. }
            | Self::FormatMismatch { .. }
            | Self::Record { .. } => "harnessctl doctor".to_owned(),
        }
    }

    /// Builds the `map_err` argument for an I/O operation on `path`.
    pub(super) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

fn quoted(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or_else(|_| text.clone(), std::borrow::Cow::into_owned)
}
