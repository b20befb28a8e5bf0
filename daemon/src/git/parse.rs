//! Pure readers of what git prints with `-z`; bytes in, no I/O.

use serde::{Deserialize, Serialize};

use super::command::GitVersion;
use super::oid::Oid;

/// The mode of a submodule entry.
pub(super) const GITLINK: &str = "160000";
/// The mode of nothing.
pub(super) const ABSENT: &str = "000000";

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// New path.
    Added,
    /// Path is gone.
    Deleted,
    /// Other content or other permission.
    Modified,
    /// File became symlink, submodule, or the reverse.
    TypeChanged,
}

/// One changed path between two trees; renames are a deletion and an addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path for people: bytes that are no UTF-8 are replaced.
    pub path: String,
    /// The path as git stores it.
    pub raw: Vec<u8>,
    /// What happened.
    pub kind: ChangeKind,
    /// Six octal digits; `000000` when the path was absent.
    pub old_mode: String,
    /// Six octal digits; `000000` when the path is gone.
    pub new_mode: String,
    /// Old content; all zero when absent.
    pub old: Oid,
    /// New content; all zero when gone.
    pub new: Oid,
}

/// Reads `git version`.
pub(super) fn version(bytes: &[u8]) -> Option<GitVersion> {
    let text = std::str::from_utf8(bytes).ok()?;
    let numbers = text.strip_prefix("git version ")?;
    let mut parts = numbers.split(|c: char| !c.is_ascii_digit());
    Some(GitVersion { major: parts.next()?.parse().ok()?, minor: parts.next()?.parse().ok()? })
}

/// Splits NUL-terminated records; a missing last NUL is tolerated.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = bytes.strip_suffix(b"\0").unwrap_or(bytes);
    body.split(|b| *b == 0).filter(move |r| !(body.is_empty() && r.is_empty()))
}

/// Reads `diff-tree -r --raw -z --no-renames`.
pub(super) fn raw_diff(bytes: &[u8]) -> Option<Vec<Change>> {
    let mut found = Vec::new();
    let mut parts = records(bytes);
    while let Some(head) = parts.next() {
        let head = std::str::from_utf8(head).ok()?.strip_prefix(':')?;
        let raw = parts.next()?.to_vec();
        let mut words = head.split(' ');
        let (old_mode, new_mode) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (old, new) = (Oid::parse(words.next()?)?, Oid::parse(words.next()?)?);
        let kind = match words.next()?.as_bytes().first()? {
            b'A' => ChangeKind::Added,
            b'D' => ChangeKind::Deleted,
            b'M' => ChangeKind::Modified,
            b'T' => ChangeKind::TypeChanged,
            _ => return None,
        };
        found.push(Change {
            path: String::from_utf8_lossy(&raw).into_owned(),
            raw,
            kind,
            old_mode,
            new_mode,
            old,
            new,
        });
    }
    Some(found)
}

/// The name part of `diff-files -z --name-only` and similar lists.
pub(super) fn names(bytes: &[u8]) -> Vec<Vec<u8>> {
    records(bytes).map(<[u8]>::to_vec).collect()
}

/// One entry of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IndexEntry {
    /// `H` for an ordinary entry; anything else is a flag of the user or an unmerged path.
    pub(super) tag: u8,
    pub(super) mode: String,
    pub(super) oid: Oid,
    pub(super) stage: u8,
    pub(super) path: Vec<u8>,
}

/// Reads `ls-files -v -s -z`.
pub(super) fn index_entries(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    records(bytes).map(index_entry).collect()
}

fn index_entry(record: &[u8]) -> Option<IndexEntry> {
    let tab = record.iter().position(|b| *b == b'\t')?;
    let mut words = std::str::from_utf8(&record[..tab]).ok()?.split(' ');
    let tag = *words.next()?.as_bytes().first()?;
    let (mode, oid, stage) = (words.next()?.to_owned(), Oid::parse(words.next()?)?, words.next()?.parse().ok()?);
    Some(IndexEntry { tag, mode, oid, stage, path: record[tab + 1..].to_vec() })
}

/// Conflicted entries: mode and path.
pub(super) type Conflicts = Vec<(String, Vec<u8>)>;

/// Reads `merge-tree --write-tree -z --no-messages`: the tree and, after it, the conflicted entries.
pub(super) fn merge_tree(bytes: &[u8]) -> Option<(Oid, Conflicts)> {
    let mut parts = records(bytes);
    let tree = Oid::parse(std::str::from_utf8(parts.next()?).ok()?)?;
    let mut conflicts = Vec::new();
    for record in parts.take_while(|r| !r.is_empty()) {
        let tab = record.iter().position(|b| *b == b'\t')?;
        let mode = std::str::from_utf8(&record[..tab]).ok()?.split(' ').next()?.to_owned();
        conflicts.push((mode, record[tab + 1..].to_vec()));
    }
    Some((tree, conflicts))
}

/// Reads `config --list -z`: keys with their values; a key without `=` is `true`.
pub(super) fn config(bytes: &[u8]) -> Vec<(String, String)> {
    records(bytes)
        .map(|r| {
            let text = String::from_utf8_lossy(r);
            match text.split_once('\n') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => (text.into_owned(), "true".to_owned()),
            }
        })
        .collect()
}

/// The parts of a commit object that are carried over when it is built anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommitObject {
    pub(super) tree: Oid,
    pub(super) parents: Vec<Oid>,
    pub(super) author_name: Vec<u8>,
    pub(super) author_email: Vec<u8>,
    /// `<seconds> <zone>` as stored.
    pub(super) author_date: String,
    pub(super) message: Vec<u8>,
}

/// Reads `cat-file commit`.
pub(super) fn commit_object(bytes: &[u8]) -> Option<CommitObject> {
    let end = bytes.windows(2).position(|w| w == b"\n\n")?;
    let message = bytes[end + 2..].to_vec();
    let (mut tree, mut parents, mut author) = (None, Vec::new(), None);
    for line in bytes[..end].split(|b| *b == b'\n') {
        if let Some(id) = line.strip_prefix(b"tree ") {
            tree = Oid::parse(std::str::from_utf8(id).ok()?);
        } else if let Some(id) = line.strip_prefix(b"parent ") {
            parents.push(Oid::parse(std::str::from_utf8(id).ok()?)?);
        } else if let Some(who) = line.strip_prefix(b"author ") {
            author = author.or(Some(who));
        }
    }
    let (author_name, author_email, author_date) = signature(author?)?;
    Some(CommitObject { tree: tree?, parents, author_name, author_email, author_date, message })
}

fn signature(who: &[u8]) -> Option<(Vec<u8>, Vec<u8>, String)> {
    let open = who.iter().position(|b| *b == b'<')?;
    let close = who.iter().rposition(|b| *b == b'>').filter(|c| *c > open)?;
    let date = std::str::from_utf8(&who[close + 1..]).ok()?.trim().to_owned();
    Some((who[..open].trim_ascii().to_vec(), who[open + 1..close].to_vec(), date))
}

/// Reads `log -z --format=%H%n%s`: ids with their subjects.
pub(super) fn log(bytes: &[u8]) -> Option<Vec<(Oid, String)>> {
    records(bytes)
        .map(|r| {
            let text = String::from_utf8_lossy(r);
            let (id, subject) = text.split_once('\n').unwrap_or((&text, ""));
            Some((Oid::parse(id)?, subject.to_owned()))
        })
        .collect()
}

/// One worktree of `worktree list --porcelain -z`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WorktreeEntry {
    pub(super) path: Vec<u8>,
    pub(super) branch: Option<String>,
    pub(super) bare: bool,
}

/// Reads `worktree list --porcelain -z`.
pub(super) fn worktrees(bytes: &[u8]) -> Vec<WorktreeEntry> {
    let mut found: Vec<WorktreeEntry> = Vec::new();
    for line in bytes.split(|b| *b == 0) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            found.push(WorktreeEntry { path: path.to_vec(), ..WorktreeEntry::default() });
        } else if let Some(last) = found.last_mut() {
            if let Some(branch) = line.strip_prefix(b"branch ") {
                last.branch = Some(String::from_utf8_lossy(branch).into_owned());
            } else if line == b"bare" {
                last.bare = true;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const A: &str = "1111111111111111111111111111111111111111";
    const B: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn versions_of_all_vendors() {
        let read = |text: &str| version(text.as_bytes()).map(|v| (v.major, v.minor));
        assert_eq!(read("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(read("git version 2.39.5 (Apple Git-154)\n"), Some((2, 39)));
        assert_eq!(read("git version 2.41.0.windows.1"), Some((2, 41)));
        assert_eq!(read("git version 3.0-rc1"), Some((3, 0)));
        assert_eq!(read("hub version 2"), None);
        assert!(version(b"git version 2.39.5").unwrap() < crate::git::MINIMUM);
    }

    #[test]
    fn raw_diff_with_odd_names() {
        let text = format!(":100644 120000 {A} {B} T\0a\tb\nc\0:000000 100644 {A} {B} A\0:x\0");
        let found = raw_diff(text.as_bytes()).unwrap();
        assert_eq!((found[0].path.as_str(), found[0].kind), ("a\tb\nc", ChangeKind::TypeChanged));
        assert_eq!((found[1].path.as_str(), found[1].kind), (":x", ChangeKind::Added));
        assert_eq!(raw_diff(b""), Some(Vec::new()));
        for bad in [":100644", "garbage\0x\0", ":100644 100644 HEAD HEAD M\0x\0"] {
            assert_eq!(raw_diff(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn merge_tree_lists_conflicts_up_to_the_empty_record() {
        let text = format!("{A}\0100644 {B} 1\tx\ty\0160000 {B} 2\tsub\0\0message\0");
        let (tree, conflicts) = merge_tree(text.as_bytes()).unwrap();
        assert_eq!(tree.as_str(), A);
        assert_eq!(conflicts, [("100644".to_owned(), b"x\ty".to_vec()), (GITLINK.to_owned(), b"sub".to_vec())]);
        assert_eq!(merge_tree(format!("{A}\0").as_bytes()).unwrap().1, []);
        assert_eq!(merge_tree(b"error: no"), None);
    }

    #[test]
    fn commits_with_signatures_and_odd_authors() {
        let text = format!(
            "tree {A}\nparent {B}\nauthor A <b> C <d> 5 +0100\ncommitter x <y> 6 +0000\ngpgsig -----\n author z <q> 1\n\nauthor in text"
        );
        let commit = commit_object(text.as_bytes()).unwrap();
        assert_eq!(commit.author_name, b"A");
        assert_eq!((commit.author_date.as_str(), commit.message.as_slice()), ("5 +0100", b"author in text".as_slice()));
        assert_eq!(commit.parents.len(), 1);
        assert_eq!(commit_object(b"tree x\n\n"), None);
    }

    #[test]
    fn configuration_index_and_worktree_lists() {
        let found = config(b"a.b\nline 1\nline 2\0c.d\0");
        assert_eq!(found, [("a.b".to_owned(), "line 1\nline 2".to_owned()), ("c.d".to_owned(), "true".to_owned())]);
        let entry = &index_entries(format!("S 100755 {A} 0\ta b\0").as_bytes()).unwrap()[0];
        assert_eq!((entry.tag, entry.stage, entry.path.as_slice()), (b'S', 0, b"a b".as_slice()));
        let text = "worktree /a\0bare\0\0worktree /b\nc\0HEAD x\0branch refs/heads/m\0\0";
        let found = worktrees(text.as_bytes());
        assert!(found[0].bare && found[1].branch.as_deref() == Some("refs/heads/m"));
    }
}
