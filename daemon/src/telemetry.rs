//! Logs: the daemon's own on standard error, and one `harness-runtime.log` for each run that it drives (corrections 41).
//!
//! An event belongs to a run when it has a field `run`. Audit events are rows of the store, not logs.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use harness_proto::event::timestamp;
use harness_proto::ids::RunId;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::clock;

/// The logs of runs, by run.
#[derive(Debug, Clone, Default)]
pub struct RunLogs {
    paths: Arc<Mutex<HashMap<String, PathBuf>>>,
}

impl RunLogs {
    /// Lines of this run go to this file from now on.
    pub fn attach(&self, run: &RunId, path: PathBuf) {
        self.lock().insert(run.to_string(), path);
    }

    /// No more lines of this run.
    pub fn detach(&self, run: &RunId) {
        self.lock().remove(run.as_str());
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, PathBuf>> {
        // A map of paths stays right whatever panicked.
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn append(&self, run: &str, line: &str) {
        let Some(path) = self.lock().get(run).cloned() else { return };
        // A log that cannot be written must not log about itself.
        if let Ok(mut file) = OpenOptions::new().append(true).create(true).open(path) {
            file.write_all(line.as_bytes()).ok();
        }
    }
}

#[derive(Default)]
struct Fields {
    run: String,
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "run" => self.run = text.trim_matches('"').to_owned(),
            "message" => self.message = text,
            name => write!(self.rest, " {name}={text}").expect("writing to a string"),
        }
    }
}

impl<S: Subscriber> Layer<S> for RunLogs {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        if fields.run.is_empty() {
            return;
        }
        let text = format!("{}{}", fields.message, fields.rest).replace(['\n', '\r'], " ");
        let line = format!("{} {} {text}\n", timestamp(clock::now()), event.metadata().level());
        self.append(&fields.run, &line);
    }
}

/// Begins to log; `RUST_LOG` chooses what.
pub fn begin(logs: &RunLogs) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let own = fmt::layer().with_writer(std::io::stderr).with_ansi(false).with_target(false);
    // A second call (in tests) finds a subscriber: the first stays.
    tracing_subscriber::registry().with(filter).with(own).with(logs.clone()).try_init().ok();
}
