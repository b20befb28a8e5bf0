//! Mutations: each resolves its run, then asks the runtime on a task of its own.

use std::future::Future;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use harness_proto::api::request::{CreateLaunch, Recover, RepoQuery, Retry, Skip, Start, Stop};
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use serde::Serialize;

use super::reject::{Asked, Bytes, Refused, parse_json};
use super::requests::{Mutation, mutate};
use super::router::App;
use super::runs::resolve;
use super::seam::TaskVerb;

/// What every mutation of a run is made of.
struct Call {
    app: App,
    headers: HeaderMap,
    uri: Uri,
    run: String,
    repo: Option<String>,
    body: Vec<u8>,
}

impl Call {
    async fn go<T, W, F>(self, work: W) -> Response
    where
        T: Serialize + 'static,
        W: FnOnce(App, RunId, Vec<u8>) -> F + Send + 'static,
        F: Future<Output = Result<T, Problem>> + Send + 'static,
    {
        let Self { app, headers, uri, run, repo, body } = self;
        // The query is part of what is asked: it may name the repository.
        let place = uri.path_and_query().map_or_else(|| uri.path().to_owned(), ToString::to_string);
        let mutation = match Mutation::of(&headers, &place, &body) {
            Ok(mutation) => mutation,
            Err(problem) => return Refused(problem).into_response(),
        };
        let inner = app.clone();
        mutate(&app, mutation, async move {
            let run = resolve(&inner, &run, repo).await?;
            work(inner, run, body).await
        })
        .await
    }
}

macro_rules! of_run {
    ($($(#[$doc:meta])* $name:ident($app:ident, $run:ident, $body:ident) $work:block)*) => {$(
        $(#[$doc])*
        pub(super) async fn $name(
            State(app): State<App>,
            Path(run): Path<String>,
            Asked(query): Asked<RepoQuery>,
            headers: HeaderMap,
            uri: Uri,
            Bytes(body): Bytes,
        ) -> Response {
            let call = Call { app, headers, uri, run, repo: query.repo, body };
            call.go(|$app: App, $run: RunId, $body: Vec<u8>| async move { $work }).await
        }
    )*};
}

macro_rules! of_task {
    ($($(#[$doc:meta])* $name:ident($body:ident) $verb:block)*) => {$(
        $(#[$doc])*
        pub(super) async fn $name(
            State(app): State<App>,
            Path((run, task)): Path<(String, String)>,
            Asked(query): Asked<RepoQuery>,
            headers: HeaderMap,
            uri: Uri,
            Bytes(body): Bytes,
        ) -> Response {
            let call = Call { app, headers, uri, run, repo: query.repo, body };
            call.go(|app: App, run: RunId, $body: Vec<u8>| async move {
                let verb: TaskVerb = $verb;
                app.control.task(run, task, verb).await
            })
            .await
        }
    )*};
}

of_run! {
    /// Begin or continue.
    start(app, run, body) { app.control.start(run, parse_json::<Start>(&body)?).await }
    /// Stop.
    stop(app, run, body) { app.control.stop(run, parse_json::<Stop>(&body)?.now).await }
    /// No new turn.
    pause(app, run, _body) { app.control.pause(run).await }
    /// Give the run up.
    cancel_run(app, run, _body) { app.control.cancel(run).await }
    /// Land now.
    land(app, run, _body) { app.control.land(run).await }
    /// Kept work.
    recover(app, run, body) { app.control.recover(run, parse_json::<Recover>(&body)?).await }
    /// Files anew.
    rebuild(app, run, _body) { app.control.rebuild(run).await }
}

of_task! {
    /// More attempts.
    retry(body) { TaskVerb::Retry(parse_json::<Retry>(&body)?.note) }
    /// Leave out.
    skip(body) { TaskVerb::Skip(parse_json::<Skip>(&body)?.reason) }
    /// Give up.
    cancel_task(_body) { TaskVerb::Cancel }
}

pub(super) async fn create_launch(
    State(app): State<App>,
    headers: HeaderMap,
    uri: Uri,
    Bytes(body): Bytes,
) -> Response {
    let read = Mutation::of(&headers, uri.path(), &body).and_then(|m| Ok((m, parse_json::<CreateLaunch>(&body)?)));
    let (mutation, body) = match read {
        Ok(read) => read,
        Err(problem) => return Refused(problem).into_response(),
    };
    let (inner, request) = (app.clone(), mutation.request.clone());
    mutate(&app, mutation, async move { inner.control.create_launch(body, request).await }).await
}

pub(super) async fn daemon_stop(State(app): State<App>, headers: HeaderMap, uri: Uri) -> Response {
    let mutation = match Mutation::of(&headers, uri.path(), b"") {
        Ok(mutation) => mutation,
        Err(problem) => return Refused(problem).into_response(),
    };
    let inner = app.clone();
    mutate(&app, mutation, async move { inner.control.daemon_stop().await }).await
}
