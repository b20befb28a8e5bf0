//! Reads.

use axum::extract::{Path, State};
use axum::response::Response;
use harness_proto::api::MAX_PLAN_BYTES;
use harness_proto::api::answer::DaemonAnswer;
use harness_proto::api::request::{EventsQuery, ListQuery, LogsQuery, RepoQuery};
use harness_proto::error::Problem;
use harness_proto::ids::RunId;

use super::reject::{Asked, Bytes, respond};
use super::router::App;
use super::seam::Selector;

/// Events of one page when the caller names no limit, and the most that one page has.
const PAGE: u32 = 1_000;

/// The selector of a path segment and its query.
pub(super) fn selector(segment: &str, repo: Option<String>) -> Result<Selector, Problem> {
    match segment {
        "@last" => Ok(Selector::Last),
        "@repo" => match repo {
            Some(path) if path.starts_with('/') => Ok(Selector::Repo(path)),
            Some(path) => Err(Problem::new("USAGE", format!("`{path}` is no absolute path"))),
            None => Err(Problem::new("USAGE", "`@repo` needs the query `repo`")),
        },
        other if other.starts_with('@') => {
            Err(Problem::new("USAGE", format!("`{other}` names no run: use an id, a prefix, @last or --repo")))
        }
        other => Ok(Selector::Id(other.to_owned())),
    }
}

/// The run that a request is about.
pub(super) async fn resolve(app: &App, segment: &str, repo: Option<String>) -> Result<RunId, Problem> {
    app.control.resolve(selector(segment, repo)?).await
}

pub(super) async fn daemon_status(State(app): State<App>) -> Response {
    let daemon = app.control.daemon_status().await;
    respond(daemon.map(|daemon| DaemonAnswer { schema: "harness.daemon/1".into(), daemon }))
}

pub(super) async fn doctor(State(app): State<App>, Asked(query): Asked<RepoQuery>) -> Response {
    respond(app.control.doctor(query.repo).await)
}

pub(super) async fn db_check(State(app): State<App>) -> Response {
    respond(app.control.db_check().await)
}

pub(super) async fn tasks_validate(State(app): State<App>, Bytes(bytes): Bytes) -> Response {
    if bytes.len() > MAX_PLAN_BYTES {
        let problem = Problem::new("PLAN_TOO_LARGE", format!("tasks.json has {} bytes", bytes.len()))
            .why(format!("a plan may have at most {MAX_PLAN_BYTES} bytes"))
            .next("split the goal into several runs");
        return respond::<()>(Err(problem));
    }
    respond(app.control.tasks_validate(bytes).await)
}

pub(super) async fn list(State(app): State<App>, Asked(query): Asked<ListQuery>) -> Response {
    respond(app.control.list(query).await)
}

pub(super) async fn status(
    State(app): State<App>,
    Path(run): Path<String>,
    Asked(query): Asked<RepoQuery>,
) -> Response {
    let answer = async { app.control.status(resolve(&app, &run, query.repo).await?).await };
    respond(answer.await)
}

pub(super) async fn show_task(
    State(app): State<App>,
    Path((run, task)): Path<(String, String)>,
    Asked(query): Asked<RepoQuery>,
) -> Response {
    let answer = async { app.control.show_task(resolve(&app, &run, query.repo).await?, task).await };
    respond(answer.await)
}

pub(super) async fn events(
    State(app): State<App>,
    Path(run): Path<String>,
    Asked(query): Asked<EventsQuery>,
) -> Response {
    let limit = if query.limit == 0 { PAGE } else { query.limit.min(PAGE) };
    let answer = async { app.control.events_since(resolve(&app, &run, query.repo).await?, query.since, limit).await };
    respond(answer.await)
}

pub(super) async fn logs(
    State(app): State<App>,
    Path(run): Path<String>,
    Asked(mut query): Asked<LogsQuery>,
) -> Response {
    let repo = query.repo.take();
    let answer = async { app.control.logs(resolve(&app, &run, repo).await?, query).await };
    respond(answer.await)
}
