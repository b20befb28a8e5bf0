//! Mutations: detached from their connection, and answered once per request id (DESIGN 11).

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use harness_proto::api::REQUEST_HEADER;
use harness_proto::error::{PROBLEM_JSON, Problem};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::reject::json_response;
use super::router::{App, bug};
use super::seam::Recorded;

/// Longest request id.
const ID_MAX: usize = 128;

/// Mutations under way by request id.
#[derive(Default)]
pub(super) struct Inflight(Mutex<HashMap<String, Shared<BoxFuture<'static, Recorded>>>>);

/// What identifies a mutation.
pub(super) struct Mutation {
    /// The caller's id; none for a caller that does not repeat.
    pub(super) request: Option<String>,
    /// Path and digest of the body.
    fingerprint: String,
}

impl Mutation {
    /// Reads the request id and takes the fingerprint.
    pub(super) fn of(headers: &HeaderMap, path: &str, body: &[u8]) -> Result<Self, Problem> {
        let request = match headers.get(REQUEST_HEADER).map(|h| h.to_str()) {
            None => None,
            Some(Ok(id)) if (1..=ID_MAX).contains(&id.len()) => Some(id.to_owned()),
            Some(_) => {
                return Err(Problem::new(
                    "USAGE",
                    format!("{REQUEST_HEADER} must be a text of 1 to {ID_MAX} characters"),
                ));
            }
        };
        let mut fingerprint = format!("{path} ");
        for byte in Sha256::digest(body) {
            fingerprint.push_str(&format!("{byte:02x}"));
        }
        Ok(Self { request, fingerprint })
    }
}

/// Carries a mutation out on a task of its own and waits for it; a repeat waits for the same one or gets the stored answer.
pub(super) async fn mutate<T, F>(app: &App, mutation: Mutation, work: F) -> Response
where
    T: Serialize + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let Mutation { request, fingerprint } = mutation;
    let Some(id) = request else {
        return shown(detached(app, fingerprint.clone(), recorded(fingerprint, work)).await);
    };
    let shared = {
        let mut inflight = app.inflight.0.lock().unwrap_or_else(PoisonError::into_inner);
        match inflight.get(&id) {
            Some(running) => running.clone(),
            None => {
                let running =
                    detached(app, fingerprint.clone(), once(app.clone(), id.clone(), fingerprint.clone(), work))
                        .boxed()
                        .shared();
                inflight.insert(id, running.clone());
                running
            }
        }
    };
    let answer = shared.await;
    if answer.fingerprint == fingerprint { shown(answer) } else { shown(reused(fingerprint)) }
}

/// Recall, else work and remember; the id leaves the table of running ones last.
async fn once<T, F>(app: App, id: String, fingerprint: String, work: F) -> Recorded
where
    T: Serialize + 'static,
    F: Future<Output = Result<T, Problem>> + Send + 'static,
{
    let leave = Leave { app: app.clone(), id: id.clone() };
    let answer = match app.control.recall(id.clone()).await {
        Ok(Some(stored)) => stored,
        Ok(None) => {
            let answer = recorded(fingerprint, work).await;
            // A server error may be gone the next time; everything else is the answer for good.
            if answer.status < 500
                && let Err(problem) = app.control.remember(id, answer.clone()).await
            {
                tracing::warn!(%problem, "the answer of a request could not be stored");
            }
            answer
        }
        Err(problem) => of_problem(fingerprint, &problem),
    };
    drop(leave);
    answer
}

/// Takes the id out of the table, also when the work panics.
struct Leave {
    app: App,
    id: String,
}

impl Drop for Leave {
    fn drop(&mut self) {
        self.app.inflight.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

fn detached<W>(app: &App, fingerprint: String, work: W) -> impl Future<Output = Recorded> + Send + use<W>
where
    W: Future<Output = Recorded> + Send + 'static,
{
    let task = app.tasks.spawn(work);
    async move {
        match task.await {
            Ok(answer) => answer,
            Err(error) => {
                tracing::error!(%error, "a mutation did not end");
                of_problem(fingerprint, &bug("the task of this request panicked"))
            }
        }
    }
}

async fn recorded<T: Serialize>(fingerprint: String, work: impl Future<Output = Result<T, Problem>>) -> Recorded {
    match work.await {
        Ok(body) => match serde_json::to_string(&body) {
            Ok(body) => Recorded { fingerprint, status: 200, body },
            Err(error) => of_problem(fingerprint, &bug(&error.to_string())),
        },
        Err(problem) => of_problem(fingerprint, &problem),
    }
}

fn of_problem(fingerprint: String, problem: &Problem) -> Recorded {
    Recorded { fingerprint, status: problem.status, body: serde_json::to_string(problem).unwrap_or_default() }
}

fn reused(fingerprint: String) -> Recorded {
    let problem = Problem::new("REQUEST_REUSED", "this request id was used for another request")
        .next("use a new id for each request");
    of_problem(fingerprint, &problem)
}

fn shown(answer: Recorded) -> Response {
    let kind = if answer.status < 400 { "application/json" } else { PROBLEM_JSON };
    json_response(answer.status, kind, answer.body)
}
