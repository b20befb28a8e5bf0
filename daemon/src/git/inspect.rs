//! What an attempt left behind, read without believing anything an agent could write.
//!
//! HEAD is read as a file; the index of the tree is ignored (it may hide changes behind flags) and built anew from
//! HEAD; nested repositories are never entered, because git would run programs their configuration names.

use std::collections::BTreeSet;
use std::path::Path;

use super::candidate::Identity;
use super::command::Git;
use super::durable;
use super::error::GitError;
use super::files;
use super::mirror::Mirror;
use super::oid::Oid;
use super::parse::{self, Change, GITLINK};
use super::tree::Tree;
use crate::failpoint;

/// How much of an agent's HEAD is read.
const HEAD_LIMIT: u64 = 4096;

/// One commit of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitFacts {
    /// Its id.
    pub id: Oid,
    /// Its first line.
    pub subject: String,
}

/// Something odd in a tree that does not keep it from being inspected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// HEAD names a branch; the commit it is at was taken.
    HeadNotDetached {
        /// The full name.
        name: String,
    },
    /// HEAD could not be used; the base was taken, all files count as leftover.
    HeadUnreadable,
    /// Objects in the mirror whose content was not what their id says; they were removed.
    ForgedObjects {
        /// Ids, or names of packs.
        names: Vec<String>,
    },
    /// Repositories inside the tree; their files are not part of the work.
    NestedRepositories {
        /// Where.
        paths: Vec<String>,
    },
}

impl Finding {
    /// The stable symbolic code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::HeadNotDetached { .. } => "head_not_detached",
            Self::HeadUnreadable => "head_unreadable",
            Self::ForgedObjects { .. } => "forged_objects",
            Self::NestedRepositories { .. } => "nested_repositories",
        }
    }
}

/// The facts about an attempt's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFacts {
    /// The commit HEAD is at.
    pub head: Oid,
    /// Whether the base is an ancestor of it.
    pub head_descends_from_base: bool,
    /// The commits from the base to HEAD, oldest first.
    pub commits: Vec<CommitFacts>,
    /// The net change from the base to the files as they are, leftover included.
    pub changed: Vec<Change>,
    /// Whether the files differ from HEAD (changed or untracked, ignored files do not count).
    pub leftover: bool,
    /// The tree object of the files as they are.
    pub files: Oid,
    /// Author of HEAD, as `name <e-mail>`.
    pub author: String,
    /// What was odd.
    pub findings: Vec<Finding>,
}

impl Mirror {
    /// Answers what is in a tree, against the commit it was made from. Writes only objects.
    ///
    /// Nobody else may work in the tree meanwhile. `scratch` is a folder of the caller for a private index.
    pub fn inspect(&self, tree: &Tree, base: &Oid, scratch: &Path) -> Result<TreeFacts, GitError> {
        let mut findings = Vec::new();
        let names = self.remove_forged()?;
        if !names.is_empty() {
            findings.push(Finding::ForgedObjects { names });
        }
        let head = self.head_of(tree, base, &mut findings)?;
        let files = self.snapshot(tree, &head, scratch, &mut findings)?;
        let range = format!("{base}..{head}");
        let log = self.git().args(["log", "-z", "--reverse", "--topo-order", "--format=%H%n%s", &range, "--"]).run()?;
        let commits = parse::log(&log.stdout)
            .ok_or_else(|| GitError::Unreadable { command: "log".to_owned(), detail: range.clone() })?;
        let author = self.commit_object(&head)?;
        Ok(TreeFacts {
            head_descends_from_base: self.is_ancestor(base, &head)?,
            commits: commits.into_iter().map(|(id, subject)| CommitFacts { id, subject }).collect(),
            changed: self.changes(base, &files)?,
            leftover: files != self.tree_of(&head)?,
            author: format!(
                "{} <{}>",
                String::from_utf8_lossy(&author.author_name),
                String::from_utf8_lossy(&author.author_email)
            ),
            head,
            files,
            findings,
        })
    }

    /// Commits what an agent left uncommitted on top of HEAD; `None` when there is nothing.
    ///
    /// The commit is named nowhere yet: the caller keeps it. The same files give the same id.
    pub fn commit_leftover(
        &self,
        tree: &Tree,
        base: &Oid,
        message: &str,
        who: &Identity,
        at_unix: i64,
        scratch: &Path,
    ) -> Result<Option<Oid>, GitError> {
        self.guard()?;
        let mut findings = Vec::new();
        let head = self.head_of(tree, base, &mut findings)?;
        let files = self.snapshot(tree, &head, scratch, &mut findings)?;
        if files == self.tree_of(&head)? {
            return Ok(None);
        }
        failpoint::hit("git.leftover.before");
        let date = format!("@{at_unix} +0000");
        let commit = self.commit_tree(&files, &head, who.author(&date), who, at_unix, message.as_bytes())?;
        failpoint::hit("git.leftover.after");
        Ok(Some(commit))
    }

    /// The commit an agent's HEAD is at, or the base when HEAD cannot be used.
    fn head_of(&self, tree: &Tree, base: &Oid, findings: &mut Vec<Finding>) -> Result<Oid, GitError> {
        let bytes = durable::read_suspect(&tree.git_dir.join("HEAD"), HEAD_LIMIT).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\n');
        let mut head = Oid::parse(text).filter(|h| h.as_str().len() == base.as_str().len());
        if let Some(name) = text.strip_prefix("ref:").map(str::trim) {
            head = self.branch_in_mirror(name)?;
            findings.push(Finding::HeadNotDetached { name: name.to_owned() });
        }
        match head {
            Some(head) if self.commit_exists(&head)? => Ok(head),
            _ => {
                findings.push(Finding::HeadUnreadable);
                Ok(base.clone())
            }
        }
    }

    fn branch_in_mirror(&self, name: &str) -> Result<Option<Oid>, GitError> {
        if !name.starts_with("refs/") || super::refs::check_name(name).is_err() {
            return Ok(None);
        }
        super::refs::read(&self.path, &self.env, name)
    }

    /// Writes the files of a tree as a tree object: everything tracked by `head`, plus what is untracked and not
    /// ignored; submodules stay as `head` has them, nested repositories stay out.
    fn snapshot(&self, tree: &Tree, head: &Oid, scratch: &Path, findings: &mut Vec<Finding>) -> Result<Oid, GitError> {
        durable::make_dir(scratch)?;
        let index = scratch.join("snapshot-index");
        let lock = scratch.join("snapshot-index.lock");
        durable::remove_file(&index)?;
        durable::remove_file(&lock)?;
        let git = || Git::isolated(&self.path, &self.env).work_tree(&tree.path).index(&index);
        git().args(["read-tree", head.as_str()]).run()?;
        let listed = git().args(["ls-files", "-v", "-s", "-z"]).run()?;
        let entries = parse::index_entries(&listed.stdout)
            .ok_or_else(|| GitError::Unreadable { command: "ls-files -s".to_owned(), detail: head.to_string() })?;
        let links: BTreeSet<Vec<u8>> = entries.iter().filter(|e| e.mode == GITLINK).map(|e| e.path.clone()).collect();
        let others = git().args(["ls-files", "--others", "--exclude-standard", "-z"]).run()?;
        let (nested, others): (Vec<_>, Vec<_>) =
            parse::names(&others.stdout).into_iter().partition(|p| p.ends_with(b"/"));
        let nested: Vec<String> = nested.iter().map(|p| String::from_utf8_lossy(p).into_owned()).collect();
        if !nested.is_empty() {
            findings.push(Finding::NestedRepositories { paths: nested });
        }
        let tracked = entries.into_iter().map(|e| e.path);
        let all = tracked.chain(others).filter(|p| !links.contains(p));
        let (there, gone): (Vec<_>, Vec<_>) = all.partition(|p| files::storable(&tree.path, p));
        failpoint::hit("git.snapshot.before");
        git().args(["update-index", "-z", "--force-remove", "--stdin"]).stdin(terminated(&gone)).run()?;
        git().args(["update-index", "-z", "--add", "--replace", "--stdin"]).stdin(terminated(&there)).run()?;
        let written = git().args(["write-tree"]).run()?.line();
        failpoint::hit("git.snapshot.after");
        durable::remove_file(&index)?;
        Oid::parse(&written).ok_or(GitError::Unreadable { command: "write-tree".to_owned(), detail: written })
    }
}

/// Paths as a command with `-z --stdin` reads them.
fn terminated(paths: &[Vec<u8>]) -> Vec<u8> {
    paths.iter().flat_map(|p| p.iter().copied().chain([0])).collect()
}
