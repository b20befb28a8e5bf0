//! Words of other people in our errors: cut and without control characters.

use serde_json::Value;

/// At most 80 characters of a refused text, so that an error stays one line.
pub(super) fn shown(text: &str) -> String {
    let clean: String = text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 80 { format!("{clean}…") } else { clean }
}

/// The JSON kind of a value.
pub(super) const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// A value as the predecessor's messages show it: texts in single quotes.
pub(super) fn quoted(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", shown(text)),
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        other => shown(&other.to_string()),
    }
}
