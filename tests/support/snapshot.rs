//! The truth of git: all refs, and every byte of a checkout, ignored files too.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::env::TestEnv;

/// A repository at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Ref to object; `HEAD` to what it says.
    pub refs: BTreeMap<String, String>,
    /// Path in the checkout to kind, mode and digest; `.git` is left out.
    pub files: BTreeMap<String, String>,
}

impl Snapshot {
    /// Looks at a repository.
    pub fn of(env: &TestEnv, repo: &Path) -> Self {
        let mut refs = BTreeMap::new();
        for line in env.git(repo, &["for-each-ref", "--format=%(refname) %(objectname)"]).lines() {
            let (name, object) = line.split_once(' ').expect("a name and an object");
            refs.insert(name.to_owned(), object.to_owned());
        }
        let git_dir = env.git(repo, &["rev-parse", "--absolute-git-dir"]);
        let head = fs::read_to_string(Path::new(git_dir.trim()).join("HEAD")).expect("HEAD is a file");
        refs.insert("HEAD".into(), head.trim().to_owned());
        let mut files = BTreeMap::new();
        walk(repo, repo, &mut files);
        Self { refs, files }
    }

    /// Paths whose content, mode or being there differs, each with before and after.
    #[must_use]
    pub fn changed_files(&self, later: &Self) -> Vec<String> {
        changes(&self.files, &later.files)
    }

    /// Refs that differ, each with before and after.
    #[must_use]
    pub fn changed_refs(&self, later: &Self) -> Vec<String> {
        changes(&self.refs, &later.refs)
    }
}

fn changes(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let word = |place: &BTreeMap<String, String>, name: &String| place.get(name).cloned().unwrap_or_else(|| "-".into());
    names
        .into_iter()
        .filter(|name| before.get(*name) != after.get(*name))
        .map(|name| format!("{name}: {} -> {}", word(before, name), word(after, name)))
        .collect()
}

fn walk(top: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder of the checkout") {
        let entry = entry.expect("an entry of the checkout");
        if entry.file_name() == ".git" {
            continue;
        }
        let path = entry.path();
        let told = fs::symlink_metadata(&path).expect("an entry of the checkout");
        let name = path.strip_prefix(top).expect("below the top").to_string_lossy().into_owned();
        let mode = told.permissions().mode() & 0o7777;
        if told.is_dir() {
            files.insert(format!("{name}/"), format!("folder {mode:o}"));
            walk(top, &path, files);
        } else if told.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            files.insert(name, format!("link {}", hex(target.as_os_str().as_bytes())));
        } else if told.is_file() {
            files.insert(name, format!("file {mode:o} {}", hex(&fs::read(&path).expect("a file"))));
        } else {
            files.insert(name, "neither file, folder nor link".into());
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
