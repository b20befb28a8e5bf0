//! Every request that the daemon takes: one table for router, OpenAPI document and client.

/// What a route takes as body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// JSON of this schema; an absent body is `{}`.
    Json(&'static str),
    /// Raw bytes.
    Bytes,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// `GET` or `POST`; every `POST` but `tasks_validate` is a mutation.
    pub method: &'static str,
    /// Path with `{run}` and `{task}`.
    pub path: &'static str,
    /// Operation id.
    pub name: &'static str,
    /// Body.
    pub body: Body,
    /// Query parameters.
    pub query: &'static [&'static str],
    /// Schema of the answer; `event-stream` for server-sent events.
    pub answer: &'static str,
    /// One line.
    pub meaning: &'static str,
}

const REPO: &[&str] = &["repo"];
const EVENTS: &[&str] = &["repo", "since", "limit"];
const LOGS: &[&str] = &["repo", "task", "role", "attempt", "tail", "cursor"];

const fn get(
    path: &'static str,
    name: &'static str,
    query: &'static [&'static str],
    answer: &'static str,
    meaning: &'static str,
) -> Route {
    Route { method: "GET", path, name, body: Body::None, query, answer, meaning }
}

const fn post(
    path: &'static str,
    name: &'static str,
    body: Body,
    answer: &'static str,
    meaning: &'static str,
) -> Route {
    Route { method: "POST", path, name, body, query: REPO, answer, meaning }
}

/// Every route. `{run}` is an id, a unique prefix, `@last`, or `@repo` with query `repo`.
#[rustfmt::skip]
pub const ROUTES: &[Route] = &[
    get("/v1/openapi.json", "openapi", &[], "object", "this description"),
    get("/v1/daemon", "daemon_status", &[], "DaemonAnswer", "the daemon"),
    post("/v1/daemon/stop", "daemon_stop", Body::None, "DaemonStopAnswer", "stop the daemon; runs go on with the next one"),
    get("/v1/doctor", "doctor", REPO, "DoctorAnswer", "what is wrong with machine, repository and runs"),
    get("/v1/db/check", "db_check", &[], "DbCheckAnswer", "check the database"),
    post("/v1/tasks/validate", "tasks_validate", Body::Bytes, "PlanCheckAnswer", "check a tasks.json"),
    post("/v1/runs", "create_launch", Body::Json("CreateLaunch"), "CreateLaunchAnswer", "register a run"),
    get("/v1/runs", "list", &["all", "state", "repo", "limit"], "RunList", "list runs"),
    get("/v1/runs/{run}", "status", REPO, "RunView", "a run"),
    post("/v1/runs/{run}/start", "start", Body::Json("Start"), "StartAnswer", "begin or continue a run"),
    post("/v1/runs/{run}/stop", "stop", Body::Json("Stop"), "StopAnswer", "stop a run"),
    post("/v1/runs/{run}/pause", "pause", Body::None, "ControlAnswer", "no new turn"),
    post("/v1/runs/{run}/cancel", "cancel_run", Body::None, "ControlAnswer", "give a run up; final"),
    post("/v1/runs/{run}/land", "land", Body::None, "ControlAnswer", "bring accepted commits to the target branch"),
    post("/v1/runs/{run}/recover", "recover", Body::Json("Recover"), "RecoverAnswer", "list kept work or make a branch of it"),
    post("/v1/runs/{run}/rebuild", "rebuild", Body::None, "RebuildAnswer", "write the files of a run anew from the store"),
    get("/v1/runs/{run}/events", "events", EVENTS, "EventPage", "history of a run"),
    get("/v1/runs/{run}/events/stream", "events_stream", EVENTS, "event-stream", "history, then what happens"),
    get("/v1/runs/{run}/logs", "logs", LOGS, "LogPage", "log lines of a run"),
    get("/v1/runs/{run}/logs/stream", "logs_stream", LOGS, "event-stream", "log lines, then what follows"),
    get("/v1/runs/{run}/tasks/{task}", "show_task", REPO, "TaskAnswer", "a task with attempts, turns, evidence"),
    post("/v1/runs/{run}/tasks/{task}/retry", "retry", Body::Json("Retry"), "ControlAnswer", "give a task more attempts"),
    post("/v1/runs/{run}/tasks/{task}/skip", "skip", Body::Json("Skip"), "ControlAnswer", "leave a task out"),
    post("/v1/runs/{run}/tasks/{task}/cancel", "cancel_task", Body::None, "ControlAnswer", "give a task up"),
];

/// The route of an operation id.
#[must_use]
pub fn route(name: &str) -> Option<&'static Route> {
    ROUTES.iter().find(|route| route.name == name)
}

/// A path with its variables filled in, each percent-encoded.
#[must_use]
pub fn fill(path: &str, run: &str, task: &str) -> String {
    path.replace("{run}", &encode(run)).replace("{task}", &encode(task))
}

/// Percent-encodes everything but unreserved characters (and `@`, which selectors begin with).
#[must_use]
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' => out.push(char::from(byte)),
            other => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                out.push('%');
                out.push(char::from(HEX[usize::from(other >> 4)]));
                out.push(char::from(HEX[usize::from(other & 15)]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_places_are_unique() {
        let mut names: Vec<&str> = ROUTES.iter().map(|r| r.name).collect();
        let mut places: Vec<(&str, &str)> = ROUTES.iter().map(|r| (r.method, r.path)).collect();
        names.sort_unstable();
        names.dedup();
        places.sort_unstable();
        places.dedup();
        assert_eq!((names.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    }

    #[test]
    fn variables_cannot_leave_their_segment() {
        let path = route("show_task").map(|r| fill(r.path, "@last", "../x y/ä")).unwrap_or_default();
        assert_eq!(path, "/v1/runs/@last/tasks/..%2Fx%20y%2F%C3%A4");
    }
}
