//! From the command line to a daemon that answers: lock, store, orphans, runs, socket; and the way down.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use harness_proto::api::PROTOCOL;
use harness_proto::api::answer::DaemonView;
use harness_proto::error::Problem;
use harness_proto::event::timestamp;
use harness_proto::exit::Exit;
use harness_proto::place::SOCKET_RECORD;
use tokio::signal::unix::{SignalKind, signal};

use crate::api::{self, App, Limits};
use crate::artifact::{remove_leftovers, write_atomic};
use crate::clock;
use crate::config::Config;
use crate::git;
use crate::process::{self, Identity};
use crate::runtime::{Runtime, RuntimeParts};
use crate::store::Store;
use crate::tasks::Tasks;
use crate::telemetry::{self, RunLogs};

/// How long drivers and their agents get to end.
const DRAIN: Duration = Duration::from_secs(20);
/// How long git commands of a dead daemon may take to end by themselves; almost all need milliseconds.
const GIT_PATIENCE: Duration = Duration::from_secs(10);
/// How long the lock of a daemon that is being killed is waited for: its last child may hold it until it is executed.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Runs agents unattended and lets only proven work reach your branch.
#[derive(Debug, Parser)]
#[command(name = "harnessd", version, about)]
struct Args {
    /// Become a session of its own first, so that closing the terminal does not end the daemon
    #[arg(long)]
    detached: bool,
}

/// The daemon in the foreground until a signal or `daemon stop` ends it.
#[must_use]
pub fn main(args: &[OsString]) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // A closed pipe is no reason to fail differently.
            error.print().ok();
            return ExitCode::from(if error.use_stderr() { Exit::Usage.code() } else { Exit::Success.code() });
        }
    };
    if args.detached {
        // It fails only when we lead a group already, which is as good.
        nix::unistd::setsid().ok();
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            let mut err = std::io::stderr();
            // Nowhere else to say it.
            write!(err, "error[{}]: {}\nwhy:  {}\nnext: {}\n", problem.code, problem.detail, problem.why, problem.next)
                .ok();
            ExitCode::from(problem.exit().code())
        }
    }
}

fn run() -> Result<(), Problem> {
    let config = Config::from_env().map_err(|e| Problem::new("USAGE", e.to_string()).why(e.why()).next(e.next()))?;
    let lock = lock(&config)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Problem::new("INTERNAL", "the async runtime cannot be built").why(e.to_string()))?;
    let result = runtime.block_on(serve(config));
    runtime.shutdown_timeout(Duration::from_secs(2));
    drop(lock);
    result
}

/// One daemon per state directory, by an advisory lock that is held for life.
///
/// A lock that a dying daemon's child still holds is waited for; one whose holder answers is not: a daemon that waited would
/// come up after the other was stopped, when nobody wants it any more.
fn lock(config: &Config) -> Result<File, Problem> {
    let state_dir = config.state_dir.as_path();
    let answers = || std::os::unix::net::UnixStream::connect(&config.socket.path).is_ok();
    let io = |what: &str, e: std::io::Error| {
        Problem::new("IO", format!("{what} {}", state_dir.display()))
            .why(e.to_string())
            .next("check its permissions, or set HARNESS_STATE_DIR")
    };
    DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(|e| io("cannot make", e))?;
    let path = state_dir.join("harnessd.lock");
    let mut file = OpenOptions::new()
        .create(true)
        .read(true)
        .write(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|e| io("cannot lock", e))?;
    let begun = Instant::now();
    let mut locked = file.try_lock();
    while matches!(locked, Err(TryLockError::WouldBlock)) && begun.elapsed() < LOCK_PATIENCE && !answers() {
        // why: paces the tries; nothing tells when an advisory lock is free
        std::thread::sleep(Duration::from_millis(20));
        locked = file.try_lock();
    }
    match locked {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).ok();
            return Err(Problem::new(
                "STATE_LOCKED",
                format!("{} is in use by {}", state_dir.display(), holder.trim()),
            )
            .why("one daemon works on a state directory")
            .next("harnessctl daemon status"));
        }
        Err(TryLockError::Error(e)) => return Err(io("cannot lock", e)),
    }
    let name = format!("harnessd pid {}\n", std::process::id());
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| file.write_all(name.as_bytes()))
        .map_err(|e| io("cannot write in", e))?;
    Ok(file)
}

async fn serve(config: Config) -> Result<(), Problem> {
    let logs = RunLogs::default();
    telemetry::begin(&logs);
    process::set_launcher(&config.own_binary);
    let store = Store::open(&config.state_dir).await.map_err(|e| store_problem(&e))?;
    git::own_children(&config.state_dir);
    // Left of a killed daemon; the state directory is ours alone.
    remove_leftovers(&config.state_dir).map_err(|e| Problem::new("IO", e.to_string()))?;
    reap(&store).await?;
    settle_git(&config).await?;
    let listener = api::bind(&config.socket).map_err(|e| {
        Problem::new("DAEMON_REFUSED", e.to_string())
            .why("the socket cannot be used")
            .next("set HARNESS_SOCKET to another path")
    })?;
    let record = format!("{}\n", config.socket.path.display());
    write_atomic(&config.state_dir.join(SOCKET_RECORD), record.as_bytes())
        .map_err(|e| Problem::new("IO", e.to_string()).next("free space in the state directory"))?;
    let tasks = Tasks::new();
    let parts = RuntimeParts {
        daemon: view(&config),
        command: std::env::args().collect(),
        config: config.clone(),
        store: store.clone(),
        tasks: tasks.clone(),
        logs,
    };
    let runtime = Runtime::new(parts);
    runtime.begin().await.map_err(|e| store_problem(&e))?;
    let handlers = tokio_util::task::TaskTracker::new();
    let streams = tokio_util::sync::CancellationToken::new();
    let app = App::new(Arc::new(runtime.clone()), streams.clone(), handlers.clone());
    let ancestry: api::Ancestry = Arc::new(process::has_launcher_ancestor);
    tracing::info!(socket = %config.socket.path.display(), state = %config.state_dir.display(), "harnessd answers");
    let serving = tasks.spawn("serve", api::serve(listener, app, ancestry, Limits::standard()));
    wait_for_end(&runtime).await?;
    tracing::info!("harnessd goes down; runs continue at its next start");
    streams.cancel();
    handlers.close();
    runtime.shut_down(DRAIN).await;
    if tokio::time::timeout(DRAIN, handlers.wait()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    drop(serving);
    runtime.write_status(false).await;
    for gone in [config.socket.path, config.state_dir.join(SOCKET_RECORD)] {
        // The next daemon replaces what cannot be removed.
        std::fs::remove_file(gone).ok();
    }
    drop(runtime);
    store.close().await;
    Ok(())
}

/// Until a signal or a client asks the daemon to go down. A second signal ends it at once.
async fn wait_for_end(runtime: &Runtime) -> Result<(), Problem> {
    let signals =
        |kind| signal(kind).map_err(|e| Problem::new("INTERNAL", "signals cannot be watched").why(e.to_string()));
    let (mut term, mut int) = (signals(SignalKind::terminate())?, signals(SignalKind::interrupt())?);
    let asked = runtime.going_down();
    // Cancel safe: signals and a notification.
    tokio::select! {
        _ = term.recv() => {}
        _ = int.recv() => {}
        () = asked.notified() => {}
    }
    Ok(())
}

fn view(config: &Config) -> DaemonView {
    DaemonView {
        pid: i64::from(std::process::id()),
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL,
        alive: true,
        started_at: timestamp(clock::now()),
        state_dir: config.state_dir.display().to_string(),
        socket: config.socket.path.display().to_string(),
        disk_free_percent: 0,
        driving: 0,
    }
}

/// Ends what an earlier daemon left: only processes that match by pid, start time, boot and marker.
async fn reap(store: &Store) -> Result<(), Problem> {
    let rows = store.processes(None).await.map_err(|e| store_problem(&e))?;
    let known: Vec<Identity> =
        rows.iter().filter_map(|row| serde_json::from_value(row.identity.clone()).ok()).collect();
    let report = tokio::task::spawn_blocking(move || process::reap_orphans(&known))
        .await
        .map_err(|e| Problem::new("INTERNAL", "BUG: reaping orphans panicked").why(e.to_string()))?;
    tracing::info!(?report, "looked for orphans");
    for row in rows {
        store.remove_process(row.id).await.map_err(|e| store_problem(&e))?;
    }
    Ok(())
}

/// Waits for git commands that outlived the last daemon, then removes the locks of those that were killed.
///
/// Nothing else may touch a mirror meanwhile: no run is driven yet, and every agent is gone.
async fn settle_git(config: &Config) -> Result<(), Problem> {
    let (state_dir, mirrors) = (config.state_dir.clone(), config.repos_dir());
    let settled = tokio::task::spawn_blocking(move || {
        let report = process::end_marked(git::OWNER_VARIABLE, state_dir.as_os_str(), GIT_PATIENCE);
        if report != process::ReapReport::default() {
            tracing::warn!(?report, "git commands of the last daemon did not end");
        }
        for mirror in std::fs::read_dir(mirrors).into_iter().flatten().flatten() {
            if let Err(error) = git::clear_stale_locks(&mirror.path()) {
                tracing::warn!(mirror = %mirror.path().display(), %error, "stale locks cannot be removed");
            }
        }
    });
    settled.await.map_err(|e| Problem::new("INTERNAL", "BUG: looking for old git commands panicked").why(e.to_string()))
}

fn store_problem(error: &crate::store::StoreError) -> Problem {
    let code = match error {
        crate::store::StoreError::NewerSchema { .. } => "SCHEMA_NEWER",
        crate::store::StoreError::Corrupt { .. } => "DB_DAMAGED",
        crate::store::StoreError::Full(_) => "DISK_FULL",
        _ => "INTERNAL",
    };
    Problem::new(code, error.to_string()).why(error.code()).next(error.next())
}
