//! Stage 1: prepares session, signals and outputs, starts stage 2, and leaves the exit record.

use std::fs::File;
use std::io::{PipeReader, pipe};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::fcntl_setpipe_size;

use super::STAGE2;
use super::control::Control;
use super::drain::Drain;
use super::supervise::Supervision;
use crate::process::capture::CappedFile;
use crate::process::record::{Cause, ExecFailure, ExecStep, ExitRecord};
use crate::process::spec::{LaunchSpec, OutputMode};

/// How much an output pipe holds; the most that an ordinary user may ask for.
const PIPE_BYTES: usize = 1 << 20;

/// Runs one tree from start to end.
pub(super) fn run(spec_path: &Path) -> ExitCode {
    let spec = match load(spec_path) {
        Ok(spec) => spec,
        Err(error) => {
            Control::say(&format!("broken {error}"));
            return ExitCode::from(2);
        }
    };
    let record = match start(&spec, spec_path) {
        Ok(supervision) => supervision.run(),
        Err(failure) => not_started(&spec, failure),
    };
    let failed = record.failure.is_some();
    if let Err(error) = record.store(&spec.record) {
        Control::say(&format!("broken {error}"));
        return ExitCode::from(3);
    }
    // The launcher's own files have served; leftovers would be harmless.
    std::fs::remove_file(&spec.outcome).ok();
    std::fs::remove_file(spec_path).ok();
    if failed {
        Control::say("failed");
    }
    ExitCode::SUCCESS
}

/// Reads the spec that the daemon left.
pub(super) fn load(path: &Path) -> std::io::Result<LaunchSpec> {
    Ok(serde_json::from_slice(&std::fs::read(path)?)?)
}

fn not_started(spec: &LaunchSpec, failure: ExecFailure) -> ExitRecord {
    let mut record = ExitRecord::new(spec.marker.clone(), Cause::NotStarted);
    record.failure = Some(failure);
    record
}

fn start<'spec>(spec: &'spec LaunchSpec, spec_path: &Path) -> Result<Supervision<'spec>, ExecFailure> {
    let signals = own_the_tree().map_err(|e| ExecFailure::new(ExecStep::Launcher, &e))?;
    let at_output = |e| ExecFailure::new(ExecStep::Output, &e);
    let (stdout, stdout_drain) = output(&spec.stdout).map_err(at_output)?;
    let (stderr, stderr_drain) = output(&spec.stderr).map_err(at_output)?;
    let outcome = outcome_fifo(&spec.outcome).map_err(|e| ExecFailure::new(ExecStep::Launcher, &e))?;
    let stderr = match spec.stderr {
        // Our own standard error is the lifeline; it never reaches the program.
        OutputMode::Pipe => Stdio::null(),
        OutputMode::Discard | OutputMode::File { .. } => stderr,
    };
    let main = stage2(spec_path, stdout, stderr).map_err(|e| ExecFailure::new(ExecStep::Launcher, &e))?;
    // The program must be the only holder of its pipes, so that their ends are seen on both sides.
    let () = release_standard_streams().map_err(|e| ExecFailure::new(ExecStep::Launcher, &e))?;
    Ok(Supervision::new(spec, signals, outcome, main, [stdout_drain, stderr_drain]))
}

/// Makes this process the root of everything the program will start.
fn own_the_tree() -> std::io::Result<SignalFd> {
    // A session of our own: no terminal can signal the tree. Being a leader already is as good.
    if let Err(error) = nix::unistd::setsid()
        && error != nix::errno::Errno::EPERM
    {
        return Err(error.into());
    }
    nix::sys::prctl::set_child_subreaper(true)?;
    let mut mask = SigSet::empty();
    for signal in [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        mask.add(signal);
    }
    mask.thread_block()?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    Ok(SignalFd::with_flags(&mask, flags)?)
}

fn output(mode: &OutputMode) -> std::io::Result<(Stdio, Option<Drain>)> {
    match mode {
        OutputMode::Pipe => Ok((Stdio::inherit(), None)),
        OutputMode::Discard => Ok((Stdio::null(), None)),
        OutputMode::File { path, cap_bytes } => {
            let file = CappedFile::create(path, *cap_bytes)?;
            let (reader, writer) = pipe()?;
            nonblocking(&reader)?;
            // Fewer switches between writer and launcher; a refusal (the user's limit) costs only speed.
            fcntl_setpipe_size(&reader, PIPE_BYTES).ok();
            Ok((Stdio::from(writer), Some(Drain::new(reader, file))))
        }
    }
}

fn nonblocking(reader: &PipeReader) -> std::io::Result<()> {
    Ok(fcntl_setfl(reader.as_fd(), OFlags::NONBLOCK)?)
}

/// Opens the reading end of the FIFO on which stage 2 reports.
///
/// A FIFO and not an inherited pipe: a descriptor by number cannot be taken over without unsafe code.
fn outcome_fifo(path: &Path) -> std::io::Result<File> {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRUSR | nix::sys::stat::Mode::S_IWUSR)?;
    File::options().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)
}

#[expect(clippy::disallowed_methods, reason = "the launcher's one spawn site")]
fn stage2(spec_path: &Path, stdout: Stdio, stderr: Stdio) -> std::io::Result<u32> {
    let child = Command::new("/proc/self/exe")
        .arg0("harnessd")
        .arg(STAGE2)
        .arg(spec_path)
        .stdin(Stdio::inherit())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0)
        .spawn()?;
    // Never waited for through this handle: the sub-reaper loop reaps it with all others.
    Ok(child.id())
}

fn release_standard_streams() -> std::io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&null)?;
    nix::unistd::dup2_stdout(&null)?;
    Ok(())
}
