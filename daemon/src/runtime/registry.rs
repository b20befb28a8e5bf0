//! All drivers of the daemon: claims runs, spawns a driver each, hands messages to them.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use harness_core::input::{Fault, Input, InputKind};
use harness_core::policy::Policy;
use harness_core::supervisor::step;
use harness_proto::api::answer::DaemonView;
use harness_proto::doc::LaunchDoc;
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use harness_proto::vocab::Lifecycle;
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use super::context::{RunContext, RunDirs, blocking, git_fault, values_of};
use super::driver::{Driver, End, Message};
use super::projector::{Parts, Projector};
use crate::agent::Agents;
use crate::api::Notice;
use crate::artifact::{DaemonIdentity, FileName, Layout};
use crate::clock;
use crate::config::Config;
use crate::git::{self, Pin};
use crate::store::{Claimed, LoadedRun, Queue as _, Store, StoreError};
use crate::tasks::Tasks;
use crate::telemetry::RunLogs;

/// Messages that may wait for a driver.
const INBOX: usize = 64;
/// Notices that a slow stream may miss; it reads the events themselves.
const NOTICES: usize = 1024;

/// What a runtime is made of.
pub struct RuntimeParts {
    /// Places.
    pub config: Config,
    /// The open store.
    pub store: Store,
    /// The home of tasks.
    pub tasks: Tasks,
    /// The daemon as it presents itself.
    pub daemon: DaemonView,
    /// Its command line.
    pub command: Vec<String>,
    /// The logs of runs.
    pub logs: RunLogs,
}

/// The drivers of this daemon; cheap to clone.
#[derive(Clone)]
pub struct Runtime {
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) config: Config,
    pub(super) store: Store,
    pub(super) tasks: Tasks,
    pub(super) agents: Arc<Agents>,
    pub(super) daemon: DaemonView,
    pub(super) command: Vec<String>,
    pub(super) logs: RunLogs,
    pub(super) notices: broadcast::Sender<Notice>,
    /// Asked to go down; `main` waits for it.
    pub(super) going_down: Arc<Notify>,
    drivers: Mutex<HashMap<RunId, mpsc::Sender<Message>>>,
    changed: Notify,
    repo_locks: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
}

impl Runtime {
    /// A runtime that drives nothing yet.
    #[must_use]
    pub fn new(parts: RuntimeParts) -> Self {
        let agents = Arc::new(Agents::new(parts.config.own_binary.clone()));
        let inner = Inner {
            config: parts.config,
            store: parts.store,
            tasks: parts.tasks,
            agents,
            daemon: parts.daemon,
            command: parts.command,
            logs: parts.logs,
            notices: broadcast::channel(NOTICES).0,
            going_down: Arc::new(Notify::new()),
            drivers: Mutex::default(),
            changed: Notify::new(),
            repo_locks: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Notified when a client asked the daemon to go down.
    #[must_use]
    pub fn going_down(&self) -> Arc<Notify> {
        self.inner.going_down.clone()
    }

    /// Takes over what a dead daemon drove, then claims from the queue until the daemon ends.
    ///
    /// # Errors
    /// [`StoreError`] when the leases cannot be taken over; later errors are logged and tried again.
    pub async fn begin(&self) -> Result<(), StoreError> {
        let owner = self.owner();
        for claimed in self.inner.store.takeover(&owner).await? {
            self.spawn(claimed);
        }
        let runtime = self.clone();
        self.inner.tasks.spawn("claim", async move { runtime.claim_loop().await });
        let runtime = self.clone();
        self.inner.tasks.spawn("notices", async move { runtime.forward_commits().await });
        let runtime = self.clone();
        self.inner.tasks.spawn("status", async move { runtime.keep_status().await });
        Ok(())
    }

    /// Ends claiming, drivers and agents; runs continue at the next start. Waits at most `limit` for them.
    pub async fn shut_down(&self, limit: Duration) {
        if !self.inner.tasks.shut_down(limit).await {
            tracing::warn!("some drivers did not end in time; their processes die with the daemon");
        }
        self.inner.agents.close_all().await;
    }

    pub(super) fn owner(&self) -> String {
        format!("harnessd {}", self.inner.daemon.pid)
    }

    pub(super) fn spawn(&self, claimed: Claimed) {
        let (sender, inbox) = mpsc::channel(INBOX);
        self.drivers().insert(claimed.run.clone(), sender);
        self.inner.changed.notify_waiters();
        let runtime = self.clone();
        self.inner.tasks.spawn("driver", async move {
            let run = claimed.run.clone();
            let end = runtime.drive(claimed, inbox).await;
            runtime.inner.logs.detach(&run);
            runtime.drivers().remove(&run);
            runtime.inner.changed.notify_waiters();
            tracing::debug!(%run, ?end, "driver gone");
        });
    }

    fn drivers(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, mpsc::Sender<Message>>> {
        // Nothing panics while it holds this lock; the map is right in any case.
        self.inner.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn driven(&self) -> Vec<RunId> {
        self.drivers().keys().cloned().collect()
    }

    /// One writer of a run's files at a time.
    pub(super) fn files_lock(&self, run: &RunId) -> Arc<tokio::sync::Mutex<()>> {
        self.repo_lock(&format!("files of {run}"))
    }

    pub(super) fn repo_lock(&self, key: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut locks = self.inner.repo_locks.lock().unwrap_or_else(PoisonError::into_inner);
        locks.entry(key.to_owned()).or_default().clone()
    }

    async fn drive(&self, claimed: Claimed, inbox: mpsc::Receiver<Message>) -> End {
        let inner = &self.inner;
        let loaded = match inner.store.load(&claimed.run).await {
            Ok(loaded) => loaded,
            Err(error) => {
                tracing::error!(run = %claimed.run, %error, "the run cannot be loaded; it is left as it is");
                return End::Broken;
            }
        };
        let opened = {
            let files = self.files_lock(&claimed.run);
            let _guard = files.lock().await;
            self.open(&loaded).await
        };
        match opened {
            Ok((ctx, projector)) => {
                let log = projector.layout().path(&FileName::RuntimeLog);
                inner.logs.attach(&claimed.run, log);
                let (store, tasks) = (inner.store.clone(), inner.tasks.clone());
                let driver =
                    Driver::new(ctx, store, tasks, loaded.state, claimed.fence, loaded.inputs, inbox, projector);
                driver.drive().await
            }
            Err(fault) => self.unavailable(claimed, loaded, fault).await,
        }
    }

    async fn open(&self, loaded: &LoadedRun) -> Result<(Arc<RunContext>, Projector), Fault> {
        let inner = &self.inner;
        let lock = self.repo_lock(&loaded.repo.key);
        let ctx = RunContext::open(loaded, &inner.config, lock, inner.agents.clone(), inner.store.clone()).await?;
        let ctx = Arc::new(ctx);
        let audit = harness_core::audit::audit(&loaded.state, &ctx.policy);
        if !audit.is_empty() {
            tracing::error!(run = %ctx.run, ?audit, "BUG: the stored state contradicts itself");
            return Err(Fault {
                code: "internal".into(),
                detail: format!("BUG: the stored state contradicts itself: {}", audit.join("; ")),
                next: "harnessctl doctor".into(),
                retryable: false,
            });
        }
        if let Some(base) = git::Oid::parse(&loaded.state.head.base) {
            let pin = ctx.clone();
            let guard = ctx.repo_lock.clone().lock_owned().await;
            blocking(move || {
                let _guard = guard;
                pin.mirror.pin(pin.run.as_str(), Pin::Base, &base)
            })
            .await
            .map_err(|error| git_fault(&error))?;
        }
        let projector = self.projector(loaded, Some(self.identity())).map_err(|detail| Fault {
            code: "files_unwritable".into(),
            detail,
            next: String::new(),
            retryable: false,
        })?;
        Ok((ctx, projector))
    }

    fn identity(&self) -> DaemonIdentity {
        let pid = u32::try_from(self.inner.daemon.pid).unwrap_or_default();
        DaemonIdentity { pid, pgid: i32::try_from(pid).unwrap_or_default(), command: self.inner.command.clone() }
    }

    /// The run cannot be driven; it fails with the reason and the lease is given back.
    async fn unavailable(&self, claimed: Claimed, mut loaded: LoadedRun, fault: Fault) -> End {
        tracing::error!(run = %claimed.run, code = fault.code, detail = fault.detail, "the run cannot be driven");
        let Ok(policy) = values_of(&loaded.policy).and_then(|v| Policy::from_values(&v)) else { return End::Broken };
        let input = Input { at: clock::now(), kind: InputKind::Unavailable(fault) };
        let result = step(&mut loaded.state, &input, &policy);
        let store = &self.inner.store;
        if let Err(error) = store.commit_step(&claimed.run, claimed.fence, Some(&input), &result, &loaded.state).await {
            tracing::error!(run = %claimed.run, %error, "the failure could not be stored");
            return End::Broken;
        }
        if let Err(error) = store.release(&claimed.run, claimed.fence, clock::now()).await {
            tracing::warn!(run = %claimed.run, %error, "the lease could not be given back");
        }
        End::AtRest
    }

    /// The writer of a run's files.
    pub(super) fn projector(&self, loaded: &LoadedRun, daemon: Option<DaemonIdentity>) -> Result<Projector, String> {
        let run = loaded.state.head.brief.run.clone();
        let dirs = RunDirs::new(&self.inner.config, &run);
        let launch = LaunchDoc::read(&loaded.launch.to_string()).map_err(|e| e.to_string())?;
        let layout = self.layout_of(loaded)?;
        std::fs::create_dir_all(&dirs.root).map_err(|e| format!("cannot create {}: {e}", dirs.root.display()))?;
        Ok(Projector::new(Parts {
            run,
            run_dir: dirs.root,
            trees: dirs.work,
            layout,
            launch,
            daemon,
            created_at: loaded.state.head.created_at,
            prose: None,
            store: self.inner.store.clone(),
        }))
    }

    /// Where a run's files lie.
    pub(super) fn layout_of(&self, loaded: &LoadedRun) -> Result<Layout, String> {
        let repo = git::discover(&loaded.repo.path).map_err(|e| e.to_string())?;
        layout(&repo)
    }

    /// Applies a control to a run: through its driver, or with a fresh fence when nobody drives it.
    pub(super) async fn control(&self, run: &RunId, kind: InputKind, halt: bool) -> Result<(), Problem> {
        loop {
            let changed = self.inner.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let driver = self.drivers().get(run).cloned();
            if let Some(inbox) = driver {
                let (reply, answer) = oneshot::channel();
                let message =
                    if halt { Message::Halt(kind.clone(), reply) } else { Message::Input(kind.clone(), reply) };
                if inbox.send(message).await.is_ok() && answer.await.is_ok() {
                    return Ok(());
                }
                if self.inner.tasks.stop().is_cancelled() {
                    return Err(Problem::new("STOPPING", "the daemon is going down").next("harnessctl daemon start"));
                }
                // The driver ended in between: wait until it is out of the map, then try without it.
                tokio::time::timeout(Duration::from_secs(5), changed).await.ok();
                continue;
            }
            match self.control_undriven(run, kind.clone()).await? {
                Undriven::Stored => return Ok(()),
                Undriven::Again => {
                    tokio::time::timeout(Duration::from_millis(200), changed).await.ok();
                }
            }
        }
    }

    async fn control_undriven(&self, run: &RunId, kind: InputKind) -> Result<Undriven, Problem> {
        let mut loaded = self.inner.store.load(run).await.map_err(|e| super::control::store_problem(&e))?;
        let invalid = |detail: String| Problem::new("INTERNAL", detail);
        let policy = values_of(&loaded.policy).and_then(|v| Policy::from_values(&v)).map_err(invalid)?;
        let input = Input { at: clock::now(), kind };
        let result = step(&mut loaded.state, &input, &policy);
        if result == harness_core::step::Step::default() {
            return Ok(Undriven::Stored);
        }
        let stored = self.inner.store.commit_control(run, loaded.fence, &input, &result, &loaded.state, None).await;
        match stored {
            Ok(_) => {}
            Err(crate::store::CommitError::Driven | crate::store::CommitError::Fenced { .. }) => {
                return Ok(Undriven::Again);
            }
            Err(crate::store::CommitError::Store(error)) => return Err(super::control::store_problem(&error)),
            Err(error) => return Err(Problem::new("INTERNAL", format!("BUG: {error}"))),
        }
        let files = self.files_lock(run);
        let _guard = files.lock().await;
        // A driver that took the run meanwhile writes these events itself; two writers would write them twice.
        if loaded.state.head.lifecycle != Lifecycle::Registered && !self.driven().contains(run) {
            match self.projector(&loaded, None) {
                Ok(mut projector) => {
                    projector.take(&result);
                    projector.flush(&loaded.state).await;
                }
                Err(error) => tracing::warn!(%run, error, "the run's files could not be written"),
            }
        }
        Ok(Undriven::Stored)
    }
}

enum Undriven {
    Stored,
    Again,
}

/// Where the files of a run in this repository lie.
pub(super) fn layout(repo: &git::RepoFacts) -> Result<Layout, String> {
    Layout::choose(&repo.top_level, repo.tracked_artifacts.iter().map(String::as_str)).map_err(|e| e.to_string())
}

/// The run directory of a run.
pub(super) fn run_dir(config: &Config, run: &RunId) -> PathBuf {
    RunDirs::new(config, run).root
}
