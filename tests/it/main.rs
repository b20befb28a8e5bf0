//! End to end, with the real programs over the real socket: a verb each, a promise each (style 3.4).

#![expect(clippy::unwrap_used, reason = "tests")]

mod bench;
mod daemons;
mod down;
mod edits;
mod faults;
mod files;
mod landing;
mod lies;
mod prepared;
mod proof;
mod replay;
mod repositories;
mod reverts;
mod verbs;
mod walls;
mod whole_run;
