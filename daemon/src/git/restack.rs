//! Accepted commits are built anew, in order, on the commits a user made on the target branch meanwhile.

use super::candidate::{Author, Identity, Merge};
use super::error::GitError;
use super::mirror::Mirror;
use super::oid::Oid;
use crate::failpoint;

/// What is restacked.
#[derive(Debug, Clone)]
pub struct RestackRequest {
    /// The parent of the first commit.
    pub old_base: Oid,
    /// The commits, oldest first, each the parent of the next.
    pub commits: Vec<Oid>,
    /// Where they go.
    pub onto: Oid,
    /// Who commits; authors and messages stay.
    pub committer: Identity,
    /// The committer date in seconds, so that a repeat gives the same ids.
    pub at_unix: i64,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restack {
    /// All are built; the last is the new tip. Evidence is due at the tip.
    Rebuilt {
        /// One id per commit, in order; a commit the new base has already keeps the id before it.
        commits: Vec<Oid>,
        /// The tree of the tip.
        tree: Oid,
    },
    /// One does not go on; nothing is named, nothing lost.
    Conflicted {
        /// Its index in the request.
        at_index: usize,
        /// The paths, lossy.
        paths: Vec<String>,
        /// A submodule is among them.
        submodule: bool,
    },
}

impl Mirror {
    /// Builds commits anew on another base. Repeatable: the same request gives the same ids.
    pub fn restack(&self, req: &RestackRequest) -> Result<Restack, GitError> {
        self.guard()?;
        let (mut parent, mut tip) = (req.old_base.clone(), req.onto.clone());
        let mut commits = Vec::new();
        for (at_index, commit) in req.commits.iter().enumerate() {
            let tree = match self.merge(&parent, &tip, commit)? {
                Merge::Clean(tree) => tree,
                Merge::Conflict { paths, submodule } => {
                    return Ok(Restack::Conflicted { at_index, paths, submodule });
                }
            };
            if tree != self.tree_of(&tip)? {
                let old = self.commit_object(commit)?;
                let author = Author::of(&old, &req.committer, req.at_unix);
                failpoint::hit("git.restack.commit.before");
                tip = self.commit_tree(&tree, &tip, author, &req.committer, req.at_unix, &old.message)?;
                failpoint::hit("git.restack.commit.after");
            }
            commits.push(tip.clone());
            parent = commit.clone();
        }
        let tree = self.tree_of(&tip)?;
        Ok(Restack::Rebuilt { commits, tree })
    }
}
