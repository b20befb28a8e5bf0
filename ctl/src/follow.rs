//! Follows a stream across broken connections: the last id makes it go on without a gap.

use std::time::Duration;

use harness_proto::error::Problem;
use reqwest::Response;
use tokio::time::{Instant, sleep, timeout};

use crate::client::{Client, Target};
use crate::failure::Failure;
use crate::sse::{Message, Reader};

/// The daemon shows life every 10 s; after this long it is taken for dead.
const SILENCE: Duration = Duration::from_secs(35);
/// How long a daemon may be away, for example between two of its versions.
const AWAY: Duration = Duration::from_secs(30);

/// What a stream brought.
#[derive(Debug)]
pub(crate) enum Step {
    /// A message.
    Message(Message),
    /// A sign of life.
    Alive,
    /// The run has ended; nothing follows.
    Ended,
}

/// A stream that is followed.
pub(crate) struct Follow<'a> {
    client: &'a Client,
    name: &'static str,
    target: Target,
    last: String,
    open: Option<(Response, Reader)>,
    ready: std::collections::VecDeque<Message>,
    away_since: Option<Instant>,
}

impl<'a> Follow<'a> {
    /// Follows; connects with the first step.
    pub(crate) fn new(client: &'a Client, name: &'static str, target: Target) -> Self {
        Self {
            client,
            name,
            target,
            last: String::new(),
            open: None,
            ready: std::collections::VecDeque::new(),
            away_since: None,
        }
    }

    /// The next step. A connection that breaks is opened again for [`AWAY`].
    ///
    /// Cancel safety: a message is lost only together with the whole `Follow`.
    pub(crate) async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                if let Some(step) = self.take(message)? {
                    return Ok(step);
                }
                continue;
            }
            let Some((response, reader)) = &mut self.open else {
                self.connect().await?;
                continue;
            };
            match timeout(SILENCE, response.chunk()).await {
                Ok(Ok(Some(chunk))) => {
                    self.away_since = None;
                    self.ready.extend(reader.push(&chunk));
                    if self.ready.is_empty() {
                        return Ok(Step::Alive);
                    }
                }
                // Ended without `event: end`, broken, or silent: from where we are, again.
                Ok(Ok(None) | Err(_)) | Err(_) => {
                    self.open = None;
                    self.away_since.get_or_insert_with(Instant::now);
                }
            }
        }
    }

    fn take(&mut self, message: Message) -> Result<Option<Step>, Failure> {
        if !message.id.is_empty() {
            self.last.clone_from(&message.id);
        }
        match message.event.as_str() {
            "end" if message.data.contains("run_ended") => Ok(Some(Step::Ended)),
            "end" => {
                self.open = None;
                self.away_since.get_or_insert_with(Instant::now);
                Ok(None)
            }
            "problem" => Err(serde_json::from_str::<Problem>(&message.data)
                .unwrap_or_else(|_| Problem::new("INTERNAL", "the stream broke off"))
                .into()),
            _ => Ok(Some(Step::Message(message))),
        }
    }

    async fn connect(&mut self) -> Result<(), Failure> {
        let first = self.away_since.is_none();
        if !first {
            // A daemon that goes down may still take connections for a moment.
            sleep(Duration::from_millis(200)).await;
        }
        match self.client.stream(self.name, &self.target, &self.last).await {
            Ok(response) => self.open = Some((response, Reader::default())),
            Err(failure)
                if first || !(failure.is("DAEMON_DOWN") || failure.is("TIMEOUT") || failure.is("STOPPING")) =>
            {
                return Err(failure);
            }
            Err(failure) => {
                let since = *self.away_since.get_or_insert_with(Instant::now);
                if since.elapsed() > AWAY {
                    return Err(failure);
                }
            }
        }
        Ok(())
    }
}
