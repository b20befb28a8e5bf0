//! The end of a turn as a report or a typed failure.

use harness_core::input::TurnFailure;
use harness_proto::report::Report;
use harness_proto::vocab::{FailureKind, Role};
use serde_json::Value;

use super::message::{RpcError, text};
use super::progress::{End, Progress};
use crate::agent::answer;
use crate::agent::turn::failure;
use crate::redact::Redactor;

/// JSON-RPC: the server is overloaded, try again later.
const OVERLOADED: i64 = -32001;
/// The longest message of the server that is kept, in characters.
const MESSAGE_CAP: usize = 2_000;

/// What the end of a turn means.
///
/// # Errors
/// The failure, typed.
pub(super) fn judge(role: Role, end: &End, progress: &Progress, redactor: &Redactor) -> Result<Report, TurnFailure> {
    match end.status.as_str() {
        "completed" if end.report.is_empty() && progress.dropped > 0 => Err(answer::skipped(progress.dropped)),
        "completed" => answer::read(role, &end.report, redactor),
        "failed" => {
            let mut failed = failed(&end.error, redactor);
            if matches!(failed.kind, FailureKind::UsageLimited | FailureKind::RateLimited) {
                failed.until = progress.meter.reset().filter(|_| failed.kind == FailureKind::UsageLimited);
            }
            Err(failed)
        }
        // Not on our request, or it would not be judged here.
        "interrupted" => Err(failure(FailureKind::Crashed, "the agent gave the turn up by itself")),
        other => Err(failure(
            FailureKind::Protocol,
            format!("the agent ended the turn with the unknown status `{}`", shortened(other, redactor)),
        )),
    }
}

/// An error answer to one of our requests.
pub(super) fn refused(method: &str, error: &RpcError, redactor: &Redactor) -> TurnFailure {
    let words = shortened(&error.message, redactor);
    let lower = words.to_lowercase();
    let kind = if error.code == OVERLOADED {
        FailureKind::RateLimited
    } else if ["not logged in", "login required", "unauthorized", "authentication"].iter().any(|w| lower.contains(w)) {
        FailureKind::Auth
    } else {
        FailureKind::Protocol
    };
    failure(kind, format!("the agent refused `{method}` ({}): {words}", error.code))
}

/// The error of a failed turn; `codexErrorInfo` is a word or an object with one member, and new values are expected.
fn failed(error: &Value, redactor: &Redactor) -> TurnFailure {
    let words = shortened(&text(&error["message"]), redactor);
    let (name, detail) = match &error["codexErrorInfo"] {
        Value::String(name) => (name.as_str(), &Value::Null),
        Value::Object(members) => {
            members.iter().next().map_or(("", &Value::Null), |(name, value)| (name.as_str(), value))
        }
        _ => ("", &Value::Null),
    };
    let status = detail["httpStatusCode"].as_i64();
    let kind = match (name, status) {
        ("usageLimitExceeded" | "sessionBudgetExceeded", _) => FailureKind::UsageLimited,
        ("unauthorized", _) | (_, Some(401 | 403)) => FailureKind::Auth,
        // All of these pass by themselves and none is the work's fault: later, without a rewrite of anything.
        (
            "rateLimitExceeded"
            | "serverOverloaded"
            | "internalServerError"
            | "httpConnectionFailed"
            | "responseTooManyFailedAttempts"
            | "responseStreamConnectionFailed"
            | "responseStreamDisconnected",
            _,
        )
        | (_, Some(429 | 500..=599)) => FailureKind::RateLimited,
        _ => by_words(&words),
    };
    let shown = if words.is_empty() { "no reason was given" } else { &words };
    failure(kind, format!("the agent's turn failed: {shown}"))
}

/// `other` covers everything from a broken stream to a schema that the service does not take.
fn by_words(words: &str) -> FailureKind {
    let lower = words.to_lowercase();
    let any = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if any(&["missing environment variable", "not logged in", "login required"]) {
        FailureKind::Auth
    } else if any(&["stream disconnected", "error sending request", "connection", "timed out", "network"]) {
        FailureKind::RateLimited
    } else if any(&["invalid_json_schema", "invalid_request_error"]) {
        FailureKind::Protocol
    } else {
        FailureKind::Refused
    }
}

/// Whether the thread is of no use any more.
pub(super) fn thread_is_full(end: &End) -> bool {
    end.error["codexErrorInfo"] == "contextWindowExceeded"
}

fn shortened(text: &str, redactor: &Redactor) -> String {
    // First redacted, then cut: half a secret is not recognised.
    redactor.text(text).chars().take(MESSAGE_CAP).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(info: &Value, message: &str, kind: FailureKind) {
        let error = json!({"message": message, "codexErrorInfo": info});
        assert_eq!(failed(&error, &Redactor::default()).kind, kind, "{info} {message}");
    }

    #[test]
    fn every_measured_error_has_its_kind() {
        check(&json!("usageLimitExceeded"), "", FailureKind::UsageLimited);
        check(&json!("rateLimitExceeded"), "", FailureKind::RateLimited);
        check(&json!("serverOverloaded"), "", FailureKind::RateLimited);
        check(&json!("internalServerError"), "", FailureKind::RateLimited);
        for (status, kind) in [
            (json!(401), FailureKind::Auth),
            (json!(403), FailureKind::Auth),
            (json!(404), FailureKind::RateLimited),
            (json!(503), FailureKind::RateLimited),
            (Value::Null, FailureKind::RateLimited),
        ] {
            check(&json!({"httpConnectionFailed": {"httpStatusCode": status}}), "", kind);
        }
        check(&json!({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}), "", FailureKind::RateLimited);
        check(&json!("contextWindowExceeded"), "", FailureKind::Refused);
        check(&json!({"newThing": {"httpStatusCode": 502}}), "", FailureKind::RateLimited);
        check(&json!("other"), "stream disconnected before completion: x", FailureKind::RateLimited);
        check(&json!("other"), "Missing environment variable: `X`.", FailureKind::Auth);
        check(&json!("other"), "{\"code\":\"invalid_json_schema\"}", FailureKind::Protocol);
        check(&json!("other"), "the model refused", FailureKind::Refused);
        check(&json!(7), "", FailureKind::Refused);
    }
}
