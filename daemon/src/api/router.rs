//! The router: every route of the table gets its handler; nothing else is answered.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use harness_proto::api::route::ROUTES;
use harness_proto::api::{PROTOCOL, PROTOCOL_HEADER, Peer, protocol_value};
use harness_proto::error::Problem;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;

use super::reject::Refused;
use super::requests::Inflight;
use super::seam::Control;
use super::{control, openapi, runs, stream};

/// What every handler has.
#[derive(Clone)]
pub struct App {
    /// The runtime.
    pub control: Arc<dyn Control>,
    /// Ends streams and the accept loop; cancelled when the daemon goes down.
    pub stop: CancellationToken,
    /// Holds mutations, which go on when their connection breaks; the daemon waits for it when it goes down.
    pub tasks: TaskTracker,
    /// Mutations that are under way, by request id.
    pub(super) inflight: Arc<Inflight>,
}

impl App {
    /// An app on a runtime.
    #[must_use]
    pub fn new(control: Arc<dyn Control>, stop: CancellationToken, tasks: TaskTracker) -> Self {
        Self { control, stop, tasks, inflight: Arc::default() }
    }
}

/// The handler of a route by its operation id.
fn handler(name: &str) -> Option<MethodRouter<App>> {
    Some(match name {
        "openapi" => get(openapi::answer),
        "daemon_status" => get(runs::daemon_status),
        "daemon_stop" => post(control::daemon_stop),
        "doctor" => get(runs::doctor),
        "db_check" => get(runs::db_check),
        "tasks_validate" => post(runs::tasks_validate),
        "create_launch" => post(control::create_launch),
        "list" => get(runs::list),
        "status" => get(runs::status),
        "start" => post(control::start),
        "stop" => post(control::stop),
        "pause" => post(control::pause),
        "cancel_run" => post(control::cancel_run),
        "land" => post(control::land),
        "recover" => post(control::recover),
        "rebuild" => post(control::rebuild),
        "events" => get(runs::events),
        "events_stream" => get(stream::events),
        "logs" => get(runs::logs),
        "logs_stream" => get(stream::logs),
        "show_task" => get(runs::show_task),
        "retry" => post(control::retry),
        "skip" => post(control::skip),
        "cancel_task" => post(control::cancel_task),
        _ => return None,
    })
}

/// The router of an app: each route of [`ROUTES`], a problem for anything else, a problem for a panic.
pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for route in ROUTES {
        if let Some(handler) = handler(route.name) {
            router = router.route(route.path, handler);
        }
    }
    router
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(app.clone(), protocol))
        .with_state(app)
}

async fn unknown(request: Request) -> Refused {
    let what = format!("{} {}", request.method(), request.uri().path());
    Refused(
        Problem::new("ROUTE_UNKNOWN", format!("harnessd {} does not know {what}", env!("CARGO_PKG_VERSION")))
            .why("client and daemon are of different versions, or the path is mistyped")
            .next("harnessctl daemon stop && harnessctl daemon start"),
    )
}

async fn wrong_method(request: Request) -> Refused {
    Refused(Problem::new(
        "METHOD_NOT_ALLOWED",
        format!("{} is not taken by {}", request.method(), request.uri().path()),
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "the signature that CatchPanicLayer wants")]
fn panicked(payload: Box<dyn std::any::Any + Send + 'static>) -> Response {
    let text =
        payload.downcast_ref::<&str>().map(|t| (*t).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
    tracing::error!(panic = text.as_deref().unwrap_or("?"), "a request handler panicked");
    Refused(bug(text.as_deref().unwrap_or("a panic"))).into_response()
}

/// The answer of a handler that broke.
pub(super) fn bug(why: &str) -> Problem {
    Problem::new("INTERNAL", "BUG: the daemon could not answer this request").why(why).next("harnessctl doctor")
}

/// Tells our protocol and refuses mutations of a peer that speaks another one; reads are answered (ux.md section 9).
async fn protocol(State(_): State<App>, request: Request, next: Next) -> Response {
    let peer = request.headers().get(PROTOCOL_HEADER).and_then(|h| h.to_str().ok()).and_then(Peer::parse);
    let mut response = match peer {
        Some(peer) if peer.protocol != PROTOCOL && request.method() != axum::http::Method::GET => Refused(
            Problem::new(
                "PROTOCOL_MISMATCH",
                format!(
                    "harnessctl {} speaks protocol {}, harnessd {} speaks protocol {PROTOCOL}",
                    peer.version,
                    peer.protocol,
                    env!("CARGO_PKG_VERSION")
                ),
            )
            .why("a change through another protocol could mean something else")
            .next("harnessctl daemon stop && harnessctl daemon start"),
        )
        .into_response(),
        _ => next.run(request).await,
    };
    if let Ok(value) = HeaderValue::from_str(&protocol_value()) {
        response.headers_mut().insert(PROTOCOL_HEADER, value);
    }
    response
}
