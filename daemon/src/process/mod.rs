//! Every child the daemon starts: launching, walls, capture, identity, and killing whole trees.
//!
//! A child never starts as a direct child of the daemon. A small single-threaded launcher (the same binary, `exec-stage1`)
//! stands in between: it owns the session, adopts every orphan of the tree, records the output and the exit, and kills
//! what is left. It dies with the daemon, because it holds the other end of a lifeline.
//!
//! Invariant: no child outlives its launcher's record, and no process is signalled unless pid and start time match.
//!
//! This module does not decide when a child is to end; that is the caller's business.

mod capture;
mod child;
mod error;
mod identity;
pub mod launcher;
mod orphans;
mod record;
mod spawn;
mod spec;
mod table;
mod tree;
mod wall;
mod wall_namespace;
mod wall_standard;

pub use child::{Child, Exit};
pub use error::{ProcessError, SpawnError};
pub use identity::{Identity, Marker, alive, boot_id};
pub use orphans::{Found, ReapReport, end_marked, has_launcher_ancestor, processes_of_run, reap_orphans};
pub use record::{Captured, Cause, ExecFailure, ExecStep, ExitRecord};
pub use spawn::{set_launcher, spawn};
pub use spec::{Limits, OutputMode, Spec, StdinMode};
pub use wall::{Confined, Network, Wall, WallError, WallSupport, probe};
pub use wall_standard::{StandardWall, standard_wall};
