//! The API against a fake runtime: through the router, and over a real socket.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response};
use harness_proto::api::route::{ROUTES, fill};
use harness_proto::api::{MAX_PLAN_BYTES, PROTOCOL_HEADER, REQUEST_HEADER};
use harness_proto::place::{SocketOrigin, SocketPlace};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use super::fake::{Fake, RUN};
use super::{ApiError, App, Limits, bind, router, serve};

fn app() -> (Arc<Fake>, App) {
    let fake = Arc::new(Fake::new());
    (fake.clone(), App::new(fake, CancellationToken::new(), TaskTracker::new()))
}

async fn ask(app: &App, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response: Response<Body> = router(app.clone()).oneshot(request.body(body.into()).unwrap()).await.unwrap();
    assert!(response.headers().contains_key(PROTOCOL_HEADER), "{method} {path} tells no protocol");
    let status = response.status().as_u16();
    let bytes = axum::body::to_bytes(response.into_body(), 64 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

#[tokio::test]
async fn every_route_of_the_table_is_answered_and_described() {
    let (fake, app) = app();
    *fake.ended.lock().unwrap() = true;
    fake.stop_may_end.notify_one();
    let (_, document) = ask(&app, "GET", "/v1/openapi.json", &[], "").await;
    for route in ROUTES {
        let path = fill(route.path, RUN, "T-1");
        let (status, body) = ask(&app, route.method, &path, &[], "").await;
        assert!(
            !matches!(body["code"].as_str(), Some("ROUTE_UNKNOWN" | "METHOD_NOT_ALLOWED")),
            "{} {path}: {status}",
            route.method
        );
        let operation = &document["paths"][route.path][route.method.to_ascii_lowercase()];
        assert_eq!(operation["operationId"], route.name);
        let other = if route.method == "GET" { "DELETE" } else { "PUT" };
        assert_eq!(ask(&app, other, &path, &[], "").await.0, 405, "{other} {path}");
    }
    let described: usize = document["paths"].as_object().unwrap().values().map(|p| p.as_object().unwrap().len()).sum();
    assert_eq!(described, ROUTES.len());
}

#[tokio::test]
async fn refusals_are_problems_with_code_and_next() {
    let (_, app) = app();
    let (status, body) = ask(&app, "GET", "/v1/nothing", &[], "").await;
    assert_eq!((status, body["code"].as_str()), (404, Some("ROUTE_UNKNOWN")));
    let (status, body) = ask(&app, "GET", "/v1/runs/zzz", &[], "").await;
    assert_eq!((status, body["code"].as_str()), (404, Some("RUN_UNKNOWN")));
    let (status, body) = ask(&app, "GET", "/v1/runs/@repo", &[], "").await;
    assert_eq!((status, body["code"].as_str()), (400, Some("USAGE")));
    assert_eq!(ask(&app, "GET", "/v1/runs/@repo?repo=/repo", &[], "").await.0, 200);
    let (status, body) = ask(&app, "POST", "/v1/runs", &[], "{\"repo\": 1}").await;
    assert_eq!((status, body["code"].as_str()), (400, Some("BODY_INVALID")));
    let (status, body) = ask(&app, "GET", "/v1/runs?limit=many", &[], "").await;
    assert_eq!((status, body["code"].as_str()), (400, Some("USAGE")));
    let (status, body) = ask(&app, "GET", "/v1/doctor", &[], "").await;
    assert_eq!(
        (status, body["code"].as_str(), body["why"].as_str()),
        (500, Some("INTERNAL"), Some("the doctor is ill"))
    );
}

#[tokio::test]
async fn a_large_plan_and_a_larger_body_are_told_apart() {
    let (_, app) = app();
    let (status, body) = ask(&app, "POST", "/v1/tasks/validate", &[], vec![b' '; 16 << 20]).await;
    assert_eq!((status, body["code"].as_str()), (413, Some("PLAN_TOO_LARGE")));
    assert!(body["why"].as_str().unwrap().contains(&MAX_PLAN_BYTES.to_string()));
    let (status, body) = ask(&app, "POST", "/v1/tasks/validate", &[], vec![b' '; 21 << 20]).await;
    assert_eq!((status, body["code"].as_str()), (413, Some("BODY_TOO_LARGE")));
}

#[tokio::test]
async fn another_protocol_may_read_but_not_change() {
    let (_, app) = app();
    let old = [(PROTOCOL_HEADER, "0 0.0.9")];
    assert_eq!(ask(&app, "GET", &format!("/v1/runs/{RUN}"), &old, "").await.0, 200);
    let (status, body) = ask(&app, "POST", &format!("/v1/runs/{RUN}/pause"), &old, "").await;
    assert_eq!((status, body["code"].as_str()), (426, Some("PROTOCOL_MISMATCH")));
    let detail = body["detail"].as_str().unwrap();
    assert!(detail.contains("0.0.9") && detail.contains(env!("CARGO_PKG_VERSION")), "{detail}");
}

const LAUNCH: &str = r#"{"repo": "/repo", "original_goal": "g", "goal": "g", "scope": "s", "policy": {}}"#;

#[tokio::test]
async fn a_repeat_gets_the_same_answer_and_does_nothing() {
    let (fake, app) = app();
    let id = [(REQUEST_HEADER, "r-1")];
    let first = ask(&app, "POST", "/v1/runs", &id, LAUNCH).await;
    let second = ask(&app, "POST", "/v1/runs", &id, LAUNCH).await;
    assert_eq!((first.0, &first), (200, &second));
    assert_eq!(fake.created.load(Ordering::SeqCst), 1);
    let (status, body) = ask(&app, "POST", "/v1/runs", &id, LAUNCH.replace("\"g\"", "\"h\"")).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("REQUEST_REUSED")));
    ask(&app, "POST", "/v1/runs", &[(REQUEST_HEADER, "r-2")], LAUNCH).await;
    assert_eq!(fake.created.load(Ordering::SeqCst), 2);
    // A refusal is an answer too.
    let empty = LAUNCH.replace("\"goal\": \"g\"", "\"goal\": \"\"");
    let first = ask(&app, "POST", "/v1/runs", &[(REQUEST_HEADER, "r-3")], empty.clone()).await;
    assert_eq!(first, ask(&app, "POST", "/v1/runs", &[(REQUEST_HEADER, "r-3")], empty).await);
    assert_eq!(fake.created.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_panic_is_an_answer_and_can_be_repeated() {
    let (fake, app) = app();
    let body = LAUNCH.replace("\"goal\": \"g\"", "\"goal\": \"panic\"");
    for n in 1..=2 {
        let (status, answer) = ask(&app, "POST", "/v1/runs", &[(REQUEST_HEADER, "p")], body.clone()).await;
        assert_eq!((status, answer["code"].as_str()), (500, Some("INTERNAL")));
        assert_eq!(fake.created.load(Ordering::SeqCst), n, "a server error must not be remembered");
    }
}

/// A server on a socket in a temporary folder.
struct Served {
    folder: tempfile::TempDir,
    app: App,
    fake: Arc<Fake>,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    fn new(agent: bool, limits: Limits) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (fake, app) = app();
        let listener = bind(&place(folder.path())).unwrap();
        let tracker = TaskTracker::new();
        let task = tracker.spawn(serve(listener, app.clone(), Arc::new(move |_| agent), limits));
        Self { folder, app, fake, task }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.path().join("h/x.sock")).await.unwrap()
    }

    async fn send(&self, head: &str) -> UnixStream {
        let mut stream = self.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }
}

fn place(folder: &Path) -> SocketPlace {
    SocketPlace { path: folder.join("h/x.sock"), origin: SocketOrigin::Runtime }
}

/// Reads until `mark` stands in the answer.
async fn until(stream: &mut UnixStream, mark: &str) -> String {
    let mut text = String::new();
    let mut buffer = [0u8; 4096];
    while !text.contains(mark) {
        let n = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut buffer))
            .await
            .expect("an answer in time")
            .unwrap();
        assert!(n > 0, "ended before `{mark}`: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..n]));
    }
    text
}

#[tokio::test]
async fn a_stop_goes_on_when_its_connection_breaks() {
    let served = Served::new(false, Limits::standard());
    let stream =
        served.send(&format!("POST /v1/runs/{RUN}/stop HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")).await;
    served.fake.stop_begun.notified().await;
    drop(stream);
    served.fake.stop_may_end.notify_one();
    served.app.stop.cancel();
    served.task.await.unwrap();
    served.app.tasks.close();
    served.app.tasks.wait().await;
    assert_eq!(served.fake.stopped.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_stream_has_history_what_happens_and_an_end() {
    let served = Served::new(false, Limits::standard());
    for text in ["one", "two", "three"] {
        served.fake.happen(text);
    }
    let head = format!("GET /v1/runs/{RUN}/events/stream HTTP/1.1\r\nhost: x\r\nlast-event-id: {RUN}:1\r\n\r\n");
    let mut stream = served.send(&head).await;
    let history = until(&mut stream, "three").await;
    assert!(history.contains(&format!("id: {RUN}:2")) && !history.contains("\"one\""), "{history}");
    served.fake.happen("four");
    until(&mut stream, &format!("id: {RUN}:4")).await;
    *served.fake.ended.lock().unwrap() = true;
    served.fake.happen("five");
    let end = until(&mut stream, "run_ended").await;
    assert!(end.contains("five") && end.contains("event: end"), "{end}");
}

#[tokio::test]
async fn streams_end_when_the_daemon_goes_down() {
    let served = Served::new(false, Limits::standard());
    let mut stream = served.send(&format!("GET /v1/runs/{RUN}/events/stream HTTP/1.1\r\nhost: x\r\n\r\n")).await;
    until(&mut stream, "text/event-stream").await;
    served.app.stop.cancel();
    until(&mut stream, "daemon_stopping").await;
    served.task.await.unwrap();
    served.app.tasks.close();
    served.app.tasks.wait().await;
}

#[tokio::test]
async fn a_cursor_of_another_run_is_refused() {
    let (_, app) = app();
    let path = format!("/v1/runs/{RUN}/events/stream");
    assert_eq!(ask(&app, "GET", &path, &[("last-event-id", "run_bbbbbbbb:3")], "").await.0, 400);
}

#[tokio::test]
async fn an_agent_reads_a_refusal() {
    let served = Served::new(true, Limits::standard());
    let mut stream =
        served.send(&format!("POST /v1/runs/{RUN}/start HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n")).await;
    let answer = until(&mut stream, "PEER_REFUSED").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn slow_heads_and_too_many_connections_are_bounded() {
    let limits = Limits { connections: 1, head: Duration::from_millis(200), drain: Duration::from_secs(1) };
    let served = Served::new(false, limits);
    let mut slow = served.send("GET /v1/daemon HTTP/1.1\r\nhost:").await;
    let mut second = served.send("GET /v1/daemon HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let answer = until(&mut second, "BUSY").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(20), slow.read_to_end(&mut rest))
        .await
        .expect("the slow one is cut off")
        .unwrap();
}

#[tokio::test]
async fn the_socket_is_private_and_never_taken_from_another() {
    let folder = tempfile::tempdir().unwrap();
    let place = place(folder.path());
    let first = bind(&place).unwrap();
    let modes = |path: &Path| std::fs::symlink_metadata(path).unwrap().mode() & 0o777;
    assert_eq!((modes(&place.path), modes(place.path.parent().unwrap())), (0o600, 0o700));
    assert!(matches!(bind(&place), Err(ApiError::Answered { .. })));
    drop(first);
    drop(bind(&place).expect("a leftover is replaced"));
    std::fs::remove_file(&place.path).unwrap();
    std::fs::write(&place.path, "mine").unwrap();
    assert!(matches!(bind(&place), Err(ApiError::Occupied { .. })));
    std::fs::remove_file(&place.path).unwrap();
    std::fs::set_permissions(place.path.parent().unwrap(), std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(bind(&place), Err(ApiError::Unsafe { .. })));
}
