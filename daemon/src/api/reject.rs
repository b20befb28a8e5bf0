//! Refusals as problem+json, and the extractors that refuse.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::{HeaderValue, StatusCode, header, request::Parts};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use harness_proto::api::MAX_BODY_BYTES;
use harness_proto::error::{PROBLEM_JSON, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// How much of a body that is too large is read and thrown away, so that the sender gets to read the answer.
const DRAIN_BYTES: usize = 256 << 20;
/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A refusal on its way out.
#[derive(Debug)]
pub(super) struct Refused(pub(super) Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json_response(self.0.status, PROBLEM_JSON, serde_json::to_string(&self.0).unwrap_or_default())
    }
}

/// A JSON answer.
pub(super) fn json_response(status: u16, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// An answer or a refusal as a response.
pub(super) fn respond<T: Serialize>(answer: Result<T, Problem>) -> Response {
    let text = answer.and_then(|body| {
        serde_json::to_string(&body)
            .map_err(|e| Problem::new("INTERNAL", "the answer cannot be written").why(e.to_string()))
    });
    match text {
        Ok(text) => json_response(200, "application/json", text),
        Err(problem) => Refused(problem).into_response(),
    }
}

/// The whole body, bounded.
#[derive(Debug)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl<S: Send + Sync> FromRequest<S> for Bytes {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let read = tokio::time::timeout(BODY_TIME, read_body(request.into_body()));
        read.await
            .unwrap_or_else(|_| Err(Problem::new("TIMEOUT", "the body of the request did not arrive in time")))
            .map(Self)
            .map_err(Refused)
    }
}

async fn read_body(body: Body) -> Result<Vec<u8>, Problem> {
    let mut stream = body.into_data_stream();
    let mut bytes = Vec::new();
    let mut seen: usize = 0;
    while let Some(chunk) = stream.next().await {
        let chunk =
            chunk.map_err(|e| Problem::new("BODY_INVALID", "the body of the request broke off").why(e.to_string()))?;
        seen = seen.saturating_add(chunk.len());
        if seen > DRAIN_BYTES {
            break;
        }
        if seen <= MAX_BODY_BYTES {
            bytes.extend_from_slice(&chunk);
        } else {
            bytes = Vec::new();
        }
    }
    if seen > MAX_BODY_BYTES {
        return Err(Problem::new("BODY_TOO_LARGE", format!("the body has {} MiB or more", seen >> 20))
            .why(format!("the daemon takes at most {} MiB", MAX_BODY_BYTES >> 20))
            .next("send less"));
    }
    Ok(bytes)
}

/// Reads JSON; an empty body is `{}`.
pub(super) fn parse_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let text: &[u8] = if bytes.is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(text).map_err(|e| {
        Problem::new("BODY_INVALID", "the body of the request is not what this verb takes")
            .why(e.to_string())
            .next("harnessctl version --json: client and daemon should have the same version")
    })
}

/// The query, typed; a wrong value is a refusal in our shape.
#[derive(Debug)]
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refused> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => {
                Err(Refused(Problem::new("USAGE", "the query of the request is wrong").why(error.body_text())))
            }
        }
    }
}
