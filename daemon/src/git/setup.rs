//! The two things harness prepares in a folder when a launch is registered: a first commit, and ignored names.

use std::fs;
use std::path::Path;

use super::candidate::Identity;
use super::command::Git;
use super::discover::{Head, RepoFacts, discover_with};
use super::durable;
use super::env::UserEnv;
use super::error::GitError;
use crate::failpoint;

const BLOCK_BEGIN: &str = "# >>> harness: files of the runtime, see harnessctl help >>>";
const BLOCK_END: &str = "# <<< harness <<<";

/// Makes `path` a repository with at least one (empty) commit; files that are there stay untracked. Repeatable.
///
/// This is what `--init-git` does; without it a folder that is no repository is refused.
pub fn init_repository(path: &Path, env: &UserEnv) -> Result<RepoFacts, GitError> {
    let git_dir = path.join(".git");
    let facts = match discover_with(path, env) {
        Ok(facts) => facts,
        Err(GitError::NotARepository { .. }) => {
            failpoint::hit("git.init.before");
            Git::as_user(&git_dir, env).work_tree(path).args(["init", "--quiet", "--template="]).run()?;
            failpoint::hit("git.init.after");
            discover_with(path, env)?
        }
        Err(other) => return Err(other),
    };
    let Head::Branch { name, commit: None } = &facts.head else {
        return Ok(facts);
    };
    let who = facts.identity();
    let tree = Git::as_user(&facts.git_dir, env).args(["hash-object", "-t", "tree", "-w", "--stdin"]).run()?.line();
    failpoint::hit("git.init.commit.before");
    let commit = identified(Git::as_user(&facts.git_dir, env), &who)
        .args(["commit-tree", "-m", "Start of the repository", &tree])
        .run()?
        .line();
    failpoint::hit("git.init.ref.before");
    Git::as_user(&facts.git_dir, env)
        .args(["update-ref", "-m", "harness: first commit", &format!("refs/heads/{name}"), &commit, ""])
        .run()?;
    failpoint::hit("git.init.ref.after");
    discover_with(path, env)
}

fn identified(git: Git, who: &Identity) -> Git {
    git.env("GIT_AUTHOR_NAME", &who.name)
        .env("GIT_AUTHOR_EMAIL", &who.email)
        .env("GIT_COMMITTER_NAME", &who.name)
        .env("GIT_COMMITTER_EMAIL", &who.email)
}

/// Keeps a marked block of `patterns` (anchored by the caller with a leading `/`) in the repository's `info/exclude`;
/// everything outside the block stays as it is, byte for byte. No patterns: the block goes.
pub fn exclude_block(repo: &RepoFacts, patterns: &[&str]) -> Result<(), GitError> {
    let path = repo.common_dir.join("info/exclude");
    let old = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(e) => return Err(GitError::io("read", &path)(e)),
    };
    let new = with_block(&old, patterns);
    if new == old {
        return Ok(());
    }
    durable::make_dir(&repo.common_dir.join("info"))?;
    // A symlinked exclude file stays one: its target is replaced.
    let path = fs::canonicalize(&path).unwrap_or(path);
    let mode = fs::metadata(&path).map_or(0o644, |m| std::os::unix::fs::PermissionsExt::mode(&m.permissions()) & 0o777);
    durable::write_atomic(&path, &new, mode)
}

/// The text of `old` with its block replaced, in place, or appended.
fn with_block(old: &[u8], patterns: &[&str]) -> Vec<u8> {
    let mut block = Vec::new();
    if !patterns.is_empty() {
        for line in std::iter::once(&BLOCK_BEGIN).chain(patterns).chain(std::iter::once(&BLOCK_END)) {
            block.extend_from_slice(line.as_bytes());
            block.push(b'\n');
        }
    }
    let lines: Vec<&[u8]> = old.split_inclusive(|b| *b == b'\n').collect();
    let is = |line: &[u8], mark: &str| line.trim_ascii_end() == mark.as_bytes();
    let begin = lines.iter().position(|l| is(l, BLOCK_BEGIN));
    let end = begin.and_then(|b| lines[b..].iter().position(|l| is(l, BLOCK_END)).map(|e| b + e));
    if let (Some(begin), Some(end)) = (begin, end) {
        return [lines[..begin].concat(), block, lines[end + 1..].concat()].concat();
    }
    let mut new = old.to_vec();
    if !block.is_empty() && !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    new.extend_from_slice(&block);
    new
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::with_block;

    #[test]
    fn block_is_appended_replaced_and_removed_around_the_users_lines() {
        let one = with_block(b"*.swp", &["/tasks.json"]);
        let text = String::from_utf8(one.clone()).unwrap();
        assert!(text.starts_with("*.swp\n# >>> harness"), "{text}");
        assert_eq!(with_block(&one, &["/tasks.json"]), one, "the same block again changes nothing");
        let mut with_tail = one.clone();
        with_tail.extend_from_slice(b"last\xff");
        let two = with_block(&with_tail, &["/plan.md", "/reports/"]);
        assert!(two.ends_with(b"<<<\nlast\xff"));
        assert!(!two.windows(10).any(|w| w == b"tasks.json"));
        assert_eq!(with_block(&two, &[]), b"*.swp\nlast\xff");
    }
}
