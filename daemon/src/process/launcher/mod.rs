//! The launcher: the daemon's own binary in two hidden roles, single-threaded, started before any runtime exists.
//!
//! Stage 1 owns the tree: session, sub-reaper, output, exit record, the kill of everything left.
//! Stage 2 turns into the program: limits, working directory, wall, `exec`.
//! Two stages instead of `pre_exec`: that would need unsafe code and fork the whole daemon (measured: 47 ms at 1 GiB).

mod control;
mod drain;
mod stage1;
mod stage2;
mod supervise;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// The first argument of stage 1; the socket's peer check knows launchers by it.
pub(crate) const STAGE1: &str = "exec-stage1";
/// The first argument of stage 2.
pub(crate) const STAGE2: &str = "exec-stage2";

/// The first argument of the probe for namespaces, which a process can only try on itself.
pub(crate) const PROBE: &str = "exec-probe";
/// The probe's yes; not 0, which any other program would answer with.
pub(crate) const PROBE_YES: u8 = 73;

/// Runs a launcher stage when `args` (program name first) ask for one; `None` otherwise.
///
/// Must be called first in `main`, before any thread exists.
pub fn dispatch(args: &[OsString]) -> Option<ExitCode> {
    let stage = args.get(1)?.to_str()?;
    let spec = args.get(2).map(Path::new);
    match (stage, spec) {
        (STAGE1, Some(spec)) => Some(stage1::run(spec)),
        (STAGE2, Some(spec)) => Some(stage2::run(spec)),
        (PROBE, _) => Some(stage2::probe()),
        (STAGE1 | STAGE2, None) => Some(ExitCode::from(2)),
        _ => None,
    }
}
