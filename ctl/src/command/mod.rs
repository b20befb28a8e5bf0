//! A verb each; the module of a verb holds its arguments and what it does.

pub(crate) mod cancel;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod create_launch;
pub(crate) mod daemon;
pub(crate) mod db;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod land;
pub(crate) mod launch;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod pause;
pub(crate) mod rebuild;
pub(crate) mod recover;
pub(crate) mod resume;
pub(crate) mod retry;
pub(crate) mod run;
pub(crate) mod show;
pub(crate) mod skip;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod tasks;
pub(crate) mod version;
pub(crate) mod wait;
mod welcome;

pub(crate) use dispatch::{controlled, dispatch};
