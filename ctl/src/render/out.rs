//! Where output goes.

use std::io::{IsTerminal as _, Write as _};

use harness_proto::error::Problem;
use harness_proto::explain::explain;
use serde::Serialize;

use super::style::{Style, clean};
use crate::cli::{Color, Global};
use crate::failure::Failure;

/// The output of this process.
#[derive(Debug, Clone)]
pub(crate) struct Out {
    /// `--json`.
    pub(crate) json: bool,
    /// `--quiet`.
    pub(crate) quiet: bool,
    /// How stdout looks.
    pub(crate) style: Style,
    /// How stderr looks.
    messages: Style,
    /// Whether stdout is a terminal.
    pub(crate) terminal: bool,
}

impl Out {
    /// The output that these options ask for.
    pub(crate) fn new(global: &Global) -> Self {
        let terminal = std::io::stdout().is_terminal();
        Self {
            json: global.json,
            quiet: global.quiet,
            style: Style { color: colored(global.color, terminal) },
            messages: Style { color: colored(global.color, std::io::stderr().is_terminal()) },
            terminal,
        }
    }

    /// Output before the options are known.
    pub(crate) fn plain(json: bool) -> Self {
        let plain = Style { color: false };
        Self { json, quiet: false, style: plain, messages: plain, terminal: false }
    }

    /// Data for people or pipes, as it is.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = std::io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| {
            if !text.is_empty() && !text.ends_with('\n') {
                stdout.write_all(b"\n")?;
            }
            stdout.flush()
        });
        written.map_err(|error| match error.kind() {
            std::io::ErrorKind::BrokenPipe => Failure::Pipe,
            _ => Problem::new("IO", "standard output cannot be written").why(error.to_string()).into(),
        })
    }

    /// One object, indented, keys sorted (artifacts.md 2).
    pub(crate) fn object<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_value(value).and_then(|v| serde_json::to_string_pretty(&v));
        self.data(&text.map_err(|e| Problem::new("INTERNAL", "the answer cannot be written").why(e.to_string()))?)
    }

    /// One object on one line, for streams.
    pub(crate) fn line<T: Serialize>(&self, value: &T) -> Result<(), Failure> {
        let text = serde_json::to_string(value);
        self.data(&text.map_err(|e| Problem::new("INTERNAL", "the answer cannot be written").why(e.to_string()))?)
    }

    /// The answer of a verb: its object, its id with `--quiet`, else words.
    pub(crate) fn answer<T: Serialize>(
        &self,
        value: &T,
        id: &str,
        words: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if self.json {
            self.object(value)
        } else if self.quiet {
            self.data(id)
        } else {
            self.data(&words())
        }
    }

    /// A message for whoever watches.
    pub(crate) fn note(&self, text: &str) {
        if !self.quiet {
            message(&format!("{}\n", clean(text)));
        }
    }

    /// A refusal: three lines on stderr, and with `--json` the object on stdout too.
    pub(crate) fn problem(&self, problem: &Problem) {
        let problem = &complete(problem.clone());
        if self.json {
            // When stdout is gone too there is nobody to tell; the exit code stays.
            self.object(&problem.to_json()).ok();
        }
        let mut text =
            format!("{} {}\n", self.messages.red(&format!("error[{}]:", clean(&problem.code))), clean(&problem.detail));
        if !problem.why.is_empty() {
            text.push_str(&format!("why:  {}\n", clean(&problem.why)));
        }
        if !problem.next.is_empty() {
            text.push_str(&format!("next: {}\n", clean(&problem.next)));
        }
        message(&text);
    }
}

/// A refusal always has three lines: what its author left out comes from the code's explanation.
fn complete(mut problem: Problem) -> Problem {
    let known = explain(&problem.code);
    if problem.why.is_empty() {
        known.map_or("the daemon gave no reason", |row| row.what).clone_into(&mut problem.why);
    }
    if problem.next.is_empty() {
        problem.next = match known {
            Some(row) => format!("harnessctl explain {}", row.code),
            None => "harnessctl doctor".to_owned(),
        };
    }
    problem
}

/// A closed stderr is nobody's problem.
fn message(text: &str) {
    std::io::stderr().lock().write_all(text.as_bytes()).ok();
}

fn colored(when: Color, terminal: bool) -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto if set("NO_COLOR") => false,
        Color::Auto if std::env::var_os("CLICOLOR_FORCE").is_some_and(|v| v != "0" && !v.is_empty()) => true,
        Color::Auto => terminal && !dumb,
    }
}
