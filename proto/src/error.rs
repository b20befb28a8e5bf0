//! What a refused request answers: problem+json with a symbolic code and the next command (DESIGN 11, corrections 18).

use serde::{Deserialize, Serialize};

use crate::exit::Exit;

/// Media type of [`Problem`].
pub const PROBLEM_JSON: &str = "application/problem+json";

/// A refusal: on the wire, in `--json`, and as the three lines `error[CODE]:` / `why:` / `next:`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Symbolic, stable; `harnessctl explain CODE` knows it.
    pub code: String,
    /// What failed, on which object.
    pub detail: String,
    /// Why.
    #[serde(default)]
    pub why: String,
    /// The command that helps.
    #[serde(default)]
    pub next: String,
    /// HTTP status.
    #[serde(default)]
    pub status: u16,
}

/// One code with what it stands for.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// Symbolic name.
    pub name: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Exit code of the client.
    pub exit: Exit,
    /// One line.
    pub meaning: &'static str,
}

const fn code(name: &'static str, status: u16, exit: Exit, meaning: &'static str) -> Code {
    Code { name, status, exit, meaning }
}

/// Every code that the control surface answers with.
#[rustfmt::skip]
pub const CODES: &[Code] = &[
    code("USAGE", 400, Exit::Usage, "the request does not have the form that it must have"),
    code("BODY_INVALID", 400, Exit::Usage, "the body is no JSON of the expected shape"),
    code("BODY_TOO_LARGE", 413, Exit::Usage, "the body is larger than the daemon takes"),
    code("PLAN_TOO_LARGE", 413, Exit::Usage, "tasks.json is larger than the daemon takes"),
    code("ROUTE_UNKNOWN", 404, Exit::Conflict, "the daemon does not know this request: it is older or newer than the client"),
    code("METHOD_NOT_ALLOWED", 405, Exit::Conflict, "the daemon does not take this method here"),
    code("PROTOCOL_MISMATCH", 426, Exit::Conflict, "client and daemon speak different protocols"),
    code("PEER_REFUSED", 403, Exit::Auth, "the daemon does not answer this process"),
    code("RUN_UNKNOWN", 404, Exit::Usage, "no run of that name"),
    code("RUN_AMBIGUOUS", 409, Exit::Usage, "several runs begin with that prefix"),
    code("TASK_UNKNOWN", 404, Exit::Usage, "the run has no such task"),
    code("RUN_ACTIVE", 409, Exit::Conflict, "another run of this repository is active"),
    code("RUN_CANCELLED", 409, Exit::Usage, "a cancelled run is final"),
    code("STATE_REFUSED", 409, Exit::Usage, "the run or task is not in a state where this can be done"),
    code("REQUEST_REUSED", 409, Exit::Usage, "the request id was used for another request"),
    code("REPO_UNUSABLE", 422, Exit::Usage, "the folder is no repository that a run can work in"),
    code("PATH_NOT_UTF8", 422, Exit::Usage, "the path is not UTF-8"),
    code("POLICY_INVALID", 422, Exit::Usage, "the policy has a wrong key, value or combination"),
    code("NOT_AVAILABLE", 422, Exit::Usage, "this is not available yet"),
    code("NO_VERIFICATION", 422, Exit::Usage, "no command could prove any work"),
    code("PLAN_INVALID", 422, Exit::Usage, "tasks.json is not a valid plan"),
    code("MANIFEST_MISSING", 422, Exit::Usage, "there is no harness-launch.json"),
    code("AGENT_MISSING", 422, Exit::Usage, "the program of the agent does not exist"),
    code("AGENT_AUTH", 422, Exit::Auth, "the agent is not logged in"),
    code("WALLS_MISSING", 422, Exit::Usage, "this machine cannot wall agents"),
    code("INDEX_CHANGED", 409, Exit::Mismatch, "the object changed in between"),
    code("STATE_LOCKED", 409, Exit::Conflict, "another daemon holds the state directory"),
    code("SCHEMA_NEWER", 409, Exit::Conflict, "the database is of a newer version"),
    code("DB_DAMAGED", 500, Exit::Config, "the database is damaged"),
    code("DISK_FULL", 507, Exit::Temporary, "no space is left"),
    code("STOPPING", 503, Exit::Temporary, "the daemon is going down"),
    code("BUSY", 503, Exit::Temporary, "the daemon cannot take this now"),
    code("TIMEOUT", 504, Exit::Temporary, "the daemon did not answer in time"),
    code("INTERNAL", 500, Exit::Unexpected, "an error that is none of the user's"),
    code("DAEMON_DOWN", 0, Exit::Unreachable, "the daemon does not run or cannot be reached"),
    code("DAEMON_REFUSED", 0, Exit::Conflict, "the daemon did not start"),
    code("DAEMON_MISSING", 0, Exit::Unreachable, "the program harnessd was not found"),
    code("WAIT_TIMEOUT", 0, Exit::Timeout, "the condition did not come true in time"),
    code("HEAD_MISMATCH", 0, Exit::Mismatch, "the head is not the expected one"),
    code("SOCKET_UNSAFE", 0, Exit::Auth, "the folder of the socket belongs to somebody else"),
    code("IO", 0, Exit::Unexpected, "a file or pipe could not be used"),
];

impl Problem {
    /// A refusal with the status of its code; 500 for a code that the table does not have.
    #[must_use]
    pub fn new(code: impl Into<String>, detail: impl Into<String>) -> Self {
        let code = code.into();
        let status = CODES.iter().find(|c| c.name == code).map_or(500, |c| c.status);
        Self { code, detail: detail.into(), why: String::new(), next: String::new(), status }
    }

    /// Adds the reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = why.into();
        self
    }

    /// Adds the command that helps.
    #[must_use]
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = next.into();
        self
    }

    /// The client's exit code; for a code of a newer daemon it follows the HTTP status.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if let Some(code) = CODES.iter().find(|c| c.name == self.code) {
            return code.exit;
        }
        match self.status {
            401 | 403 => Exit::Auth,
            426 => Exit::Conflict,
            400..=499 => Exit::Usage,
            502..=504 => Exit::Temporary,
            _ => Exit::Unexpected,
        }
    }

    /// The error object of `--json`: `{"error": {"code", "detail", "why", "next"}}` (artifacts.md 2b).
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({"error": {"code": self.code, "detail": self.detail, "why": self.why, "next": self.next}})
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_decide_status_and_exit() {
        let mut names: Vec<&str> = CODES.iter().map(|c| c.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CODES.len());
        let problem = Problem::new("RUN_UNKNOWN", "x");
        assert_eq!((problem.status, problem.exit()), (404, Exit::Usage));
        let newer = Problem { status: 403, ..Problem::new("FROM_THE_FUTURE", "x") };
        assert_eq!(newer.exit(), Exit::Auth);
    }
}
