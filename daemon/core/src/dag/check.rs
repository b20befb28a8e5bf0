//! Commands as planners and users write them (DESIGN 8).

use std::collections::BTreeMap;

use harness_proto::plan::{Check, CommandLine};
use serde_json::{Map, Value};

use super::text::{kind, shown};

/// Longest command, in bytes.
const COMMAND_BYTES_MAX: usize = 16 << 10;
/// Longest limit of one command: a day.
const TIMEOUT_S_MAX: u64 = 86_400;
/// The members of a command object.
const MEMBERS: [&str; 7] = ["argv", "cmd", "cwd", "env", "expect_tests_min", "network", "timeout_s"];

/// Why a relative path would leave the tree it is meant for; none when it stays inside.
#[must_use]
pub fn escaping_path(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("is empty");
    }
    if path.contains('\0') {
        return Some("has a NUL character");
    }
    if path.contains('\\') {
        return Some("has a backslash; paths are written with `/`");
    }
    if path.starts_with('/') || path.starts_with('~') {
        return Some("is absolute");
    }
    if path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic() {
        return Some("names a drive");
    }
    if path.split('/').any(|part| part == "..") {
        return Some("has a `..`");
    }
    if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Some("is inside `.git`");
    }
    None
}

/// A command given as plain text, for `--verify` and `--setup`.
///
/// # Errors
/// The sentence for the user when the text is no command.
pub fn check_from_text(text: &str) -> Result<Check, String> {
    command_text(text).map(Check::shell)
}

/// A command of a plan or a manifest: a text, or an object with `cmd` or `argv` and options.
///
/// # Errors
/// Every broken rule, as sentences without their place.
pub fn check_from_value(value: &Value) -> Result<Check, Vec<String>> {
    match value {
        Value::String(text) => check_from_text(text).map_err(|error| vec![error]),
        Value::Object(map) => object(map),
        other => Err(vec![format!("must be a text or an object with `cmd` or `argv`, is {}", kind(other))]),
    }
}

fn object(map: &Map<String, Value>) -> Result<Check, Vec<String>> {
    let mut errors = Vec::new();
    for name in map.keys().filter(|name| !MEMBERS.contains(&name.as_str())) {
        errors.push(format!("unknown member `{}`: known are {}", shown(name), MEMBERS.join(", ")));
    }
    let command = command(map, &mut errors);
    let timeout_s = number(map, "timeout_s", 1, TIMEOUT_S_MAX, &mut errors);
    let expect_tests_min = number(map, "expect_tests_min", 0, 1_000_000, &mut errors);
    let cwd = match map.get("cwd") {
        None | Some(Value::Null) => None,
        Some(Value::String(path)) => match escaping_path(path) {
            None => Some(path.clone()),
            Some(why) => {
                errors.push(format!("`cwd` `{}` {why}", shown(path)));
                None
            }
        },
        Some(other) => {
            errors.push(format!("`cwd` must be a text, is {}", kind(other)));
            None
        }
    };
    let network = match map.get("network") {
        None | Some(Value::Null) => None,
        Some(Value::Bool(on)) => Some(*on),
        Some(other) => {
            errors.push(format!("`network` must be true or false, is {}", kind(other)));
            None
        }
    };
    let env = variables(map, &mut errors);
    match command {
        Some(command) if errors.is_empty() => Ok(Check { command, timeout_s, cwd, env, network, expect_tests_min }),
        _ => Err(errors),
    }
}

fn command(map: &Map<String, Value>, errors: &mut Vec<String>) -> Option<CommandLine> {
    match (map.get("cmd"), map.get("argv")) {
        (Some(Value::String(text)), None) => match command_text(text) {
            Ok(text) => Some(CommandLine::Cmd(text)),
            Err(error) => {
                errors.push(error);
                None
            }
        },
        (None, Some(Value::Array(items))) => argv(items, errors),
        (Some(_), Some(_)) => {
            errors.push("give `cmd` or `argv`, not both".to_owned());
            None
        }
        (None, None) => {
            errors.push("`cmd` or `argv` is missing".to_owned());
            None
        }
        (Some(other), None) => {
            errors.push(format!("`cmd` must be a text, is {}", kind(other)));
            None
        }
        (None, Some(other)) => {
            errors.push(format!("`argv` must be a list of texts, is {}", kind(other)));
            None
        }
    }
}

fn argv(items: &[Value], errors: &mut Vec<String>) -> Option<CommandLine> {
    let words: Vec<String> = items.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
    let problem = if words.len() != items.len() {
        "`argv` must be a list of texts"
    } else if words.first().is_none_or(|program| program.trim().is_empty()) {
        "`argv` names no program"
    } else if words.iter().any(|word| word.contains('\0')) {
        "`argv` has a NUL character"
    } else if words.iter().map(String::len).sum::<usize>() > COMMAND_BYTES_MAX {
        "`argv` is longer than 16 KiB"
    } else {
        return Some(CommandLine::Argv(words));
    };
    errors.push(problem.to_owned());
    None
}

fn command_text(text: &str) -> Result<String, String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err("the command is empty".to_owned());
    }
    if trimmed.contains('\0') {
        return Err("the command has a NUL character".to_owned());
    }
    if trimmed.len() > COMMAND_BYTES_MAX {
        return Err(format!("the command has {} bytes, the limit is {COMMAND_BYTES_MAX}", trimmed.len()));
    }
    Ok(trimmed.to_owned())
}

fn number(map: &Map<String, Value>, name: &str, min: u64, max: u64, errors: &mut Vec<String>) -> Option<u32> {
    let value = map.get(name).filter(|value| !value.is_null())?;
    match value.as_u64().filter(|n| (min..=max).contains(n)).and_then(|n| u32::try_from(n).ok()) {
        Some(n) => Some(n),
        None => {
            errors.push(format!("`{name}` must be an integer from {min} to {max}, is {}", shown(&value.to_string())));
            None
        }
    }
}

fn variables(map: &Map<String, Value>, errors: &mut Vec<String>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    match map.get("env") {
        None | Some(Value::Null) => {}
        Some(Value::Object(env)) => {
            for (name, value) in env {
                let named = !name.is_empty()
                    && !name.as_bytes()[0].is_ascii_digit()
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                match value {
                    Value::String(text) if named && !text.contains('\0') => {
                        out.insert(name.clone(), text.clone());
                    }
                    _ => errors.push(format!("`env` member `{}` must be a variable name with a text", shown(name))),
                }
            }
        }
        Some(other) => errors.push(format!("`env` must be an object, is {}", kind(other))),
    }
    out
}

/// A command in the form that [`check_from_value`] reads: a text when it has no options.
#[must_use]
pub fn check_to_value(check: &Check) -> Value {
    if let CommandLine::Cmd(text) = &check.command
        && *check == Check::shell(text.clone())
    {
        return Value::from(text.clone());
    }
    let mut map = BTreeMap::new();
    match &check.command {
        CommandLine::Cmd(text) => map.insert("cmd", Value::from(text.clone())),
        CommandLine::Argv(words) => map.insert("argv", Value::from(words.clone())),
    };
    if let Some(seconds) = check.timeout_s {
        map.insert("timeout_s", Value::from(seconds));
    }
    if let Some(path) = &check.cwd {
        map.insert("cwd", Value::from(path.clone()));
    }
    if let Some(on) = check.network {
        map.insert("network", Value::from(on));
    }
    if let Some(tests) = check.expect_tests_min {
        map.insert("expect_tests_min", Value::from(tests));
    }
    if !check.env.is_empty() {
        let env: Map<String, Value> = check.env.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
        map.insert("env", Value::Object(env));
    }
    Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
}
