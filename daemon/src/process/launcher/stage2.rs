//! Stage 2: limits, working directory, wall, and then the program itself, in this very process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, SigmaskHow, sigprocmask};

use super::PROBE_YES;
use super::stage1::load;
use crate::process::record::{ExecFailure, ExecStep};
use crate::process::spec::{LaunchSpec, Limits};
use crate::process::wall::{self, Confined, Network, Wall};
use crate::process::wall_namespace;

/// What a shell exits with when a program cannot be run; only seen when the report got lost.
const EXIT_NOT_EXECUTED: u8 = 127;

/// Turns into the program; returns only when that fails.
pub(super) fn run(spec_path: &Path) -> ExitCode {
    let Ok(spec) = load(spec_path) else {
        return ExitCode::from(EXIT_NOT_EXECUTED);
    };
    // Opened before the wall stands and closed by the exec itself: its end without a word is success.
    // Without waiting for a reader: where there is none, stage 1 was killed, and nothing may be started any more.
    let opened = File::options().write(true).custom_flags(nix::libc::O_NONBLOCK).open(&spec.outcome);
    let Ok(mut outcome) = opened else {
        return ExitCode::from(EXIT_NOT_EXECUTED);
    };
    let failure = become_program(&spec);
    let text = serde_json::to_vec(&failure).unwrap_or_else(|_| failure.detail.into_bytes());
    // A lost report still shows as exit 127.
    drop(outcome.write_all(&text));
    ExitCode::from(EXIT_NOT_EXECUTED)
}

/// Tries to isolate this process and exits with [`PROBE_YES`] when the system lets it; see [`wall::probe`].
pub(super) fn probe() -> ExitCode {
    let nothing = Confined { read_write: Vec::new(), read_only: Vec::new(), network: Network::Denied };
    match wall_namespace::isolate(&nothing) {
        Ok(true) => ExitCode::from(PROBE_YES),
        Ok(false) | Err(_) => ExitCode::FAILURE,
    }
}

fn become_program(spec: &LaunchSpec) -> ExecFailure {
    match prepare(spec) {
        Ok(program) => execute(spec, &program),
        Err(failure) => failure,
    }
}

fn prepare(spec: &LaunchSpec) -> Result<PathBuf, ExecFailure> {
    set_limits(&spec.limits).map_err(|errno| ExecFailure::new(ExecStep::Limits, &Error::from(errno)))?;
    let at_wall = |detail: String| ExecFailure { step: ExecStep::Wall, detail, errno: None };
    if let Wall::Confined(confined) = &spec.wall {
        wall_namespace::isolate(confined)
            .map_err(|errno| at_wall(format!("the namespace could not be set up: {errno}")))?;
    }
    // Entered after the mounts are in place: a folder entered before stays on the old, now read-only mount.
    std::env::set_current_dir(&spec.cwd).map_err(|e| ExecFailure::new(ExecStep::Cwd, &e))?;
    let program = look_up(spec.argv.first().map_or(OsStr::new(""), OsString::as_os_str))?;
    wall::raise(&spec.wall).map_err(|error| at_wall(error.to_string()))?;
    if matches!(spec.wall, Wall::Confined(_)) {
        wall_namespace::drop_capabilities().map_err(|error| at_wall(error.to_string()))?;
    }
    // Stage 1 blocks signals for its signalfd; a mask is inherited through exec.
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
        .map_err(|errno| ExecFailure::new(ExecStep::Limits, &Error::from(errno)))?;
    Ok(program)
}

fn set_limits(limits: &Limits) -> Result<(), nix::errno::Errno> {
    // A core dump would put the memory of an agent, keys included, on the disk.
    setrlimit(Resource::RLIMIT_CORE, 0, 0)?;
    let wanted = [(Resource::RLIMIT_FSIZE, limits.max_file_bytes), (Resource::RLIMIT_NOFILE, limits.max_open_files)];
    for (resource, wanted) in wanted {
        if let Some(wanted) = wanted {
            let (_, hard) = getrlimit(resource)?;
            setrlimit(resource, wanted.min(hard), wanted.min(hard))?;
        }
    }
    Ok(())
}

/// Finds the program as `execvp` would, but tells "not there" from "there and not executable".
fn look_up(program: &OsStr) -> Result<PathBuf, ExecFailure> {
    if program.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut denied = None;
    for folder in std::env::split_paths(&path) {
        let candidate = folder.join(program);
        let Ok(metadata) = std::fs::metadata(&candidate) else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        if nix::unistd::access(&candidate, nix::unistd::AccessFlags::X_OK).is_ok() {
            return Ok(candidate);
        }
        denied.get_or_insert(candidate);
    }
    Err(match denied {
        Some(found) => ExecFailure {
            step: ExecStep::Exec,
            detail: format!("`{}` has no execute permission", found.display()),
            errno: Some(nix::libc::EACCES),
        },
        None => ExecFailure {
            step: ExecStep::Lookup,
            detail: format!("not in PATH `{}`", path.display()),
            errno: Some(nix::libc::ENOENT),
        },
    })
}

#[expect(clippy::disallowed_methods, reason = "the exec that every program ends in")]
fn execute(spec: &LaunchSpec, program: &Path) -> ExecFailure {
    let existed = program.exists();
    let name = spec.argv.first().map_or(OsStr::new(""), OsString::as_os_str);
    let error = Command::new(program).arg0(name).args(spec.argv.get(1..).unwrap_or_default()).exec();
    let mut failure = ExecFailure::new(ExecStep::Exec, &error);
    match error.kind() {
        ErrorKind::NotFound if existed => failure.detail = "its interpreter was not found".into(),
        ErrorKind::NotFound => failure.step = ExecStep::Lookup,
        ErrorKind::PermissionDenied if !matches!(spec.wall, Wall::Open) => {
            failure.detail = format!("{error} (not executable, or outside the sandbox)");
        }
        _ => {}
    }
    failure
}
