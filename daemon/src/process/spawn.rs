//! Starting a tree: the one place where the daemon creates a process for agents and evidence.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

use super::child::Child;
use super::error::SpawnError;
use super::identity::{Identity, boot_id};
use super::launcher::STAGE1;
use super::orphans::reap_orphans;
use super::record::{ExecFailure, ExecStep, ExitRecord};
use super::spec::{LaunchSpec, OutputMode, Spec, StdinMode};
use super::table;
use crate::failpoint;

static LAUNCHER: OnceLock<PathBuf> = OnceLock::new();

/// How long the launcher may take from its start to the program's; only a broken machine needs longer.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Names the binary that serves as the launcher; the first call wins.
///
/// The daemon needs no call: it is its own launcher. `HARNESS_LAUNCHER` in the environment is looked at otherwise.
pub fn set_launcher(path: &Path) {
    LAUNCHER.get_or_init(|| path.to_owned());
}

/// Returns the launcher, resolved once, because the binary may be replaced while we run.
pub(crate) fn launcher() -> Result<&'static Path, SpawnError> {
    if let Some(path) = LAUNCHER.get() {
        return Ok(path);
    }
    let path = match std::env::var_os("HARNESS_LAUNCHER") {
        Some(path) => PathBuf::from(path),
        None => own_binary().map_err(|e| failed("resolving the own binary", e))?,
    };
    Ok(LAUNCHER.get_or_init(|| path))
}

/// Returns this very binary: also after an upgrade in place, when the path names another one or nothing.
#[cfg(target_os = "linux")]
fn own_binary() -> std::io::Result<PathBuf> {
    Ok(PathBuf::from(format!("/proc/{}/exe", std::process::id())))
}

/// Returns the path of this binary.
#[cfg(not(target_os = "linux"))]
fn own_binary() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

fn failed(operation: &'static str, source: std::io::Error) -> SpawnError {
    SpawnError::Launcher { operation, source }
}

/// Starts a tree and returns once the program itself has been executed, or why it could not be.
///
/// Dropping the returned child kills the tree, as does the end of the daemon.
///
/// # Errors
/// See [`SpawnError`]; nothing is left running after an error.
///
/// Cancel safety: when the future is dropped, the lifeline closes and the launcher kills what it started.
pub async fn spawn(spec: Spec) -> Result<Child, SpawnError> {
    if spec.argv.is_empty() {
        return Err(SpawnError::EmptyCommand);
    }
    let spec_path = write_launch_spec(&spec)?;
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(|e| failed("making the lifeline", e))?;
    ours.set_nonblocking(true).map_err(|e| failed("making the lifeline", e))?;
    let lifeline = UnixStream::from_std(ours).map_err(|e| failed("making the lifeline", e))?;
    failpoint::hit("process.spawn.before");
    let mut process = start_launcher(&spec, &spec_path, theirs)?;
    failpoint::hit("process.spawn.after");
    let pid = process.id().unwrap_or_default();
    let identity = Identity {
        pid,
        start_time: table::row(pid).map_or(0, |row| row.start_time),
        boot_id: boot_id().to_owned(),
        marker: spec.marker.clone(),
    };
    let (reader, writer) = lifeline.into_split();
    let mut reader = BufReader::new(reader);
    let word = first_word(&mut reader).await;
    if word != "started" {
        drop(writer);
        drop(reader);
        let status = process.wait().await.map_err(|e| failed("waiting for the launcher", e))?;
        // A launcher that was killed in between leaves what it had started by then.
        let killing = tokio::task::spawn_blocking(move || reap_orphans(&[identity]));
        drop(killing.await);
        return Err(why_not(&spec, &word, status));
    }
    let stdout = process.stdout.take();
    let mut stdin = process.stdin.take();
    let mut feeding = JoinSet::new();
    if let StdinMode::Bytes(bytes) = spec.stdin
        && let Some(mut pipe) = stdin.take()
    {
        feeding.spawn(async move {
            // A child that ends or closes its input early is no failure of ours.
            drop(pipe.write_all(&bytes).await);
        });
    }
    Ok(Child::new(process, identity, spec.record, (reader, writer), stdin, stdout, feeding))
}

/// Reads the launcher's first word; empty when it ended without one.
async fn first_word(reader: &mut BufReader<tokio::net::unix::OwnedReadHalf>) -> String {
    let mut line = String::new();
    match tokio::time::timeout(START_LIMIT, reader.read_line(&mut line)).await {
        Ok(Ok(_)) => line.trim_end().to_owned(),
        Ok(Err(error)) => format!("broken {error}"),
        Err(_) => format!("broken no answer within {} s", START_LIMIT.as_secs()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the daemon's spawn site for trees")]
fn start_launcher(
    spec: &Spec,
    spec_path: &Path,
    lifeline: std::os::unix::net::UnixStream,
) -> Result<tokio::process::Child, SpawnError> {
    let stdin = match spec.stdin {
        StdinMode::Null => Stdio::null(),
        StdinMode::Pipe | StdinMode::Bytes(_) => Stdio::piped(),
    };
    let stdout = match spec.stdout {
        OutputMode::Pipe => Stdio::piped(),
        OutputMode::Discard | OutputMode::File { .. } => Stdio::null(),
    };
    tokio::process::Command::new(launcher()?)
        .arg0("harnessd")
        .arg(STAGE1)
        .arg(spec_path)
        .env_clear()
        .envs(spec.env.iter().map(|(key, value)| (key, value)))
        .envs(spec.marker.variables())
        .current_dir("/")
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::from(OwnedFd::from(lifeline)))
        .process_group(0)
        .spawn()
        .map_err(|e| failed("starting the launcher", e))
}

/// Leaves the launcher's part of the spec in the scratch folder.
fn write_launch_spec(spec: &Spec) -> Result<PathBuf, SpawnError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&spec.scratch)
        .map_err(|e| failed("creating the scratch folder", e))?;
    match std::fs::remove_file(&spec.record) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(failed("removing an old exit record", error));
        }
        Ok(()) | Err(_) => {}
    }
    let nonce = &spec.marker.nonce;
    let launch = LaunchSpec {
        argv: spec.argv.clone(),
        cwd: spec.cwd.clone(),
        stdout: spec.stdout.clone(),
        stderr: spec.stderr.clone(),
        wall: spec.wall.clone(),
        limits: spec.limits.clone(),
        record: spec.record.clone(),
        outcome: spec.scratch.join(format!("{nonce}.outcome")),
        marker: spec.marker.clone(),
    };
    let path = spec.scratch.join(format!("{nonce}.json"));
    let mut file = std::fs::File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| failed("writing the launch spec", e))?;
    serde_json::to_writer(&mut file, &launch).map_err(|e| failed("writing the launch spec", e.into()))?;
    Ok(path)
}

/// Turns the launcher's record into the caller's error.
fn why_not(spec: &Spec, word: &str, status: std::process::ExitStatus) -> SpawnError {
    let record = match ExitRecord::load(&spec.record) {
        Ok(record) => record,
        Err(error) => return failed("reading the exit record", error),
    };
    let Some(failure) = record.and_then(|record| record.failure) else {
        return SpawnError::LauncherFailed { detail: format!("{status}, last word `{word}`") };
    };
    let program = spec.argv.first().map(OsString::as_os_str).unwrap_or_default().to_string_lossy().into_owned();
    let ExecFailure { step, detail, .. } = failure;
    match step {
        ExecStep::Launcher => SpawnError::LauncherFailed { detail },
        ExecStep::Output => SpawnError::BadOutput { detail },
        ExecStep::Cwd => SpawnError::BadCwd { cwd: spec.cwd.clone(), detail },
        ExecStep::Limits => SpawnError::BadLimit { detail },
        ExecStep::Wall => SpawnError::WallUnavailable { detail },
        ExecStep::Lookup => SpawnError::MissingProgram { program, detail },
        ExecStep::Exec => SpawnError::NotExecutable { program, detail },
    }
}
