//! HTTP over the daemon's socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_proto::api::route::{encode, fill, route};
use harness_proto::api::{PROTOCOL_HEADER, Peer, REQUEST_HEADER, protocol_value};
use harness_proto::error::Problem;
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// How long a read may take; mutations may wait for turns to end.
const READ_TIME: Duration = Duration::from_secs(60);

/// A daemon that may or may not be there.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    socket: PathBuf,
}

/// What a request is about: path variables and query.
#[derive(Debug, Clone, Default)]
pub(crate) struct Target {
    /// `{run}`.
    pub(crate) run: String,
    /// `{task}`.
    pub(crate) task: String,
    /// Query.
    pub(crate) query: Vec<(&'static str, String)>,
}

impl Target {
    /// The same with a task.
    pub(crate) fn task(mut self, task: &str) -> Self {
        task.clone_into(&mut self.task);
        self
    }

    /// The same with one more member of the query.
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }
}

impl Client {
    /// A client of the daemon at this socket; connects with the first request.
    pub(crate) fn new(socket: &Path) -> Result<Self, Failure> {
        let http = reqwest::Client::builder()
            .unix_socket(socket)
            .no_proxy()
            .build()
            .map_err(|e| Problem::new("INTERNAL", "the client cannot speak HTTP").why(e.to_string()))?;
        Ok(Self { http, socket: socket.to_path_buf() })
    }

    /// Where it calls.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    fn request(&self, name: &str, target: &Target) -> Result<RequestBuilder, Problem> {
        let route = route(name).expect("verbs use operation ids of the route table");
        for (variable, text) in [("{run}", &target.run), ("{task}", &target.task)] {
            if route.path.contains(variable) {
                segment(text)?;
            }
        }
        let mut path = fill(route.path, &target.run, &target.task);
        for (n, (key, value)) in target.query.iter().enumerate() {
            path.push(if n == 0 { '?' } else { '&' });
            path.push_str(&format!("{key}={}", encode(value)));
        }
        let method = if route.method == "GET" { Method::GET } else { Method::POST };
        Ok(self.http.request(method, format!("http://harnessd{path}")).header(PROTOCOL_HEADER, protocol_value()))
    }

    /// Reads.
    pub(crate) async fn get<T: DeserializeOwned>(&self, name: &str, target: &Target) -> Result<T, Failure> {
        self.read(self.send(self.request(name, target)?.timeout(READ_TIME)).await?).await
    }

    /// Changes something; the request id lets a repeat get the same answer.
    pub(crate) async fn post<T: DeserializeOwned, B: Serialize + Sync>(
        &self,
        name: &str,
        target: &Target,
        body: &B,
    ) -> Result<T, Failure> {
        let id = uuid::Uuid::new_v4().to_string();
        let request = || Ok::<_, Problem>(self.request(name, target)?.header(REQUEST_HEADER, &id).json(body));
        match self.send(request()?).await {
            // The connection broke after the request was sent: the same id gets the answer of what is under way.
            Err(failure) if failure.is("TIMEOUT") => self.read(self.send(request()?).await?).await,
            other => self.read(other?).await,
        }
    }

    /// Sends bytes to be looked at.
    pub(crate) async fn check<T: DeserializeOwned>(&self, name: &str, bytes: Vec<u8>) -> Result<T, Failure> {
        self.read(self.send(self.request(name, &Target::default())?.body(bytes).timeout(READ_TIME)).await?).await
    }

    /// Opens a stream, after `last` when it is not empty.
    pub(crate) async fn stream(&self, name: &str, target: &Target, last: &str) -> Result<Response, Failure> {
        let mut request = self.request(name, target)?;
        if !last.is_empty() {
            request = request.header("last-event-id", last);
        }
        let response = self.send(request).await?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(response).await) }
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Failure> {
        request.send().await.map_err(|error| self.unreachable(&error).into())
    }

    async fn read<T: DeserializeOwned>(&self, response: Response) -> Result<T, Failure> {
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        let peer = peer_of(&response);
        let bytes = response.bytes().await.map_err(|error| Failure::from(self.unreachable(&error)))?;
        serde_json::from_slice(&bytes).map_err(|e| {
            let problem = Problem::new("PROTOCOL_MISMATCH", format!("the answer of {peer} cannot be read"));
            problem.why(e.to_string()).next("harnessctl daemon stop && harnessctl daemon start").into()
        })
    }

    fn unreachable(&self, error: &reqwest::Error) -> Problem {
        let cause = root(error);
        let socket = self.socket.display();
        if error.is_connect() {
            return Problem::new("DAEMON_DOWN", "harnessd is not running")
                .why(format!("nothing answers at {socket}: {cause}"))
                .next("harnessctl daemon start");
        }
        if error.is_timeout() {
            return Problem::new("BUSY", "harnessd did not answer in time")
                .why(format!("{socket}: {cause}"))
                .next("harnessctl doctor");
        }
        Problem::new("TIMEOUT", "the connection to harnessd broke")
            .why(format!("{socket}: {cause}"))
            .next("harnessctl daemon status")
    }
}

/// A name that is a segment of a path: URLs fold `.` and `..`, and a request would be about something else.
fn segment(text: &str) -> Result<(), Problem> {
    if !matches!(text, "" | "." | "..") {
        return Ok(());
    }
    Err(Problem::new("USAGE", format!("`{text}` names no run and no task"))
        .why("ids have letters and digits")
        .next("harnessctl list --all, or harnessctl status"))
}

fn root(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

fn peer_of(response: &Response) -> String {
    let peer = response.headers().get(PROTOCOL_HEADER).and_then(|h| h.to_str().ok()).and_then(Peer::parse);
    let own = env!("CARGO_PKG_VERSION");
    match peer {
        Some(peer) => format!("harnessd {} (harnessctl {own})", peer.version),
        None => format!("whatever listens there (harnessctl {own})"),
    }
}

/// The daemon's refusal, or one about an answer that is none.
async fn refusal(response: Response) -> Failure {
    let status = response.status().as_u16();
    let peer = peer_of(&response);
    let bytes = response.bytes().await.unwrap_or_default();
    match serde_json::from_slice::<Problem>(&bytes) {
        Ok(problem) => problem.into(),
        Err(_) => {
            let problem =
                Problem::new("PROTOCOL_MISMATCH", format!("{peer} refused with status {status} and no reason"));
            problem.next("harnessctl version --json").into()
        }
    }
}
