//! What effects of one run need besides the effect: places, mirror, agents, environment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::input::Fault;
use harness_core::policy::Policy;
use harness_proto::ids::RunId;
use harness_proto::policy::PolicyValues;
use harness_proto::vocab::{ExecutionPolicy, Role};
use serde_json::Value;
use tokio::sync::Mutex;

use crate::agent::{AgentKind, Agents};
use crate::artifact::remove_leftovers;
use crate::config::Config;
use crate::evidence::allowed_environment;
use crate::git::{self, GitError, Identity, Mirror, RepoFacts, UserEnv};
use crate::process::{Network, StandardWall, Wall, standard_wall};
use crate::store::{LoadedRun, Store};

/// Member of the launch document that is ours: what the client knew at start.
pub(super) const CLIENT: &str = "client";

/// Everything that effects of one run share.
pub(super) struct RunContext {
    pub(super) run: RunId,
    pub(super) repo: RepoFacts,
    pub(super) mirror: Mirror,
    /// One worktree or ref operation at a time per repository (weaknesses 1).
    pub(super) repo_lock: Arc<Mutex<()>>,
    pub(super) dirs: RunDirs,
    pub(super) policy: Policy,
    pub(super) values: PolicyValues,
    pub(super) who: Identity,
    pub(super) path: OsString,
    pub(super) config: Config,
    pub(super) agents: Arc<Agents>,
    pub(super) store: Store,
}

/// Folders of one run.
#[derive(Debug, Clone)]
pub(super) struct RunDirs {
    /// The run directory.
    pub(super) root: PathBuf,
    /// Trees and TMPDIRs; emptied when the run ends.
    pub(super) work: PathBuf,
}

impl RunDirs {
    pub(super) fn new(config: &Config, run: &RunId) -> Self {
        Self { root: config.runs_dir.join(run.as_str()), work: config.work_dir().join(run.as_str()) }
    }

    pub(super) fn tree(&self, name: &str) -> PathBuf {
        self.work.join(name).join("t")
    }

    pub(super) fn tmp(&self, name: &str) -> PathBuf {
        self.work.join(name).join("tmp")
    }

    pub(super) fn scratch(&self, name: &str) -> PathBuf {
        self.work.join(name).join("s")
    }

    pub(super) fn plan(&self, name: &str) -> PathBuf {
        self.work.join(name).join("plan")
    }

    pub(super) fn evidence(&self) -> PathBuf {
        self.root.join("evidence")
    }

    pub(super) fn transcripts(&self) -> PathBuf {
        self.root.join("transcripts")
    }

    pub(super) fn land(&self) -> PathBuf {
        self.root.join("land")
    }

    pub(super) fn prompts(&self) -> PathBuf {
        self.root.join("prompts")
    }
}

/// The stable short name of a repository: 16 hex digits of the hash of its common git folder.
pub(super) fn repo_key(repo: &RepoFacts) -> String {
    use sha2::Digest as _;
    use std::os::unix::ffi::OsStrExt as _;
    let digest = sha2::Sha256::digest(repo.common_dir.as_os_str().as_bytes());
    digest.iter().take(8).map(|b| format!("{b:02x}")).collect()
}

/// Values of a stored policy.
///
/// # Errors
/// A sentence when a stored value is not of this version.
pub(super) fn values_of(policy: &Value) -> Result<PolicyValues, String> {
    let stored: BTreeMap<String, Value> = serde_json::from_value(policy.clone()).map_err(|e| e.to_string())?;
    PolicyValues::from_stored(&stored).map_err(|e| e.to_string())
}

/// A fault of git for `step`.
pub(super) fn git_fault(error: &GitError) -> Fault {
    let mut detail = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        detail = format!("{detail}: {cause}");
        source = cause.source();
    }
    Fault { code: error.code().to_owned(), detail, next: error.next(), retryable: true }
}

impl RunContext {
    /// Opens repository and mirror of a loaded run.
    ///
    /// # Errors
    /// A [`Fault`] that says what is missing.
    pub(super) async fn open(
        loaded: &LoadedRun,
        config: &Config,
        repo_lock: Arc<Mutex<()>>,
        agents: Arc<Agents>,
        store: Store,
    ) -> Result<Self, Fault> {
        let internal =
            |detail: String| Fault { code: "policy_invalid".into(), detail, next: String::new(), retryable: false };
        let values = values_of(&loaded.policy).map_err(internal)?;
        let policy = Policy::from_values(&values).map_err(internal)?;
        let run = loaded.state.head.brief.run.clone();
        let path = client_path(&loaded.launch, config);
        let (repo_path, mirrors) = (loaded.repo.path.clone(), config.repos_dir());
        let key = loaded.repo.key.clone();
        let guard = repo_lock.clone().lock_owned().await;
        let opened = blocking(move || {
            let _guard = guard;
            let repo = git::discover(&repo_path)?;
            let mirror = Mirror::ensure(&mirrors.join(format!("{key}.git")), &repo)?;
            Ok((repo, mirror))
        })
        .await;
        let (repo, mirror) = opened.map_err(|error| git_fault(&error))?;
        let dirs = RunDirs::new(config, &run);
        // What a killed daemon was about to rename; where nothing can be removed, the effects say why.
        for folder in [dirs.root.clone(), dirs.land(), dirs.prompts(), dirs.evidence(), dirs.transcripts()] {
            remove_leftovers(&folder).ok();
        }
        let who = repo.identity();
        Ok(Self {
            run,
            repo,
            mirror,
            repo_lock,
            dirs,
            policy,
            values,
            who,
            path,
            config: config.clone(),
            agents,
            store,
        })
    }

    /// The agent of a role; `--codex-bin` is part of the text.
    pub(super) fn agent(&self, role: Role) -> Result<AgentKind, Fault> {
        self.values.agent_of(role.as_str()).parse().map_err(|error: crate::agent::AgentKindError| Fault {
            code: "agent_unavailable".into(),
            detail: error.to_string(),
            next: String::new(),
            retryable: false,
        })
    }

    pub(super) fn danger(&self) -> bool {
        self.policy.execution == ExecutionPolicy::DangerFullAccess
    }

    /// Whether programs of this kind may use the network (`network.<what>`).
    pub(super) fn network(&self, what: &str) -> bool {
        self.values.flag(&format!("network.{what}"))
    }

    /// The environment of agents and evidence: an allow-list, never the daemon's own (artifacts 2b).
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        environment(&self.path, &self.values)
    }

    /// The wall around a program that works in a tree.
    pub(super) fn wall(&self, name: &str, git_dir: Option<PathBuf>, network: bool, read_only: Vec<PathBuf>) -> Wall {
        if self.danger() {
            return Wall::Open;
        }
        standard_wall(&StandardWall {
            tree: self.dirs.tree(name),
            objects_writable: git_dir.is_some(),
            git_dir,
            mirror: Some(self.mirror.path.clone()),
            alternates: vec![self.repo.common_dir.join("objects")],
            tmp: self.dirs.tmp(name),
            caches: Vec::new(),
            read_only,
            home: self.config.home.clone(),
            path_env: self.path.clone(),
            network: if network { Network::Allowed } else { Network::Denied },
        })
    }
}

/// PATH of the client that started the run, else the daemon's.
pub(super) fn client_path(launch: &Value, config: &Config) -> OsString {
    match launch[CLIENT]["path"].as_str() {
        Some(path) if !path.is_empty() => path.into(),
        _ => config.path.clone(),
    }
}

/// The user's git environment, for what is done with their configuration.
pub(super) fn user_env() -> UserEnv {
    UserEnv::from_process()
}

/// The allow-listed environment with the client's PATH.
pub(super) fn environment(path: &std::ffi::OsStr, values: &PolicyValues) -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| name != "PATH").chain([("PATH".into(), path.to_owned())]);
    allowed_environment(own, &values.list("agent.env"))
}

/// Runs synchronous git or file work off the async threads.
///
/// Cancel safety: a dropped future does not stop the work; git work is repeatable.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

/// Makes a private folder, fails with its name.
pub(super) fn make_dir(path: &Path) -> Result<(), Fault> {
    std::fs::create_dir_all(path).map_err(|error| Fault {
        code: "state_dir_unwritable".into(),
        detail: format!("cannot create {}: {error}", path.display()),
        next: "free space or fix the permissions, then start the run again".into(),
        retryable: true,
    })
}
