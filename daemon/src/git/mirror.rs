//! The bare mirror of a user's repository: it borrows the user's objects and holds everything harness makes.
//!
//! Layout beside git's own: `harness-mirror` (written last: the mirror is whole), `harness-trees/` (which trees
//! exist, by name). An agent may write `objects/` and its own tree's folder under `worktrees/`, nothing else.

use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use super::command::Git;
use super::discover::{ARTIFACT_NAMES, RepoFacts};
use super::durable;
use super::env::UserEnv;
use super::error::GitError;
use super::oid::{ObjectFormat, Oid};
use super::parse;
use crate::failpoint;

/// Settings of the user that decide what a checkout looks like; all others stay outside.
const COPIED: &[&str] = &[
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.symlinks",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
];
/// Whole sections of such settings.
const COPIED_SECTIONS: &[&str] = &["user.", "filter.", "lfs."];

/// Settings every mirror has, written after the user's so that they win.
const PINNED: &[(&str, &str)] = &[
    ("core.bare", "true"),
    ("core.fsync", "all"),
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.logAllRefUpdates", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("merge.renames", "true"),
    ("merge.directoryRenames", "conflict"),
    ("merge.renormalize", "false"),
    ("merge.conflictStyle", "merge"),
    ("merge.renameLimit", "20000"),
    ("diff.renames", "true"),
    ("diff.renameLimit", "20000"),
    ("i18n.commitEncoding", "utf-8"),
    ("i18n.logOutputEncoding", "utf-8"),
    ("log.showSignature", "false"),
    ("uploadpack.allowAnySHA1InWant", "true"),
    ("advice.detachedHead", "false"),
];

/// A mirror that is whole.
#[derive(Debug, Clone)]
pub struct Mirror {
    /// The bare repository.
    pub path: PathBuf,
    pub(super) user_objects: PathBuf,
    pub(super) user_common_dir: PathBuf,
    pub(super) env: UserEnv,
}

impl Mirror {
    /// Makes the mirror at `path` or brings an existing one up to date (configuration, shallow boundary, ignore and
    /// attribute files). Repeatable after a kill anywhere: half a mirror is made again.
    ///
    /// Not for two callers at once on the same path.
    pub fn ensure(path: &Path, repo: &RepoFacts) -> Result<Self, GitError> {
        let marker = path.join("harness-mirror");
        let mirror = Self {
            path: path.to_path_buf(),
            user_objects: repo.common_dir.join("objects"),
            user_common_dir: repo.common_dir.clone(),
            env: repo.env.clone(),
        };
        let mark = format!("1 {}\n", repo.object_format.as_str());
        match fs::read_to_string(&marker) {
            Ok(found) if found == mark => mirror.refresh(repo)?,
            Ok(_) => {
                return Err(GitError::FormatMismatch { path: path.to_path_buf() });
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                mirror.create(repo)?;
                mirror.refresh(repo)?;
                durable::write_atomic(&marker, mark.as_bytes(), 0o600)?;
            }
            Err(e) => return Err(GitError::io("read", &marker)(e)),
        }
        Ok(mirror)
    }

    fn create(&self, repo: &RepoFacts) -> Result<(), GitError> {
        failpoint::hit("git.mirror.create.before");
        durable::remove_dir(&self.path)?;
        durable::make_dir(&self.path)?;
        failpoint::hit("git.mirror.init.before");
        Git::without_repository(&self.env)
            .args(["init", "--quiet", "--bare", "--template="])
            .args([format!("--object-format={}", repo.object_format.as_str())])
            .args([&self.path])
            .run()?;
        failpoint::hit("git.mirror.init.after");
        for dir in ["info", "objects/info", "worktrees", "harness-trees"] {
            durable::make_dir(&self.path.join(dir))?;
        }
        if let Some(parent) = self.path.parent() {
            durable::sync_dir(parent)?;
        }
        failpoint::hit("git.mirror.create.after");
        Ok(())
    }

    fn refresh(&self, repo: &RepoFacts) -> Result<(), GitError> {
        durable::write_if_different(&self.path.join("config"), config_text(repo).as_bytes(), 0o600)?;
        self.guard()?;
        self.copy_or_remove(&[repo.common_dir.join("shallow")], "shallow", &[])?;
        self.copy_or_remove(&attributes_of(repo), "info/attributes", &[])?;
        let mut names = Vec::new();
        if repo.tracked_artifacts.is_empty() {
            for name in ARTIFACT_NAMES {
                names.extend_from_slice(format!("/{name}\n").as_bytes());
            }
        }
        names.extend_from_slice(b"/.harness/\n");
        self.copy_or_remove(&excludes_of(repo), "info/exclude", &names)
    }

    /// Puts back what links the mirror to the user's objects, if anything changed it: agents may write `objects/`.
    pub(super) fn guard(&self) -> Result<(), GitError> {
        let info = self.path.join("objects/info");
        if fs::symlink_metadata(&info).map_or(true, |m| !m.is_dir()) {
            durable::remove_file(&info)?;
            durable::make_dir(&info)?;
        }
        let mut line = quoted_alternate(&self.user_objects);
        line.push(b'\n');
        durable::write_if_different(&info.join("alternates"), &line, 0o600)
    }

    /// Copies the concatenation of the user's files, followed by `more`, or removes the copy when there is nothing.
    fn copy_or_remove(&self, from: &[PathBuf], to: &str, more: &[u8]) -> Result<(), GitError> {
        let mut bytes = Vec::new();
        for path in from {
            if let Ok(part) = fs::read(path) {
                bytes.extend_from_slice(&part);
                if !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
            }
        }
        bytes.extend_from_slice(more);
        let to = self.path.join(to);
        if bytes.is_empty() { durable::remove_file(&to) } else { durable::write_if_different(&to, &bytes, 0o600) }
    }

    /// A command on this mirror, without a work tree.
    pub(super) fn git(&self) -> Git {
        Git::isolated(&self.path, &self.env)
    }

    /// Whether `commit` is a commit that the mirror can read.
    pub fn commit_exists(&self, commit: &Oid) -> Result<bool, GitError> {
        let out = self.git().args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).allow(&[0, 1, 128]).run()?;
        Ok(out.code == 0)
    }

    /// The tree of a commit. Errors: [`GitError::MissingCommit`].
    pub fn tree_of(&self, commit: &Oid) -> Result<Oid, GitError> {
        let spec = format!("{commit}^{{tree}}");
        let out =
            self.git().args(["rev-parse", "-q", "--verify", "--end-of-options", &spec]).allow(&[0, 1, 128]).run()?;
        match Oid::parse(&out.line()) {
            Some(tree) if out.code == 0 => Ok(tree),
            _ => Err(GitError::MissingCommit { commit: commit.clone() }),
        }
    }

    /// Whether every commit of `ancestor` is in `commit`.
    pub fn is_ancestor(&self, ancestor: &Oid, commit: &Oid) -> Result<bool, GitError> {
        let args = ["merge-base", "--is-ancestor", ancestor.as_str(), commit.as_str()];
        Ok(self.git().args(args).allow(&[0, 1]).run()?.code == 0)
    }

    /// The changed paths between two trees or commits; renames count as deletion and addition.
    pub fn changes(&self, from: &Oid, to: &Oid) -> Result<Vec<parse::Change>, GitError> {
        let args = ["diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", "--no-abbrev"];
        let out = self.git().args(args).args([from.as_str(), to.as_str(), "--"]).run()?;
        parse::raw_diff(&out.stdout).ok_or_else(|| GitError::Unreadable {
            command: "diff-tree --raw".to_owned(),
            detail: format!("{from}..{to}"),
        })
    }

    /// The difference between two commits as a patch for people and prompts, cut at `max_bytes` on a line.
    pub fn diff_patch(&self, base: &Oid, commit: &Oid, max_bytes: usize) -> Result<String, GitError> {
        let args = ["diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", "--no-color", "-M"];
        let attrs = format!("--attr-source={commit}");
        let out = self.git().global(attrs).args(args).args([base.as_str(), commit.as_str(), "--"]).run()?;
        let mut text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.len() > max_bytes {
            let whole = text.len();
            let keep = (0..=max_bytes).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0);
            let keep = text[..keep].rfind('\n').map_or(0, |i| i + 1);
            text.truncate(keep);
            text.push_str(&format!("[cut: {keep} of {whole} bytes shown]\n"));
        }
        Ok(text)
    }

    /// Checks every object the mirror itself holds and that all its refs are complete.
    pub fn fsck(&self) -> Result<(), GitError> {
        self.git().args(["fsck", "--full", "--no-dangling", "--no-progress"]).run().map(drop)
    }
}

fn attributes_of(repo: &RepoFacts) -> Vec<PathBuf> {
    let own = repo.setting("core.attributesfile").map(|v| repo.env.expand(v));
    own.into_iter().chain([repo.common_dir.join("info/attributes")]).collect()
}

fn excludes_of(repo: &RepoFacts) -> Vec<PathBuf> {
    let own = repo.setting("core.excludesfile").map(|v| repo.env.expand(v));
    own.into_iter().chain([repo.common_dir.join("info/exclude")]).collect()
}

/// Removes lock files that a killed git left in the mirror at `path`, those of agents' trees among them. Only while no git
/// runs on it: at start of the daemon, when nothing of the last one lives. A mirror that is not there has none.
///
/// # Errors
/// [`GitError`] when a folder cannot be read or a lock cannot be removed.
pub fn clear_stale_locks(path: &Path) -> Result<(), GitError> {
    for name in ["HEAD.lock", "config.lock", "packed-refs.lock", "shallow.lock"] {
        durable::remove_file(&path.join(name))?;
    }
    durable::remove_dir(&path.join("harness-verify"))?;
    for folder in ["refs", "worktrees", "harness-trees", "objects"] {
        let folder = path.join(folder);
        if folder.is_dir() {
            clear_locks_below(&folder)?;
        }
    }
    Ok(())
}

/// Whether only a git or a daemon that was killed leaves a file of this name.
fn is_stale(path: &Path) -> bool {
    let temporary = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"tmp_obj_"));
    temporary || path.extension().is_some_and(|e| e == "lock" || e == durable::ASIDE)
}

fn clear_locks_below(dir: &Path) -> Result<(), GitError> {
    for entry in fs::read_dir(dir).map_err(GitError::io("list", dir))? {
        let entry = entry.map_err(GitError::io("list", dir))?;
        let path = entry.path();
        // Agents write below `worktrees`: a link must not lead elsewhere.
        if entry.file_type().map_err(GitError::io("look at", &path))?.is_dir() {
            clear_locks_below(&path)?;
        } else if is_stale(&path) {
            failpoint::hit("git.mirror.unlock.before");
            durable::remove_file(&path)?;
            failpoint::hit("git.mirror.unlock.after");
        }
    }
    Ok(())
}

/// A path as `alternates` wants it: quoted like C when it holds a line break or begins with a quote or `#`.
fn quoted_alternate(path: &Path) -> Vec<u8> {
    let bytes = path.as_os_str().as_bytes();
    if !bytes.contains(&b'\n') && !matches!(bytes.first(), Some(b'"' | b'#')) {
        return path.as_os_str().to_owned().into_vec();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'"');
    quoted
}

fn config_text(repo: &RepoFacts) -> String {
    let mut text = String::from("# Written by harness; changes are overwritten.\n");
    let format = repo.object_format;
    if format == ObjectFormat::Sha1 {
        push_setting(&mut text, "core.repositoryformatversion", "0");
    } else {
        push_setting(&mut text, "core.repositoryformatversion", "1");
        push_setting(&mut text, "extensions.objectformat", format.as_str());
    }
    let who = repo.identity();
    push_setting(&mut text, "user.name", &who.name);
    push_setting(&mut text, "user.email", &who.email);
    for (key, value) in &repo.config {
        let copied = COPIED.contains(&key.as_str()) || COPIED_SECTIONS.iter().any(|s| key.starts_with(s));
        if copied {
            push_setting(&mut text, key, value);
        }
    }
    for (key, value) in PINNED {
        push_setting(&mut text, key, value);
    }
    text
}

/// Appends `section.sub.name = value` in git's file syntax.
fn push_setting(text: &mut String, key: &str, value: &str) {
    let (Some((section, _)), Some((rest, name))) = (key.split_once('.'), key.rsplit_once('.')) else {
        return;
    };
    let escape = |s: &str| s.replace('\\', "\\\\").replace('"', "\\\"");
    match rest.get(section.len() + 1..) {
        Some(sub) if !sub.contains('\n') => text.push_str(&format!("[{section} \"{}\"]\n", escape(sub))),
        Some(_) => return,
        None => text.push_str(&format!("[{section}]\n")),
    }
    let value = escape(value).replace('\n', "\\n").replace('\t', "\\t").replace('\r', "");
    text.push_str(&format!("\t{name} = \"{value}\"\n"));
}
