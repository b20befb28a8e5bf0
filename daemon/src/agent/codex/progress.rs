//! A turn as its notifications tell it; no I/O.

use serde_json::Value;

use super::message::text;
use super::meter::{Meter, Totals};

/// What a notification means for the turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Step {
    /// Nothing that changes its course.
    Goes,
    /// It has begun.
    Began,
    /// It has ended.
    Ended(End),
}

/// How the agent says that its turn ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct End {
    /// `completed`, `interrupted`, `failed`.
    pub(super) status: String,
    /// The error of a failed turn, or null.
    pub(super) error: Value,
    /// The last words; empty when there are none.
    pub(super) report: String,
}

/// One turn of one thread.
#[derive(Debug)]
pub(super) struct Progress {
    thread: String,
    /// The turn's id, known from the answer to `turn/start` or from `turn/started`, whichever comes first.
    pub(super) id: Option<String>,
    /// Turns of this thread that have ended; what is said about them comes late or twice.
    finished: Vec<String>,
    said: String,
    last_error: Value,
    /// Bytes of the longest line that was dropped.
    pub(super) dropped: u64,
    /// Tokens and limits.
    pub(super) meter: Meter,
}

impl Progress {
    /// A turn that is about to begin.
    pub(super) fn new(thread: String, finished: Vec<String>, before: Option<Totals>) -> Self {
        Self {
            thread,
            id: None,
            finished,
            said: String::new(),
            last_error: Value::Null,
            dropped: 0,
            meter: Meter::new(before),
        }
    }

    /// The answer to `turn/start`.
    pub(super) fn acknowledged(&mut self, result: &Value) {
        if let Some(id) = result["turn"]["id"].as_str() {
            self.id.get_or_insert_with(|| id.to_owned());
        }
    }

    /// A notification of the server.
    pub(super) fn notification(&mut self, method: &str, params: &Value) -> Step {
        if method == "account/rateLimits/updated" {
            self.meter.limits(&params["rateLimits"]);
            return Step::Goes;
        }
        // Sub-agents have threads of their own.
        if params["threadId"].as_str() != Some(&self.thread) {
            return Step::Goes;
        }
        let turn = params["turnId"].as_str().or_else(|| params["turn"]["id"].as_str());
        if method == "thread/tokenUsage/updated" {
            let ours = self.id.is_some() && turn == self.id.as_deref();
            self.meter.usage(&params["tokenUsage"], ours);
            return Step::Goes;
        }
        if let Some(turn) = turn {
            let other = self.id.as_deref().is_some_and(|id| id != turn);
            if other || self.finished.iter().any(|id| id == turn) {
                return Step::Goes;
            }
        }
        match method {
            "turn/started" => {
                self.id = self.id.take().or_else(|| turn.map(str::to_owned));
                Step::Began
            }
            "item/completed" => {
                if let Some(words) = words(&params["item"]) {
                    words.clone_into(&mut self.said);
                }
                Step::Goes
            }
            "error" => {
                if params["willRetry"].as_bool() != Some(true) {
                    self.last_error = params["error"].clone();
                }
                Step::Goes
            }
            "turn/completed" => {
                self.id = self.id.take().or_else(|| turn.map(str::to_owned));
                Step::Ended(self.end(&params["turn"]))
            }
            _ => Step::Goes,
        }
    }

    fn end(&mut self, turn: &Value) -> End {
        let items = turn["items"].as_array().map_or(&[][..], Vec::as_slice);
        let report = items.iter().rev().find_map(words).map_or_else(|| std::mem::take(&mut self.said), str::to_owned);
        let error = match &turn["error"] {
            Value::Null => self.last_error.take(),
            error => error.clone(),
        };
        End { status: text(&turn["status"]), error, report }
    }
}

/// The text of an agent message that is not one of the asynchronous kind, which are no reports.
fn words(item: &Value) -> Option<&str> {
    let ours = item["type"] == "agentMessage" && item["delivery"] != "async";
    item["text"].as_str().filter(|text| ours && !text.trim().is_empty())
}
