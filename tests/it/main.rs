//! End to end, with the real programs over the real socket: a verb each, a promise each (style 3.4).

#![expect(clippy::unwrap_used, reason = "tests")]

mod bench;
mod down;
mod files;
mod lies;
mod prepared;
mod reverts;
mod whole_run;
