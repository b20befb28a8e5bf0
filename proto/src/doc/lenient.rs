//! Reading of documents that an older writer, a hand or a crash left: wrong members become defaults, a wrong whole is an error.

use serde_json::{Map, Value};

/// A file that is no document at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DocError {
    /// The text is no JSON.
    #[error("invalid JSON: {0}")]
    NotJson(String),
    /// The text is JSON, but no object.
    #[error("expected a JSON object")]
    NotObject,
    /// A newer harness wrote it; it must not be rewritten.
    #[error("version {0} is newer than 1, the newest that this harness knows")]
    Newer(i64),
}

/// Parses a document's text to an object of a known version.
///
/// # Errors
/// Each case of [`DocError`].
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, DocError> {
    let value: Value = serde_json::from_str(text).map_err(|e| DocError::NotJson(e.to_string()))?;
    let Value::Object(members) = value else {
        return Err(DocError::NotObject);
    };
    match integer(&members, "version") {
        version if version > super::DOC_VERSION => Err(DocError::Newer(version)),
        _ => Ok(members),
    }
}

/// A text member; empty when it is absent or no text.
pub(crate) fn text(members: &Map<String, Value>, key: &str) -> String {
    members.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A text member with a default for absent or empty.
pub(crate) fn text_or(members: &Map<String, Value>, key: &str, default: &str) -> String {
    let found = text(members, key);
    if found.is_empty() { default.to_owned() } else { found }
}

/// An integer member; negative or unreadable becomes 0 (artifacts.md 1.4). Digits in a text count, as the predecessor's `int()` does.
pub(crate) fn integer(members: &Map<String, Value>, key: &str) -> i64 {
    let found = match members.get(key) {
        Some(Value::Number(n)) => n.as_i64(),
        Some(Value::String(digits)) => digits.trim().parse().ok(),
        _ => None,
    };
    found.unwrap_or(0).max(0)
}

/// A boolean member; false when absent.
pub(crate) fn boolean(members: &Map<String, Value>, key: &str) -> bool {
    members.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// An object member; empty when it is absent or no object.
pub(crate) fn members(parent: &Map<String, Value>, key: &str) -> Map<String, Value> {
    match parent.get(key) {
        Some(Value::Object(found)) => found.clone(),
        _ => Map::new(),
    }
}

/// A list of texts; entries that are no text are left out.
pub(crate) fn texts(parent: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = parent.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
