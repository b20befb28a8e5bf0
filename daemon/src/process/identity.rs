//! Who a process is: pid, start time, boot and marker, so that a stranger with a reused pid is never taken for ours.

use std::ffi::OsString;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::table;

/// The environment variable that names the run of a process.
pub(crate) const RUN_VARIABLE: &str = "HARNESS_RUN";
/// The environment variable that makes one launch unique.
pub(crate) const NONCE_VARIABLE: &str = "HARNESS_NONCE";

/// What a tree of processes works for; every process of the tree carries it in its environment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Marker {
    /// The run's id.
    pub run: String,
    /// The task's id; empty outside a task.
    pub task: String,
    /// The attempt, from 1; 0 outside an attempt.
    pub attempt: u32,
    /// The role, or what else the process does (`evidence`, `setup`).
    pub role: String,
    /// Unique per launch; never reused.
    pub nonce: String,
}

impl Marker {
    /// Returns a marker with a fresh nonce.
    pub fn new(run: &str, task: &str, attempt: u32, role: &str) -> Self {
        Self {
            run: run.to_owned(),
            task: task.to_owned(),
            attempt,
            role: role.to_owned(),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
        }
    }

    /// Returns the variables that carry the marker.
    pub(crate) fn variables(&self) -> [(OsString, OsString); 5] {
        [
            (RUN_VARIABLE.into(), self.run.clone().into()),
            ("HARNESS_TASK".into(), self.task.clone().into()),
            ("HARNESS_ATTEMPT".into(), self.attempt.to_string().into()),
            ("HARNESS_ROLE".into(), self.role.clone().into()),
            (NONCE_VARIABLE.into(), self.nonce.clone().into()),
        ]
    }
}

/// The launcher of one tree, named so exactly that it can be killed after a restart of the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    /// The launcher's pid.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start_time: u64,
    /// The boot it belongs to.
    pub boot_id: String,
    /// What it works for.
    pub marker: Marker,
}

/// Returns the kernel's id of this boot; empty where the kernel has none.
pub fn boot_id() -> &'static str {
    static BOOT_ID: OnceLock<String> = OnceLock::new();
    BOOT_ID.get_or_init(|| {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|text| text.trim().to_owned())
            .unwrap_or_default()
    })
}

/// Returns whether exactly this process lives; a zombie counts as dead, a reused pid is not it.
pub fn alive(identity: &Identity) -> bool {
    identity.boot_id == boot_id()
        && table::row(identity.pid).is_some_and(|row| row.start_time == identity.start_time && !row.dead)
}
