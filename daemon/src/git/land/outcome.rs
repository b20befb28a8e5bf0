//! What a landing is asked and what it answers.

use std::path::Path;

use crate::git::discover::RepoFacts;
use crate::git::error::GitError;
use crate::git::mirror::Mirror;
use crate::git::oid::Oid;

/// Records durably that a landing starts to change things; called at most once per [`super::land`].
pub type MarkStarted<'a> = &'a mut dyn FnMut() -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// One landing. After a crash the same request is made again with `started` as it was recorded.
pub struct LandRequest<'a> {
    /// The user's repository.
    pub repo: &'a RepoFacts,
    /// Its mirror, which holds `new`.
    pub mirror: &'a Mirror,
    /// The run.
    pub run: &'a str,
    /// Short name of the branch.
    pub target_branch: &'a str,
    /// Where the branch must be.
    pub old: Oid,
    /// Where it goes; a descendant of `old`.
    pub new: Oid,
    /// Whether an earlier call got as far as `mark_started`.
    pub started: bool,
    /// A folder of the caller for private index files, outside the user's repository.
    pub scratch: &'a Path,
    /// Records that the landing starts.
    pub mark_started: MarkStarted<'a>,
}

/// Why a landing waits; the next try may find it gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingReason {
    /// Files the landing changes have unstaged changes of the user.
    LocalChanges,
    /// Such paths have staged changes or are unmerged.
    Staged,
    /// Such paths are marked assume-unchanged or skip-worktree.
    Flagged,
    /// Untracked or ignored files are where new files go.
    InTheWay,
    /// Another git holds the index.
    IndexLocked,
    /// A merge, rebase, pick, revert or bisect is in progress in the checkout.
    OperationInProgress,
    /// A rebase or bisect elsewhere works on the branch.
    BranchBusy,
    /// The branch is checked out in a folder that is gone.
    CheckoutMissing,
    /// The branch is checked out twice.
    CheckedOutTwice,
    /// Two changed names differ only in case, on a file system that takes them for one.
    CaseCollision,
    /// A path turns from file to submodule or back.
    SubmoduleReplaced,
    /// After a crash in the middle, the user edited files that were still to be changed.
    EditedDuringLanding,
}

impl PendingReason {
    /// The stable symbolic code.
    pub fn code(self) -> &'static str {
        match self {
            Self::LocalChanges => "local_changes",
            Self::Staged => "staged_changes",
            Self::Flagged => "flagged_paths",
            Self::InTheWay => "files_in_the_way",
            Self::IndexLocked => "index_locked",
            Self::OperationInProgress => "operation_in_progress",
            Self::BranchBusy => "branch_busy",
            Self::CheckoutMissing => "checkout_missing",
            Self::CheckedOutTwice => "checked_out_twice",
            Self::CaseCollision => "case_collision",
            Self::SubmoduleReplaced => "submodule_replaced",
            Self::EditedDuringLanding => "edited_during_landing",
        }
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandOutcome {
    /// The branch has the commit.
    Landed {
        /// Files that were edited in the very moment of landing and kept; they now differ from the branch.
        kept_edits: Vec<String>,
    },
    /// It waits for the user; nothing of theirs was touched.
    Pending {
        /// Why.
        why: PendingReason,
        /// Which paths, lossy; for an operation in progress its name.
        paths: Vec<String>,
        /// What the user can run.
        command: String,
    },
    /// The branch is somewhere else and does not contain the commit.
    TargetMoved {
        /// Where.
        tip: Oid,
    },
}

/// How the steps end early.
pub(super) enum Stop {
    /// With an answer.
    Answer(LandOutcome),
    /// With a failure.
    Failed(GitError),
}

impl From<GitError> for Stop {
    fn from(error: GitError) -> Self {
        Self::Failed(error)
    }
}

impl Stop {
    /// A pending answer.
    pub(super) fn pending(why: PendingReason, paths: Vec<String>, command: String) -> Self {
        Self::Answer(LandOutcome::Pending { why, paths, command })
    }
}
