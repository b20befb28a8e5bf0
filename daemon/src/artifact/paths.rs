//! Which files there are and where they lie (DESIGN 10).

use std::path::{Path, PathBuf};

use harness_proto::ids::TaskId;

use super::atomic::TEMP_PREFIX;

/// Folder for everything when HEAD tracks one of our names.
const OWN_FOLDER: &str = ".harness";
/// Folder of the reports.
const REPORTS: &str = "reports";
/// Names directly in the folder.
const NAMES: &[&str] = &[
    "harness-launch.json",
    "harness-runtime.json",
    "harness-runtime.log",
    "harness-state.json",
    "harness-events.tsv",
    "harness-lessons.md",
    "harness-servers.json",
    "tasks.json",
    "plan.md",
];

/// Name of a report file (S4-039); never leaves its folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReportName(String);

impl ReportName {
    /// `planner-rNNN.json`, three digits or more.
    #[must_use]
    pub fn planner(revision: i64) -> Self {
        Self(format!("planner-r{revision:03}.json"))
    }

    /// `impl-TASK-aN.json`.
    #[must_use]
    pub fn implementer(task: &TaskId, attempt: u32) -> Self {
        Self(format!("impl-{task}-a{attempt}.json"))
    }

    /// `verdict-TASK-aN.json`.
    #[must_use]
    pub fn verifier(task: &TaskId, attempt: u32) -> Self {
        Self(format!("verdict-{task}-a{attempt}.json"))
    }

    /// Takes a name that `step` made; none when it has no such form.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let stem = name.strip_suffix(".json")?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let known = match stem.split_once('-')? {
            ("planner", rest) => digits(rest.strip_prefix('r')?),
            ("impl" | "verdict", rest) => {
                let (task, attempt) = rest.rsplit_once("-a")?;
                TaskId::parse(task).is_ok() && digits(attempt)
            }
            _ => false,
        };
        known.then(|| Self(name.to_owned()))
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One of our files.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileName {
    /// `harness-launch.json`; written by `create-launch` only.
    Launch,
    /// `harness-runtime.json`.
    Runtime,
    /// `harness-runtime.log`; written by the run's tracing layer (corrections 41).
    RuntimeLog,
    /// `harness-state.json`.
    State,
    /// `harness-events.tsv`; append-only.
    Events,
    /// `harness-lessons.md`; append-only, across runs.
    Lessons,
    /// `harness-servers.json`; gone after a clean end.
    Servers,
    /// `tasks.json`.
    Tasks,
    /// `plan.md`.
    Plan,
    /// A file in `reports/`.
    Report(ReportName),
}

impl FileName {
    /// Path below the folder of the layout.
    #[must_use]
    pub fn relative(&self) -> PathBuf {
        let name = match self {
            Self::Launch => "harness-launch.json",
            Self::Runtime => "harness-runtime.json",
            Self::RuntimeLog => "harness-runtime.log",
            Self::State => "harness-state.json",
            Self::Events => "harness-events.tsv",
            Self::Lessons => "harness-lessons.md",
            Self::Servers => "harness-servers.json",
            Self::Tasks => "tasks.json",
            Self::Plan => "plan.md",
            Self::Report(name) => return Path::new(REPORTS).join(name.as_str()),
        };
        PathBuf::from(name)
    }
}

/// No place for our files is free.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("HEAD tracks `{0}` and `{1}`: neither the repository's root nor `.harness/` is free for the files of a run")]
pub struct LayoutError(pub String, pub String);

/// Where the files of a run lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    repo: PathBuf,
    own_folder: bool,
}

impl Layout {
    /// Chooses the repository's root, or `.harness/` when HEAD tracks one of our names there. `tracked` may be all tracked
    /// paths of HEAD or only those that [`Layout::candidates`] asks for.
    ///
    /// # Errors
    /// [`LayoutError`] when both places hold tracked files of these names.
    pub fn choose<'a>(repo: &Path, tracked: impl IntoIterator<Item = &'a str>) -> Result<Self, LayoutError> {
        let (mut root, mut own) = (None, None);
        for path in tracked {
            let inside = path.strip_prefix(OWN_FOLDER).and_then(|rest| rest.strip_prefix('/'));
            match inside {
                Some(rest) if claims(rest) => own = own.or(Some(path)),
                // A file or submodule where the folder must be.
                None if same(path, OWN_FOLDER) => own = own.or(Some(path)),
                None if claims(path) => root = root.or(Some(path)),
                _ => {}
            }
        }
        match (root, own) {
            (None, _) => Ok(Self { repo: repo.to_owned(), own_folder: false }),
            (Some(_), None) => Ok(Self { repo: repo.to_owned(), own_folder: true }),
            (Some(root), Some(own)) => Err(LayoutError(root.to_owned(), own.to_owned())),
        }
    }

    /// The repository's root, for a repository that cannot be looked at now.
    #[must_use]
    pub fn at_root(repo: &Path) -> Self {
        Self { repo: repo.to_owned(), own_folder: false }
    }

    /// Paths to look for in HEAD, for `git ls-tree`: with `reports` and `.harness` their contents matter too.
    #[must_use]
    pub fn candidates() -> Vec<&'static str> {
        NAMES.iter().copied().chain([REPORTS, OWN_FOLDER]).collect()
    }

    /// The repository.
    #[must_use]
    pub fn repo(&self) -> &Path {
        &self.repo
    }

    /// Folder of the files.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        if self.own_folder { self.repo.join(OWN_FOLDER) } else { self.repo.clone() }
    }

    /// Folder of the reports.
    #[must_use]
    pub fn reports(&self) -> PathBuf {
        self.folder().join(REPORTS)
    }

    /// Whether the files lie in `.harness/`; `create-launch` says so.
    #[must_use]
    pub fn in_own_folder(&self) -> bool {
        self.own_folder
    }

    /// Path of one file.
    #[must_use]
    pub fn path(&self, name: &FileName) -> PathBuf {
        self.folder().join(name.relative())
    }

    /// Anchored patterns for the marked block in `info/exclude`: our files only, so that nothing of the user's is hidden
    /// (weaknesses 43).
    #[must_use]
    pub fn exclude_patterns(&self) -> Vec<String> {
        let below = if self.own_folder { format!("/{OWN_FOLDER}/") } else { "/".to_owned() };
        let reports = ["planner-r*.json", "impl-*-a*.json", "verdict-*-a*.json"];
        let mut patterns: Vec<String> = NAMES.iter().map(|name| format!("{below}{name}")).collect();
        patterns.extend(reports.iter().map(|name| format!("{below}{REPORTS}/{name}")));
        patterns.push(format!("{below}{TEMP_PREFIX}*"));
        patterns.push(format!("{below}{REPORTS}/{TEMP_PREFIX}*"));
        patterns
    }

    /// Whether an attempt's commit must not contain this path (from the root of the repository, `/` between parts): landing
    /// it would overwrite a file of the run, or lead our writes elsewhere through a link in place of a folder.
    #[must_use]
    pub fn reserves(&self, path: &str) -> bool {
        let inside = if self.own_folder {
            if same(path, OWN_FOLDER) {
                return true;
            }
            let Some((folder, rest)) = path.split_once('/') else { return false };
            if !same(folder, OWN_FOLDER) {
                return false;
            }
            rest
        } else {
            path
        };
        match inside.split_once('/') {
            None => {
                same(inside, REPORTS) || inside.starts_with(TEMP_PREFIX) || NAMES.iter().any(|name| same(name, inside))
            }
            Some((folder, name)) if same(folder, REPORTS) => {
                ReportName::parse(name).is_some() || name.starts_with(TEMP_PREFIX)
            }
            // `tasks.json/x`: a folder where our file must be.
            Some((folder, _)) => NAMES.iter().any(|name| same(name, folder)),
        }
    }
}

/// Whether a tracked path makes a place unusable for us: one of the names, something below it, or anything in `reports`.
fn claims(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    same(first, REPORTS) || NAMES.iter().any(|name| same(name, first))
}

/// Whether two names are one file on this platform's usual file system.
fn same(a: &str, b: &str) -> bool {
    if cfg!(target_os = "macos") { a.eq_ignore_ascii_case(b) } else { a == b }
}
