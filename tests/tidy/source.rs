//! The files of the repository as texts.

use std::fs;
use std::path::Path;

/// A text file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its path from the top of the repository, with `/`.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

impl Source {
    /// A file that is not there, to try a rule on.
    pub(crate) fn planted(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is compiled for tests only, to judge by its place and name.
    pub(crate) fn is_test(&self) -> bool {
        let stem = self.path.rsplit('/').next().unwrap_or_default();
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || stem == "tests.rs"
            || stem == "testkit.rs"
            || stem.ends_with("_tests.rs")
    }

    /// Lines from 1, comments left out.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(n, line)| (n + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }
}

/// Every text file of the repository. Invariant: at least as many as there are crates; a wrong folder would check nothing.
pub(crate) fn repository() -> Vec<Source> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate is a folder of the repository");
    let mut found = Vec::new();
    collect(top, top, &mut found);
    assert!(found.iter().any(|s| s.path == "daemon/src/lib.rs"), "the repository is not here");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every Rust file.
pub(crate) fn rust() -> Vec<Source> {
    repository().into_iter().filter(Source::is_rust).collect()
}

fn collect(top: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of the repository can be read") {
        let entry = entry.expect("an entry of the repository can be read");
        let path = entry.path();
        let name = entry.file_name();
        let kind = entry.file_type().expect("an entry has a kind");
        if kind.is_dir() {
            if !["target", ".git", "runs", "__pycache__"].iter().any(|skipped| name == *skipped) {
                collect(top, &path, found);
            }
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(&path)
        {
            let path = path.strip_prefix(top).expect("below the top").to_string_lossy().into_owned();
            // In a linked worktree `.git` is a file that names the machine; it is never committed.
            if path != ".git" {
                found.push(Source { path, text });
            }
        }
    }
}
