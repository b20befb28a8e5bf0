//! End to end, with the real programs over the real socket: a verb each, a promise each (style 3.4).

#![expect(clippy::unwrap_used, reason = "tests")]

mod down;
mod whole_run;
