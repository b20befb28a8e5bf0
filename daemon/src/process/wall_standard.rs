//! The wall that agents and evidence get by default.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::wall::{Confined, Network, Wall};

/// What a standard wall is built from.
#[derive(Debug, Clone)]
pub struct StandardWall {
    /// The tree to work in; writable.
    pub tree: PathBuf,
    /// The tree's private git folder (`<mirror>/worktrees/<name>`); writable, none for trees that make no commits.
    pub git_dir: Option<PathBuf>,
    /// The mirror; readable, so that git works in the tree.
    pub mirror: Option<PathBuf>,
    /// Whether `<mirror>/objects` is writable (implementer).
    pub objects_writable: bool,
    /// Object folders that the mirror borrows from (the user's own); readable.
    pub alternates: Vec<PathBuf>,
    /// The private TMPDIR; writable.
    pub tmp: PathBuf,
    /// Named caches; writable.
    pub caches: Vec<PathBuf>,
    /// Further files and folders to read (the plan's inputs, a program of the user's).
    pub read_only: Vec<PathBuf>,
    /// The home whose toolchains `path_env` names.
    pub home: PathBuf,
    /// The `PATH` the program will run with.
    pub path_env: OsString,
    /// What it may reach.
    pub network: Network,
}

/// Builds the wall: tree, private git folder, TMPDIR and caches writable; mirror, toolchains and system readable.
///
/// The home as a whole stays unreadable, above all `.ssh`, `.aws`, `.gnupg`, `.config` and the agents' own homes.
pub fn standard_wall(from: &StandardWall) -> Wall {
    let mut read_write = vec![from.tree.clone(), from.tmp.clone()];
    read_write.extend(from.git_dir.clone());
    read_write.extend(from.caches.iter().cloned());
    let mut read_only = toolchains(&from.home, &from.path_env);
    read_only.extend(from.read_only.iter().cloned());
    read_only.extend(from.alternates.iter().cloned());
    if let Some(mirror) = &from.mirror {
        read_only.push(mirror.clone());
        if from.objects_writable {
            read_write.push(mirror.join("objects"));
        }
    }
    Wall::Confined(Confined { read_write, read_only, network: from.network })
}

/// Folders of a home that no toolchain may open up, wherever `PATH` points.
const SECRET: &[&str] = &[
    ".ssh",
    ".aws",
    ".azure",
    ".gnupg",
    ".config",
    ".codex",
    ".claude",
    ".gemini",
    ".kube",
    ".docker",
    ".password-store",
    ".mozilla",
];

/// Returns what the toolchains on `PATH` need from the home: never the home itself, never a secret folder.
fn toolchains(home: &Path, path_env: &OsStr) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in std::env::split_paths(path_env) {
        let Ok(inside) = folder.strip_prefix(home) else {
            // Outside the home and outside the system's folders: what PATH names may be run.
            if folder.is_absolute() && folder.parent().is_some() && !home.starts_with(&folder) {
                // A shim of pyenv and its like is a script that runs what lies beside its folder.
                let root = folder
                    .parent()
                    .filter(|root| folder.ends_with("shims") && root.parent().is_some() && !home.starts_with(root));
                found.extend(root.map(Path::to_path_buf));
                found.push(folder);
            }
            continue;
        };
        let mut parts = inside.components().map(|part| part.as_os_str());
        let (Some(first), second) = (parts.next(), parts.next()) else {
            continue;
        };
        if first == ".cargo" {
            let cargo = home.join(first);
            // Not `.cargo` itself: `credentials.toml` lies there.
            for name in ["bin", "registry", "git", "config.toml", "config", "env"] {
                found.push(cargo.join(name));
            }
            found.push(home.join(".rustup"));
        } else if first == ".local" {
            for name in [".local/bin", ".local/lib", ".local/pipx", ".local/share/pipx", ".local/share/uv"] {
                found.push(home.join(name));
            }
        } else if second.is_some() && is_tool_home(first) {
            found.push(home.join(first));
        } else {
            // `~/bin`, `~/project/node_modules/.bin`, a program in a secret folder: this folder and no more.
            found.push(folder);
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A dot folder such as `.pyenv` or `.nvm`, which holds a toolchain as a whole.
fn is_tool_home(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".") && !SECRET.iter().any(|secret| name == *secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, wanted: &[&str]) {
        let found = toolchains(Path::new("/h/u"), OsStr::new(path));
        assert_eq!(found, wanted.iter().map(PathBuf::from).collect::<Vec<_>>());
    }

    #[test]
    fn path_opens_toolchains_and_never_the_home() {
        check("/h/u", &[]);
        check("/h:/", &[]);
        check("/h/u/.ssh/bin", &["/h/u/.ssh/bin"]);
        check("/h/u/bin", &["/h/u/bin"]);
        check("/h/u/.pyenv/shims:/h/u/.pyenv/bin", &["/h/u/.pyenv"]);
        check("/h/u/src/app/node_modules/.bin", &["/h/u/src/app/node_modules/.bin"]);
        check("relative:", &[]);
        let cargo = toolchains(Path::new("/h/u"), OsStr::new("/h/u/.cargo/bin"));
        assert!(!cargo.contains(&PathBuf::from("/h/u/.cargo")));
        assert!(cargo.contains(&PathBuf::from("/h/u/.rustup")));
    }
}
