//! What a repository is: answered by reading, before anything is promised about it.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use super::candidate::Identity;
use super::command::Git;
use super::env::UserEnv;
use super::error::GitError;
use super::oid::{ObjectFormat, Oid};
use super::parse;

/// The files the runtime keeps at the root of the user's repository, unless HEAD tracks one of them (DESIGN 10).
pub const ARTIFACT_NAMES: &[&str] = &[
    "harness-launch.json",
    "harness-runtime.json",
    "harness-runtime.log",
    "harness-state.json",
    "harness-events.tsv",
    "harness-lessons.md",
    "harness-servers.json",
    "tasks.json",
    "plan.md",
    "reports",
];

/// What HEAD of a checkout names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// A branch; without a commit it is unborn.
    Branch {
        /// Short name.
        name: String,
        /// Its tip.
        commit: Option<Oid>,
    },
    /// A commit, no branch.
    Detached(Oid),
}

/// What is known of a user's repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepoFacts {
    /// Root of the checkout that was asked about.
    pub top_level: PathBuf,
    /// That checkout's own git folder.
    pub git_dir: PathBuf,
    /// The git folder all checkouts share; equal to `git_dir` in the main one.
    pub common_dir: PathBuf,
    /// Where HEAD of that checkout is.
    pub head: Head,
    /// The hash of its objects.
    pub object_format: ObjectFormat,
    /// History is cut off.
    pub shallow: bool,
    /// HEAD has a `.gitmodules`.
    pub submodules: bool,
    /// HEAD's attributes send files through LFS.
    pub lfs: bool,
    /// The user's configuration knows the LFS filter.
    pub lfs_configured: bool,
    /// Only a part of the tree is checked out.
    pub sparse: bool,
    /// Names of [`ARTIFACT_NAMES`] that HEAD tracks.
    pub tracked_artifacts: Vec<String>,
    /// The user's name and e-mail address, when configured.
    pub user_identity: Option<(String, String)>,
    /// All settings in effect for the user, in order, last wins.
    pub(super) config: Vec<(String, String)>,
    /// The user's environment.
    pub(super) env: UserEnv,
}

/// Answers what repository `path` lies in: also from a sub-folder or a linked worktree.
///
/// Errors: [`GitError::NotARepository`], [`GitError::NotYours`], [`GitError::Bare`], [`GitError::Partial`]; an unborn
/// branch or detached HEAD is a fact, see [`RepoFacts::target`].
pub fn discover(path: &Path) -> Result<RepoFacts, GitError> {
    discover_with(path, &UserEnv::from_process())
}

/// [`discover`] in a given environment.
pub fn discover_with(path: &Path, env: &UserEnv) -> Result<RepoFacts, GitError> {
    let place = locate(path, env)?;
    let config = Git::as_user(&place.git_dir, env).args(["config", "--list", "--includes", "-z"]).run()?;
    let config = parse::config(&config.stdout);
    let partial = config.iter().any(|(k, _)| k == "extensions.partialclone" || k.ends_with(".partialclonefilter"));
    if partial {
        return Err(GitError::Partial { path: place.top_level });
    }
    let mut facts = RepoFacts {
        shallow: place.common_dir.join("shallow").exists(),
        head: Head::Branch { name: String::new(), commit: None },
        object_format: place.object_format,
        top_level: place.top_level,
        git_dir: place.git_dir,
        common_dir: place.common_dir,
        submodules: false,
        lfs: false,
        lfs_configured: config.iter().any(|(k, _)| k == "filter.lfs.process" || k == "filter.lfs.smudge"),
        sparse: false,
        tracked_artifacts: Vec::new(),
        user_identity: None,
        config,
        env: env.clone(),
    };
    facts.sparse = facts.setting("core.sparsecheckout").is_some_and(is_true);
    facts.user_identity = match (facts.setting("user.name"), facts.setting("user.email")) {
        (Some(name), Some(email)) if !name.trim().is_empty() => Some((name.to_owned(), email.to_owned())),
        _ => None,
    };
    facts.head = read_head(&facts)?;
    if let Some(commit) = facts.head.commit().cloned() {
        look_at_tree(&mut facts, &commit)?;
    }
    Ok(facts)
}

struct Place {
    top_level: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    object_format: ObjectFormat,
}

fn locate(path: &Path, env: &UserEnv) -> Result<Place, GitError> {
    if !path.is_dir() {
        return Err(GitError::NotARepository { path: path.to_path_buf() });
    }
    let ask = |what: &[&str]| {
        Git::discovering(path, env)
            .args(["rev-parse", "--path-format=absolute"])
            .args(what.iter().copied())
            .allow(&[0, 128])
            .run()
    };
    let bare = ask(&["--is-bare-repository"])?;
    if bare.code == 128 {
        return Err(why_not(path, env));
    }
    // One question a command: a path may contain a line break.
    let folder = |what: &str| -> Result<PathBuf, GitError> {
        let out = ask(&[what])?;
        let bytes = out.stdout.strip_suffix(b"\n").unwrap_or(&out.stdout).to_vec();
        Ok(PathBuf::from(OsString::from_vec(bytes)))
    };
    let git_dir = folder("--absolute-git-dir")?;
    let inside = ask(&["--is-inside-work-tree"])?;
    if bare.line() == "true" || inside.line() != "true" {
        return Err(GitError::Bare { path: git_dir });
    }
    let format = ask(&["--show-object-format"])?.line();
    let object_format = ObjectFormat::parse(&format)
        .ok_or(GitError::Unreadable { command: "rev-parse --show-object-format".to_owned(), detail: format })?;
    Ok(Place { top_level: folder("--show-toplevel")?, common_dir: folder("--git-common-dir")?, git_dir, object_format })
}

/// Tells a folder outside any repository from one git refuses to read.
fn why_not(path: &Path, env: &UserEnv) -> GitError {
    let path = path.to_path_buf();
    match Git::discovering(&path, env).args(["rev-parse", "--git-dir"]).run() {
        Err(GitError::Infrastructure { stderr, .. }) if stderr.contains("not a git repository") => {
            GitError::NotARepository { path }
        }
        Err(GitError::Infrastructure { stderr, .. }) if stderr.contains("dubious ownership") => {
            GitError::NotYours { path }
        }
        Err(other) => other,
        Ok(_) => GitError::NotARepository { path },
    }
}

fn read_head(facts: &RepoFacts) -> Result<Head, GitError> {
    let git = || Git::isolated(&facts.git_dir, &facts.env);
    let name = git().args(["symbolic-ref", "-q", "HEAD"]).allow(&[0, 1]).run()?;
    let commit =
        git().args(["rev-parse", "-q", "--verify", "--end-of-options", "HEAD^{commit}"]).allow(&[0, 1, 128]).run()?;
    let commit = if commit.code == 0 { Oid::parse(&commit.line()) } else { None };
    if name.code == 0 {
        let full = name.line();
        let name = full.strip_prefix("refs/heads/").unwrap_or(&full).to_owned();
        return Ok(Head::Branch { name, commit });
    }
    commit.map(Head::Detached).ok_or_else(|| GitError::Unreadable {
        command: "rev-parse HEAD".to_owned(),
        detail: "HEAD names neither a branch nor a commit".to_owned(),
    })
}

fn look_at_tree(facts: &mut RepoFacts, commit: &Oid) -> Result<(), GitError> {
    let git = || Git::isolated(&facts.git_dir, &facts.env);
    let mut names = vec![".gitmodules"];
    names.extend(ARTIFACT_NAMES);
    let found = git().args(["ls-tree", "--name-only", "-z", commit.as_str(), "--"]).args(names).run()?;
    let found: Vec<String> =
        parse::names(&found.stdout).iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect();
    let lfs = git()
        .env("GIT_LITERAL_PATHSPECS", "0")
        .args([
            "grep",
            "-q",
            "-E",
            "-e",
            "filter=lfs([[:space:]]|$)",
            commit.as_str(),
            "--",
            ":(glob)**/.gitattributes",
        ])
        .allow(&[0, 1])
        .run()?;
    facts.lfs = lfs.code == 0;
    facts.submodules = found.iter().any(|n| n == ".gitmodules");
    facts.tracked_artifacts = found.into_iter().filter(|n| n != ".gitmodules").collect();
    Ok(())
}

/// Whether the checkout has staged, unstaged or untracked changes (ignored files and submodules do not count).
pub fn dirty(repo: &RepoFacts) -> Result<bool, GitError> {
    let out = Git::as_user(&repo.git_dir, &repo.env)
        .work_tree(&repo.top_level)
        .index(&repo.git_dir.join("index"))
        .args(["status", "--porcelain", "-z", "--ignore-submodules=all"])
        .run()?;
    Ok(!out.stdout.is_empty())
}

/// Git's reading of a boolean, for the words people use.
fn is_true(value: &str) -> bool {
    matches!(value.to_ascii_lowercase().as_str(), "true" | "yes" | "on" | "1")
}

impl Head {
    /// The commit HEAD is at, if any.
    pub fn commit(&self) -> Option<&Oid> {
        match self {
            Self::Branch { commit, .. } => commit.as_ref(),
            Self::Detached(commit) => Some(commit),
        }
    }
}

impl RepoFacts {
    /// The value in effect of one setting (lower-case section and name).
    pub(super) fn setting(&self, key: &str) -> Option<&str> {
        self.config.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether a boolean setting is on.
    pub(super) fn setting_is_true(&self, key: &str) -> bool {
        self.setting(key).is_some_and(is_true)
    }

    /// Who commits on the user's behalf; without a configured identity a neutral one.
    pub fn identity(&self) -> Identity {
        match &self.user_identity {
            Some((name, email)) => Identity { name: name.clone(), email: email.clone() },
            None => Identity { name: "harness".to_owned(), email: "harness@localhost".to_owned() },
        }
    }

    /// The branch a run lands on and its tip: `wanted`, or else the one that is checked out.
    ///
    /// Errors: [`GitError::Unborn`], [`GitError::DetachedHead`], [`GitError::MissingTarget`], [`GitError::BadName`].
    pub fn target(&self, wanted: Option<&str>) -> Result<(String, Oid), GitError> {
        let name = match (wanted, &self.head) {
            (Some(name), _) => name.to_owned(),
            (None, Head::Branch { name, .. }) => name.clone(),
            (None, Head::Detached(commit)) => {
                return Err(GitError::DetachedHead { commit: commit.clone() });
            }
        };
        if let Some(tip) = self.branch_tip(&name)? {
            return Ok((name, tip));
        }
        match &self.head {
            Head::Branch { name: current, commit: None } if *current == name => Err(GitError::Unborn { branch: name }),
            Head::Branch { .. } | Head::Detached(_) => Err(GitError::MissingTarget { branch: name }),
        }
    }

    /// The tip of a branch in the user's repository as it is now.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<Oid>, GitError> {
        super::refs::check_name(branch)?;
        super::refs::read(&self.common_dir, &self.env, &format!("refs/heads/{branch}"))
    }
}
