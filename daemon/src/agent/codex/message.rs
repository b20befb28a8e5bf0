//! One line of the app-server protocol.

use serde_json::{Value, json};

/// What a line from the server is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// The server asks us something.
    Request {
        /// Its id, a number or a text; may equal one of ours.
        id: Value,
        /// What.
        method: String,
    },
    /// The server tells us something.
    Notification {
        /// What.
        method: String,
        /// The rest; null when absent.
        params: Value,
    },
    /// The answer to a request of ours.
    Response {
        /// The request.
        id: u64,
        /// Its result or error.
        result: Result<Value, RpcError>,
    },
    /// No message at all; skipped.
    Noise,
}

/// An error answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RpcError {
    /// JSON-RPC code.
    pub(super) code: i64,
    /// The server's words.
    pub(super) message: String,
}

/// Reads one line: bytes that are no UTF-8 are read lossily, what is no JSON object is noise.
pub(super) fn read(line: &[u8]) -> Message {
    let Ok(Value::Object(mut members)) = serde_json::from_str(&String::from_utf8_lossy(line)) else {
        return Message::Noise;
    };
    let id = members.remove("id").filter(|id| !id.is_null());
    let method = match members.remove("method") {
        Some(Value::String(method)) => Some(method),
        Some(_) | None => None,
    };
    let mut member = |name| members.remove(name).unwrap_or(Value::Null);
    // The order of the tests is the protocol's: a request's id may equal one of our pending ids.
    match (method, id) {
        (Some(method), Some(id)) => Message::Request { id, method },
        (Some(method), None) => Message::Notification { method, params: member("params") },
        (None, Some(id)) => {
            let Some(id) = id.as_u64() else {
                return Message::Noise;
            };
            let result = match member("error") {
                Value::Null => Ok(member("result")),
                error => {
                    Err(RpcError { code: error["code"].as_i64().unwrap_or_default(), message: text(&error["message"]) })
                }
            };
            Message::Response { id, result }
        }
        (None, None) => Message::Noise,
    }
}

/// The answer to a request of the server: nothing is ever approved, and what we do not know is refused.
pub(super) fn refusal(id: &Value, method: &str) -> Value {
    match method {
        "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => {
            json!({"id": id, "result": {"decision": "decline"}})
        }
        _ => {
            json!({"id": id, "error": {"code": -32601, "message": format!("Unsupported server request: {method}")}})
        }
    }
}

/// A value's text; a value that is no text as JSON.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], wanted: &Message) {
        assert_eq!(read(line), *wanted, "{}", String::from_utf8_lossy(line));
    }

    #[test]
    fn lines_are_told_apart_by_method_then_id() {
        let request = |id: Value| Message::Request { id, method: "m".to_owned() };
        check(br#"{"id":0,"method":"m","params":{}}"#, &request(json!(0)));
        check(br#"{"id":"a","method":"m"}"#, &request(json!("a")));
        check(
            br#"{"method":"m","params":{"a":1},"emittedAtMs":5}"#,
            &Message::Notification { method: "m".to_owned(), params: json!({"a": 1}) },
        );
        check(br#"{"id":3,"result":{}}"#, &Message::Response { id: 3, result: Ok(json!({})) });
        let error = RpcError { code: -32600, message: "no".to_owned() };
        check(br#"{"id":3,"error":{"code":-32600,"message":"no"}}"#, &Message::Response { id: 3, result: Err(error) });
    }

    #[test]
    fn what_is_no_message_is_noise() {
        let lines: [&[u8]; 8] =
            [b"", b"42", b"null", b"[]", b"WARNING: x", b"{\"id\":\"x\"}", b"{}", b"{\"method\":3}"];
        for line in lines {
            check(line, &Message::Noise);
        }
        let lossy = read(b"{\"method\":\"m\",\"params\":\"\xff\"}");
        assert!(matches!(lossy, Message::Notification { .. }));
    }
}
