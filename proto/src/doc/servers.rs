//! `harness-servers.json`: the agent processes of a run (artifacts.md 1.7; DESIGN 7).

use serde::Serialize;
use serde_json::{Map, Value};

use super::lenient::{self, DocError};

/// The servers document: `pids` for the predecessor's readers, `servers` with whole identities.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct ServersDoc {
    /// Process ids.
    pub pids: Vec<i64>,
    /// Identities; a bare pid may belong to a stranger by now.
    pub servers: Vec<ServerDoc>,
}

/// Identity of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerDoc {
    /// Boot id of the host.
    pub boot_id: String,
    /// Value of the marker variable in its environment.
    pub marker: String,
    /// Process id.
    pub pid: i64,
    /// What it is, for people.
    pub program: String,
    /// Start time in clock ticks since boot.
    pub start_time: i64,
}

impl ServersDoc {
    /// A document of these processes, ordered by pid.
    #[must_use]
    pub fn of(mut servers: Vec<ServerDoc>) -> Self {
        servers.sort_by_key(|server| server.pid);
        Self { pids: servers.iter().map(|server| server.pid).collect(), servers }
    }

    /// Reads a document, also a predecessor's with `pids` only.
    ///
    /// # Errors
    /// [`DocError`] when it is no JSON object.
    pub fn read(text: &str) -> Result<Self, DocError> {
        let root = lenient::object(text)?;
        let list = |key: &str| root.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(Self {
            pids: list("pids").iter().filter_map(Value::as_i64).filter(|pid| *pid > 1).collect(),
            servers: list("servers").iter().filter_map(Value::as_object).filter_map(server).collect(),
        })
    }
}

fn server(root: &Map<String, Value>) -> Option<ServerDoc> {
    let pid = lenient::integer(root, "pid");
    (pid > 1).then(|| ServerDoc {
        boot_id: lenient::text(root, "boot_id"),
        marker: lenient::text(root, "marker"),
        pid,
        program: lenient::text(root, "program"),
        start_time: lenient::integer(root, "start_time"),
    })
}
