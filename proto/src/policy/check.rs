//! Commands as people and plans write them: a string, or `{cmd|argv, timeout_s, cwd, env, network, expect_tests_min}` (DESIGN 8).

use serde_json::{Map, Value};

use crate::plan::{Check, CommandLine};

/// Why a value is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Neither text nor object.
    #[error("a command is a text or an object with `cmd` or `argv`")]
    Shape,
    /// Nothing to run.
    #[error("the command is empty")]
    Empty,
    /// Both or none of `cmd` and `argv`.
    #[error("a command has either `cmd` or `argv`")]
    CmdOrArgv,
    /// A member that no command has.
    #[error("`{0}` is no member of a command: known are cmd, argv, timeout_s, cwd, env, network, expect_tests_min")]
    Member(String),
    /// A member of the wrong type or out of range.
    #[error("`{member}` must be {wanted}")]
    Wrong {
        /// Which.
        member: &'static str,
        /// What it takes.
        wanted: &'static str,
    },
}

/// Reads a command.
///
/// # Errors
/// [`CheckError`] names the member that is wrong.
pub fn check_from_value(value: &Value) -> Result<Check, CheckError> {
    let map = match value {
        Value::String(text) => return nonempty(Check::shell(text.as_str())),
        Value::Object(map) => map,
        _ => return Err(CheckError::Shape),
    };
    let mut check = Check::shell("");
    let mut commands = 0;
    for (name, member) in map {
        match name.as_str() {
            "cmd" => {
                commands += 1;
                check.command = CommandLine::Cmd(text(member, "cmd")?);
            }
            "argv" => {
                commands += 1;
                let wrong = CheckError::Wrong { member: "argv", wanted: "a list of texts" };
                let words = member.as_array().ok_or_else(|| wrong.clone())?;
                let words: Option<Vec<String>> = words.iter().map(|w| w.as_str().map(str::to_owned)).collect();
                check.command = CommandLine::Argv(words.ok_or(wrong)?);
            }
            "timeout_s" => check.timeout_s = Some(number(member, "timeout_s", 1, 86_400)?),
            "expect_tests_min" => check.expect_tests_min = Some(number(member, "expect_tests_min", 0, 1_000_000)?),
            "cwd" => {
                let cwd = text(member, "cwd")?;
                let inside = !cwd.starts_with('/') && cwd.split('/').all(|part| part != "..");
                if !inside {
                    return Err(CheckError::Wrong { member: "cwd", wanted: "a relative path without `..`" });
                }
                check.cwd = Some(cwd);
            }
            "env" => {
                let wrong = CheckError::Wrong { member: "env", wanted: "an object of texts" };
                for (key, value) in member.as_object().ok_or_else(|| wrong.clone())? {
                    let value = value.as_str().filter(|v| !v.contains('\0')).ok_or_else(|| wrong.clone())?;
                    if key.is_empty() || key.contains(['=', '\0']) {
                        return Err(wrong);
                    }
                    check.env.insert(key.clone(), value.to_owned());
                }
            }
            "network" => {
                let wrong = CheckError::Wrong { member: "network", wanted: "true or false" };
                check.network = Some(member.as_bool().ok_or(wrong)?);
            }
            other => return Err(CheckError::Member(other.chars().take(80).collect())),
        }
    }
    if commands != 1 {
        return Err(CheckError::CmdOrArgv);
    }
    nonempty(check)
}

/// Writes a command in the form that [`check_from_value`] reads: a string when it has no options.
#[must_use]
pub fn check_to_value(check: &Check) -> Value {
    let mut map = Map::new();
    match &check.command {
        CommandLine::Cmd(text) => {
            if *check == Check::shell(text.as_str()) {
                return Value::from(text.as_str());
            }
            map.insert("cmd".into(), Value::from(text.as_str()));
        }
        CommandLine::Argv(words) => {
            map.insert("argv".into(), Value::from(words.clone()));
        }
    }
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            map.insert(name.to_owned(), value);
        }
    };
    put("timeout_s", check.timeout_s.map(Value::from));
    put("cwd", check.cwd.as_deref().map(Value::from));
    put("network", check.network.map(Value::from));
    put("expect_tests_min", check.expect_tests_min.map(Value::from));
    let env: Map<String, Value> = check.env.iter().map(|(k, v)| (k.clone(), Value::from(v.as_str()))).collect();
    put("env", (!env.is_empty()).then_some(Value::Object(env)));
    Value::Object(map)
}

fn nonempty(check: Check) -> Result<Check, CheckError> {
    let ok = match &check.command {
        CommandLine::Cmd(text) => !text.trim().is_empty() && !text.contains('\0'),
        CommandLine::Argv(words) => {
            words.first().is_some_and(|w| !w.is_empty()) && words.iter().all(|w| !w.contains('\0'))
        }
    };
    if ok { Ok(check) } else { Err(CheckError::Empty) }
}

fn text(value: &Value, member: &'static str) -> Result<String, CheckError> {
    value.as_str().map(str::to_owned).ok_or(CheckError::Wrong { member, wanted: "a text" })
}

fn number(value: &Value, member: &'static str, min: u64, max: u64) -> Result<u32, CheckError> {
    let n = value.as_u64().filter(|n| (min..=max).contains(n)).and_then(|n| u32::try_from(n).ok());
    n.ok_or(CheckError::Wrong {
        member,
        wanted: if min == 0 { "a whole number" } else { "a whole number from 1 to 86400" },
    })
}
