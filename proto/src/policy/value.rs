//! One value: from the text of `--set`, from JSON, checked against its row.

use serde_json::{Map, Number, Value};

use super::check::{check_from_value, check_to_value};
use super::field::{Built, Field, Kind, Preset};
use super::values::PolicyError;

/// Reads the text of `--set KEY=TEXT`.
pub(super) fn from_text(field: &Field, text: &str) -> Result<Value, PolicyError> {
    let json = || {
        serde_json::from_str::<Value>(text).map_err(|e| wrong(field, text, &format!("{} ({e})", wanted(field.kind))))
    };
    let value = match field.kind {
        Kind::Word(_) | Kind::Text(_) | Kind::Signature | Kind::Agent => Value::from(text),
        Kind::Int(..) => text.parse::<i64>().map(Value::from).map_err(|_| wrong(field, text, &wanted(field.kind)))?,
        Kind::Number(..) => {
            let number = text.parse::<f64>().ok().and_then(Number::from_f64);
            number.map(Value::Number).ok_or_else(|| wrong(field, text, &wanted(field.kind)))?
        }
        Kind::Flag => match text {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => return Err(wrong(field, text, &wanted(field.kind))),
        },
        Kind::Words(_) | Kind::List if text.starts_with('[') => json()?,
        Kind::Words(_) | Kind::List => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect()
        }
        Kind::Checks if text.is_empty() => Value::Array(Vec::new()),
        Kind::Checks if text.starts_with('[') && text.ends_with(']') && serde_json::from_str::<Value>(text).is_ok() => {
            json()?
        }
        Kind::Checks if text.starts_with('{') => Value::Array(vec![json()?]),
        Kind::Checks => Value::Array(vec![Value::from(text)]),
        Kind::Weights if text.starts_with('{') => json()?,
        Kind::Weights => weights(field, text)?,
    };
    checked(field, value)
}

fn weights(field: &Field, text: &str) -> Result<Value, PolicyError> {
    let mut map = Map::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let pair = part.split_once(':').and_then(|(name, n)| Some((name.trim(), n.trim().parse::<i64>().ok()?)));
        let (name, number) = pair.ok_or_else(|| wrong(field, text, &wanted(field.kind)))?;
        map.insert(name.to_owned(), Value::from(number));
    }
    Ok(Value::Object(map))
}

/// Checks a JSON value against its row and brings it into the stored form.
pub(super) fn checked(field: &Field, value: Value) -> Result<Value, PolicyError> {
    let shown = show(&value);
    let bad = || wrong(field, &shown, &wanted(field.kind));
    let value = match (field.kind, value) {
        (Kind::Word(words), Value::String(text)) => {
            word(field, words, &text)?;
            Value::String(text)
        }
        (Kind::Words(words), Value::Array(items)) => {
            for item in &items {
                word(field, words, item.as_str().ok_or_else(bad)?)?;
            }
            Value::Array(items)
        }
        (Kind::Int(min, max), Value::Number(number)) => {
            let n = number.as_i64().ok_or_else(bad)?;
            if !(min..=max).contains(&n) {
                return Err(range(field, &shown, min.to_string(), max.to_string()));
            }
            Value::from(n)
        }
        (Kind::Number(min, max), Value::Number(number)) => {
            let n = number.as_f64().ok_or_else(bad)?;
            if !(min..=max).contains(&n) {
                return Err(range(field, &shown, min.to_string(), max.to_string()));
            }
            Number::from_f64(n).map(Value::Number).ok_or_else(bad)?
        }
        (Kind::Flag, Value::Bool(flag)) => Value::Bool(flag),
        (Kind::Text(max), Value::String(text)) => {
            if text.chars().count() > max {
                return Err(wrong(field, &shown, &wanted(field.kind)));
            }
            Value::String(text)
        }
        (Kind::List, Value::Array(items)) if items.iter().all(|i| i.as_str().is_some_and(|s| !s.is_empty())) => {
            Value::Array(items)
        }
        (Kind::Checks, Value::Array(items)) => {
            let read = |item: &Value| {
                check_from_value(item)
                    .map(|check| check_to_value(&check))
                    .map_err(|e| wrong(field, &show(item), &format!("{}: {e}", wanted(field.kind))))
            };
            Value::Array(items.iter().map(read).collect::<Result<_, _>>()?)
        }
        (Kind::Weights, Value::Object(map))
            if map.values().all(|v| v.as_i64().is_some_and(|n| (0..=100).contains(&n))) =>
        {
            Value::Object(map)
        }
        (Kind::Signature, Value::String(text)) => {
            signature_limit(&text).ok_or_else(bad)?;
            Value::String(text)
        }
        (Kind::Agent, Value::String(text))
            if text.chars().count() <= 4096 && (!text.is_empty() || field.key != "agent") =>
        {
            Value::String(text)
        }
        _ => return Err(bad()),
    };
    available(field, &value)?;
    Ok(value)
}

/// Refuses a value whose behaviour does not exist: never ignored (DESIGN 3).
pub(super) fn available(field: &Field, value: &Value) -> Result<(), PolicyError> {
    let fits = match field.built {
        Built::Yes => true,
        Built::Only(words) => value.as_str().is_some_and(|text| words.contains(&text)),
        Built::UpTo(max) => value.as_i64().is_some_and(|n| n <= max),
        Built::No => *value == default_of(field, Preset::Dag),
    };
    if fits {
        return Ok(());
    }
    let available = match field.built {
        Built::Only(words) => words.join(", "),
        Built::UpTo(max) => format!("up to {max}"),
        Built::Yes | Built::No => show(&default_of(field, Preset::Dag)),
    };
    Err(PolicyError::NotAvailable { key: field.key.to_owned(), value: show(value), available })
}

/// The table's default in its stored form; the table's own values are checked by a test, so they are not refused here.
pub(super) fn default_of(field: &Field, preset: Preset) -> Value {
    let open = Field { built: Built::Yes, ..*field };
    from_text(&open, field.defaults[preset.column()]).unwrap_or(Value::Null)
}

/// N of `signature:N`, 0 for `off`.
pub(super) fn signature_limit(text: &str) -> Option<i64> {
    if text == "off" {
        return Some(0);
    }
    text.strip_prefix("signature:")?.parse::<i64>().ok().filter(|n| (2..=100).contains(n))
}

fn word(field: &Field, words: &[&str], text: &str) -> Result<(), PolicyError> {
    if words.contains(&text) {
        return Ok(());
    }
    Err(PolicyError::NotAllowed { key: field.key.to_owned(), value: cut(text), allowed: words.join(", ") })
}

fn wrong(field: &Field, got: &str, wanted: &str) -> PolicyError {
    PolicyError::WrongType { key: field.key.to_owned(), got: cut(got), wanted: wanted.to_owned() }
}

fn range(field: &Field, value: &str, min: String, max: String) -> PolicyError {
    PolicyError::OutOfRange { key: field.key.to_owned(), value: cut(value), min, max }
}

/// What a kind takes, in words.
pub(super) fn wanted(kind: Kind) -> String {
    match kind {
        Kind::Word(words) => format!("one of {}", words.join(", ")),
        Kind::Words(words) => format!("a list of {}", words.join(", ")),
        Kind::Int(min, max) => format!("a whole number from {min} to {max}"),
        Kind::Number(min, max) => format!("a number from {min} to {max}"),
        Kind::Flag => "true or false".to_owned(),
        Kind::Text(max) => format!("a text of at most {max} characters"),
        Kind::List => "a list of texts".to_owned(),
        Kind::Checks => "a list of commands".to_owned(),
        Kind::Weights => "whole numbers from 0 to 100 by name".to_owned(),
        Kind::Signature => "off or signature:N with N from 2 to 100".to_owned(),
        Kind::Agent => "the name of an agent".to_owned(),
    }
}

/// A value in the form that people read and `--set` takes.
#[must_use]
pub fn show(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.iter().all(|i| i.as_str().is_some_and(|s| !s.contains(','))) => {
            items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(",")
        }
        Value::Object(map) if map.values().all(Value::is_number) => {
            map.iter().map(|(name, n)| format!("{name}:{n}")).collect::<Vec<_>>().join(",")
        }
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    let short: String = text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 80 { format!("{short}…") } else { short }
}
