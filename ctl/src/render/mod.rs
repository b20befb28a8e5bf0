//! The only place that prints: data on stdout, messages on stderr (ux.md section 1).

mod human;
mod out;
mod style;
mod time;

pub(crate) use human::{brief_line, daemon_line, log_line, run, runs, stale, task};
pub(crate) use out::Out;
pub(crate) use style::{clean, closest, columns, short};
pub(crate) use time::span;
