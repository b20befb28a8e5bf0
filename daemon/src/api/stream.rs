//! Server-sent events: history, then what happens, without a gap; `event: end` at the end (DESIGN 11).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::Stream;
use futures_util::stream::unfold;
use harness_proto::api::request::{EventsQuery, LogsQuery};
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use super::reject::{Asked, Refused};
use super::router::App;
use super::runs::resolve;
use super::seam::Notice;

/// How long a silent stream goes without a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Events that are read at once.
const PAGE: u32 = 500;

/// Where a stream stands and what is left to send.
struct Follow {
    app: App,
    run: RunId,
    notices: Receiver<Notice>,
    source: Source,
    ready: VecDeque<Event>,
    closed: bool,
}

/// What a stream reads.
enum Source {
    /// Events after this one.
    Events(i64),
    /// Log lines after the query's cursor.
    Logs(Box<LogsQuery>),
}

pub(super) async fn events(
    State(app): State<App>,
    Path(run): Path<String>,
    Asked(query): Asked<EventsQuery>,
    headers: HeaderMap,
) -> Response {
    let begin = async {
        let id = resolve(&app, &run, query.repo).await?;
        let since = last_event_id(&headers, &id)?.unwrap_or(query.since);
        Ok::<_, Problem>((id, Source::Events(since)))
    };
    answer(&app, begin.await)
}

pub(super) async fn logs(
    State(app): State<App>,
    Path(run): Path<String>,
    Asked(mut query): Asked<LogsQuery>,
    headers: HeaderMap,
) -> Response {
    let repo = query.repo.take();
    let begin = async {
        let id = resolve(&app, &run, repo).await?;
        if let Some(cursor) = resume_point(&headers, &id)? {
            query.cursor = Some(cursor);
        }
        Ok::<_, Problem>((id, Source::Logs(Box::new(query))))
    };
    answer(&app, begin.await)
}

fn answer(app: &App, begin: Result<(RunId, Source), Problem>) -> Response {
    match begin {
        Ok((run, source)) => {
            // Subscribed before the first read: what happens in between is a notice, not a gap.
            let notices = app.control.subscribe();
            let follow = Follow { app: app.clone(), run, notices, source, ready: VecDeque::new(), closed: false };
            Sse::new(stream(follow)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
        }
        Err(problem) => Refused(problem).into_response(),
    }
}

/// The part after `<run>:` of `Last-Event-ID`; a refusal when it names another run.
fn resume_point(headers: &HeaderMap, run: &RunId) -> Result<Option<String>, Problem> {
    let Some(header) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = header.to_str().unwrap_or_default();
    match text.split_once(':') {
        Some((id, point)) if id == run.as_str() => Ok(Some(point.to_owned())),
        _ => Err(Problem::new("USAGE", format!("Last-Event-ID `{text}` is none of run {run}"))
            .why("it has the form <run>:<seq>")),
    }
}

fn last_event_id(headers: &HeaderMap, run: &RunId) -> Result<Option<i64>, Problem> {
    let Some(point) = resume_point(headers, run)? else {
        return Ok(None);
    };
    point.parse().map(Some).map_err(|_| Problem::new("USAGE", format!("`{point}` in Last-Event-ID is no number")))
}

fn stream(follow: Follow) -> impl Stream<Item = Result<Event, Infallible>> {
    unfold(follow, |mut follow| async move {
        loop {
            if let Some(event) = follow.ready.pop_front() {
                return Some((Ok(event), follow));
            }
            if follow.closed {
                return None;
            }
            let stop = follow.app.stop.clone();
            let read = tokio::select! {
                biased;
                () = stop.cancelled() => { follow.end("daemon_stopping"); continue }
                read = follow.read() => read,
            };
            match read {
                Ok(Read::Some) => {}
                Ok(Read::Ended) => follow.end("run_ended"),
                Ok(Read::Nothing) => {
                    let run = follow.run.clone();
                    if !wait(&mut follow.notices, &run, &stop).await {
                        follow.end("daemon_stopping");
                    }
                }
                Err(problem) => follow.fail(&problem),
            }
        }
    })
}

/// What a read found.
enum Read {
    Some,
    Nothing,
    Ended,
}

impl Follow {
    async fn read(&mut self) -> Result<Read, Problem> {
        match &mut self.source {
            Source::Events(since) => {
                let page = self.app.control.events_since(self.run.clone(), *since, PAGE).await?;
                for event in &page.events {
                    *since = event.seq;
                    self.ready.push_back(message(&self.run, &event.seq.to_string(), event)?);
                }
                Ok(found(page.events.is_empty(), page.ended))
            }
            Source::Logs(query) => {
                let page = self.app.control.logs(self.run.clone(), (**query).clone()).await?;
                query.cursor = Some(page.cursor.clone());
                if !page.lines.is_empty() {
                    self.ready.push_back(message(&self.run, &page.cursor, &page)?);
                }
                Ok(found(page.lines.is_empty(), page.ended))
            }
        }
    }

    fn end(&mut self, reason: &str) {
        let data = json!({"run_id": self.run.as_str(), "reason": reason}).to_string();
        self.ready.push_back(Event::default().event("end").data(data));
        self.closed = true;
    }

    fn fail(&mut self, problem: &Problem) {
        self.ready
            .push_back(Event::default().event("problem").data(serde_json::to_string(problem).unwrap_or_default()));
        self.closed = true;
    }
}

const fn found(empty: bool, ended: bool) -> Read {
    match (empty, ended) {
        (false, _) => Read::Some,
        (true, true) => Read::Ended,
        (true, false) => Read::Nothing,
    }
}

fn message<T: serde::Serialize>(run: &RunId, point: &str, data: &T) -> Result<Event, Problem> {
    let text = serde_json::to_string(data)
        .map_err(|e| Problem::new("INTERNAL", "an event cannot be written").why(e.to_string()))?;
    let id: String = format!("{run}:{point}").chars().filter(|c| !c.is_control()).collect();
    Ok(Event::default().id(id).data(text))
}

/// Waits for a notice of this run. False when the daemon goes down.
async fn wait(notices: &mut Receiver<Notice>, run: &RunId, stop: &CancellationToken) -> bool {
    loop {
        let notice = tokio::select! {
            biased;
            () = stop.cancelled() => return false,
            notice = notices.recv() => notice,
        };
        match notice {
            Ok(notice) if notice.run == *run => return true,
            Ok(_) => {}
            // Some were lost, perhaps one of ours: read again.
            Err(RecvError::Lagged(_)) => return true,
            Err(RecvError::Closed) => return false,
        }
    }
}
