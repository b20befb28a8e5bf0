//! A trial becomes a candidate: one commit on the integration head, made without any checkout.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use super::command::Git;
use super::error::GitError;
use super::mirror::Mirror;
use super::oid::Oid;
use super::parse::{self, Change, CommitObject, GITLINK};
use crate::failpoint;

/// Who commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Name.
    pub name: String,
    /// E-mail address.
    pub email: String,
}

/// Author fields of a commit that is being built, as bytes, because old commits may hold any.
#[derive(Debug, Clone)]
pub(super) struct Author {
    name: Vec<u8>,
    email: Vec<u8>,
    date: String,
}

impl Identity {
    /// This identity as an author at a date in git's `@<seconds> <zone>` form.
    pub(super) fn author(&self, date: &str) -> Author {
        Author { name: self.name.clone().into_bytes(), email: self.email.clone().into_bytes(), date: date.to_owned() }
    }
}

impl Author {
    /// The author of an existing commit; a nameless or undated one (agents can write such) becomes the fallback.
    pub(super) fn of(commit: &CommitObject, fallback: &Identity, at_unix: i64) -> Self {
        let usable = |b: &&u8| {
            !matches!(b, b'\0' | b'\n' | b'<' | b'>' | b' ' | b'.' | b',' | b':' | b';' | b'"' | b'\\' | b'\'')
        };
        let dated = commit.author_date.split(' ').next().is_some_and(|s| s.parse::<u64>().is_ok());
        let mut author = fallback.author(&format!("@{at_unix} +0000"));
        if commit.author_name.iter().any(|b| usable(&b)) && !commit.author_name.contains(&0) {
            author.name.clone_from(&commit.author_name);
            author.email.clone_from(&commit.author_email);
            author.email.retain(|b| *b != 0);
        }
        if dated {
            author.date = format!("@{}", commit.author_date);
        }
        author
    }
}

/// What a candidate is built from.
#[derive(Debug, Clone)]
pub struct CandidateRequest {
    /// The integration head it goes on.
    pub head: Oid,
    /// The commit the attempt started from.
    pub base: Oid,
    /// The attempt's last commit.
    pub trial: Oid,
    /// Who commits; the author is the trial's.
    pub committer: Identity,
    /// The whole message: subject, body, trailers.
    pub message: String,
    /// The committer date in seconds, from the input that decided it, so that a repeat gives the same id.
    pub at_unix: i64,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Candidate {
    /// A commit on the head; it is named nowhere yet.
    Built {
        /// Its id.
        commit: Oid,
        /// Its tree.
        tree: Oid,
        /// Paths it changes on the head.
        changed: Vec<Change>,
    },
    /// The change and the head do not go together.
    Conflicted {
        /// The paths, lossy, in order, each once.
        paths: Vec<String>,
        /// A submodule is among them: only the user can solve that.
        submodule: bool,
    },
    /// The trial's tree is the base's tree.
    NoChange,
    /// There is a change, but the head has all of it.
    AlreadyApplied {
        /// The head.
        head: Oid,
    },
}

/// The answer of a merge of two trees.
pub(super) enum Merge {
    Clean(Oid),
    Conflict { paths: Vec<String>, submodule: bool },
}

impl Mirror {
    /// Builds the candidate of an attempt. Repeatable: the same request gives the same answer and id.
    ///
    /// Errors: [`GitError::MissingCommit`], [`GitError::Infrastructure`]; a conflict is an answer.
    pub fn build_candidate(&self, req: &CandidateRequest) -> Result<Candidate, GitError> {
        self.guard()?;
        let head_tree = self.tree_of(&req.head)?;
        if self.tree_of(&req.trial)? == self.tree_of(&req.base)? {
            return Ok(Candidate::NoChange);
        }
        let tree = match self.merge(&req.base, &req.head, &req.trial)? {
            Merge::Conflict { paths, submodule } => {
                return Ok(Candidate::Conflicted { paths, submodule });
            }
            Merge::Clean(tree) => tree,
        };
        if tree == head_tree {
            return Ok(Candidate::AlreadyApplied { head: req.head.clone() });
        }
        let trial = self.commit_object(&req.trial)?;
        let author = Author::of(&trial, &req.committer, req.at_unix);
        failpoint::hit("git.candidate.commit.before");
        let commit = self.commit_tree(&tree, &req.head, author, &req.committer, req.at_unix, req.message.as_bytes())?;
        failpoint::hit("git.candidate.commit.after");
        let changed = self.changes(&req.head, &commit)?;
        Ok(Candidate::Built { commit, tree, changed })
    }

    /// Applies the change `base..theirs` to `ours` as trees, with the attributes of `ours`.
    pub(super) fn merge(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<Merge, GitError> {
        failpoint::hit("git.merge.before");
        let out = self
            .git()
            .global(format!("--attr-source={ours}"))
            .args(["merge-tree", "--write-tree", "-z", "--no-messages", &format!("--merge-base={base}")])
            .args([ours.as_str(), theirs.as_str()])
            .allow(&[0, 1])
            .run()?;
        failpoint::hit("git.merge.after");
        let (tree, conflicts) = parse::merge_tree(&out.stdout).ok_or_else(|| GitError::Unreadable {
            command: "merge-tree".to_owned(),
            detail: format!("{base} {ours} {theirs}"),
        })?;
        if out.code == 0 {
            return Ok(Merge::Clean(tree));
        }
        let submodule = conflicts.iter().any(|(mode, _)| mode == GITLINK);
        let mut paths: Vec<String> = conflicts.iter().map(|(_, p)| String::from_utf8_lossy(p).into_owned()).collect();
        paths.sort();
        paths.dedup();
        Ok(Merge::Conflict { paths, submodule })
    }

    /// Reads a commit object.
    pub(super) fn commit_object(&self, commit: &Oid) -> Result<CommitObject, GitError> {
        let out = self.git().args(["cat-file", "commit", commit.as_str()]).run()?;
        parse::commit_object(&out.stdout)
            .ok_or_else(|| GitError::Unreadable { command: "cat-file commit".to_owned(), detail: commit.to_string() })
    }

    /// Writes a commit with one parent.
    pub(super) fn commit_tree(
        &self,
        tree: &Oid,
        parent: &Oid,
        author: Author,
        committer: &Identity,
        at_unix: i64,
        message: &[u8],
    ) -> Result<Oid, GitError> {
        let message: Vec<u8> = message.iter().copied().filter(|b| *b != 0).collect();
        let git: Git = self.git();
        let out = git
            .env("GIT_AUTHOR_NAME", OsString::from_vec(author.name))
            .env("GIT_AUTHOR_EMAIL", OsString::from_vec(author.email))
            .env("GIT_AUTHOR_DATE", author.date)
            .env("GIT_COMMITTER_NAME", &committer.name)
            .env("GIT_COMMITTER_EMAIL", &committer.email)
            .env("GIT_COMMITTER_DATE", format!("@{at_unix} +0000"))
            .args(["commit-tree", "-p", parent.as_str(), "-F", "-", tree.as_str()])
            .stdin(message)
            .run()?;
        Oid::parse(&out.line())
            .ok_or_else(|| GitError::Unreadable { command: "commit-tree".to_owned(), detail: out.line() })
    }
}
