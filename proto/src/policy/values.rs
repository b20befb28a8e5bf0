//! The values of one run, by key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::check_from_value;
use super::field::{PRESETS, Preset};
use super::table::{FIELDS, field};
use super::{validate, value};
use crate::plan::Check;

/// Why a policy is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// No preset of that name.
    #[error("`{name}` is no profile: known are {known}")]
    UnknownProfile {
        /// As given.
        name: String,
        /// Every preset.
        known: String,
    },
    /// Not `KEY=VALUE`.
    #[error("`{text}` is no KEY=VALUE")]
    Malformed {
        /// As given.
        text: String,
    },
    /// No row of that key.
    #[error("`{key}` is no key of the policy{}", .suggestion.as_ref().map(|s| format!(": did you mean `{s}`?")).unwrap_or_default())]
    UnknownKey {
        /// As given.
        key: String,
        /// The nearest key.
        suggestion: Option<String>,
    },
    /// A value of another type.
    #[error("`{key}` must be {wanted}, not `{got}`")]
    WrongType {
        /// Key.
        key: String,
        /// As given.
        got: String,
        /// What the row takes.
        wanted: String,
    },
    /// A word that the row does not have.
    #[error("`{key}` cannot be `{value}`: allowed are {allowed}")]
    NotAllowed {
        /// Key.
        key: String,
        /// As given.
        value: String,
        /// Every word.
        allowed: String,
    },
    /// A number outside its range.
    #[error("`{key}` cannot be {value}: it must be from {min} to {max}")]
    OutOfRange {
        /// Key.
        key: String,
        /// As given.
        value: String,
        /// Smallest.
        min: String,
        /// Largest.
        max: String,
    },
    /// The behaviour is not built.
    #[error("`{key}={value}` is not available yet: available is {available}")]
    NotAvailable {
        /// Key.
        key: String,
        /// As given.
        value: String,
        /// What is.
        available: String,
    },
    /// Values that do not go together.
    #[error("{0}")]
    Combination(String),
}

impl PolicyError {
    /// Symbolic code: `NOT_AVAILABLE` or `POLICY_INVALID`.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NotAvailable { .. } => "NOT_AVAILABLE",
            _ => "POLICY_INVALID",
        }
    }
}

/// A complete policy: a value for every row of the table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyValues(BTreeMap<String, Value>);

impl PolicyValues {
    /// Every default of a preset, whether it is available or not.
    #[must_use]
    pub fn of(preset: Preset) -> Self {
        Self(FIELDS.iter().map(|f| (f.key.to_owned(), value::default_of(f, preset))).collect())
    }

    /// The policy of a profile that a run may have.
    ///
    /// # Errors
    /// [`PolicyError::UnknownProfile`], or [`PolicyError::NotAvailable`] for a preset that is not built.
    pub fn preset(name: &str) -> Result<Self, PolicyError> {
        match Preset::parse(name) {
            Some(Preset::Dag) => Ok(Self::of(Preset::Dag)),
            Some(other) => Err(PolicyError::NotAvailable {
                key: "profile".into(),
                value: other.as_str().into(),
                available: Preset::Dag.as_str().into(),
            }),
            None => Err(PolicyError::UnknownProfile {
                name: name.chars().take(80).collect(),
                known: PRESETS.map(Preset::as_str).join(", "),
            }),
        }
    }

    /// Reads stored values; rows that an older version did not have get their `dag` default.
    ///
    /// # Errors
    /// [`PolicyError`] for a key that this version does not know or a value that its row refuses.
    pub fn from_stored(stored: &BTreeMap<String, Value>) -> Result<Self, PolicyError> {
        let mut values = Self::of(Preset::Dag);
        for (key, value) in stored {
            values.put(key, value.clone())?;
        }
        Ok(values)
    }

    /// Sets one field from the text of `--set`.
    ///
    /// # Errors
    /// [`PolicyError`] names the key, what was given and what is allowed.
    pub fn set(&mut self, assignment: &str) -> Result<(), PolicyError> {
        let malformed = || PolicyError::Malformed { text: assignment.chars().take(80).collect() };
        let (key, text) = assignment.split_once('=').ok_or_else(malformed)?;
        let field = known(key.trim())?;
        self.0.insert(field.key.to_owned(), value::from_text(field, text)?);
        Ok(())
    }

    /// Sets one field from JSON.
    ///
    /// # Errors
    /// As [`PolicyValues::set`].
    pub fn put(&mut self, key: &str, value: Value) -> Result<(), PolicyError> {
        let field = known(key)?;
        self.0.insert(field.key.to_owned(), value::checked(field, value)?);
        Ok(())
    }

    /// Checks each value again and then what goes together (profiles.md 2.1).
    ///
    /// # Errors
    /// The first [`PolicyError`], in the order of the table.
    pub fn validate(&self) -> Result<(), PolicyError> {
        for field in FIELDS {
            value::checked(field, self.0.get(field.key).cloned().unwrap_or(Value::Null))?;
        }
        validate::combinations(self)
    }

    /// Every key with its value, sorted.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// The raw value; null for a key that the table does not have.
    #[must_use]
    pub fn get(&self, key: &str) -> &Value {
        let name = field(key).map_or(key, |f| f.key);
        self.0.get(name).unwrap_or(&Value::Null)
    }

    /// A text or word; empty when there is none.
    #[must_use]
    pub fn text(&self, key: &str) -> &str {
        self.get(key).as_str().unwrap_or_default()
    }

    /// A whole number; 0 when there is none.
    #[must_use]
    pub fn int(&self, key: &str) -> i64 {
        self.get(key).as_i64().unwrap_or_default()
    }

    /// A number; 0 when there is none.
    #[must_use]
    pub fn number(&self, key: &str) -> f64 {
        self.get(key).as_f64().unwrap_or_default()
    }

    /// A switch: `true` or `on`.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        match self.get(key) {
            Value::Bool(flag) => *flag,
            Value::String(text) => text == "on",
            _ => false,
        }
    }

    /// A list of texts.
    #[must_use]
    pub fn list(&self, key: &str) -> Vec<String> {
        let items = self.get(key).as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// A list of commands.
    #[must_use]
    pub fn checks(&self, key: &str) -> Vec<Check> {
        let items = self.get(key).as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().filter_map(|item| check_from_value(item).ok()).collect()
    }

    /// N of `retry.loop_detect=signature:N`; 0 when it is off.
    #[must_use]
    pub fn loop_limit(&self) -> i64 {
        value::signature_limit(self.text("retry.loop_detect")).unwrap_or_default()
    }

    /// The agent of a role (`planner`, `implementer`, `verifier`): its own, else `agent`.
    #[must_use]
    pub fn agent_of(&self, role: &str) -> String {
        let own = self.text(&format!("agent.{role}"));
        let agent = if own.is_empty() { self.text("agent") } else { own };
        match self.text("agent.codex_bin") {
            program if agent == "codex" && program != "codex" && !program.is_empty() => format!("codex:{program}"),
            _ => agent.to_owned(),
        }
    }
}

fn known(key: &str) -> Result<&'static super::field::Field, PolicyError> {
    field(key).ok_or_else(|| PolicyError::UnknownKey {
        key: key.chars().take(80).collect(),
        suggestion: nearest(key, FIELDS.iter().map(|f| f.key)).map(str::to_owned),
    })
}

/// The candidate that `text` most likely means: one that ends with it, else one at an edit distance of at most a third of its length.
pub(crate) fn nearest<'a>(text: &str, candidates: impl Iterator<Item = &'a str> + Clone) -> Option<&'a str> {
    let lower = text.to_ascii_lowercase();
    let tail = format!(".{lower}");
    if let Some(found) =
        candidates.clone().find(|c| c.ends_with(&tail) || c.replace(['-', '.'], "_") == lower.replace(['-', '.'], "_"))
    {
        return Some(found);
    }
    let best = candidates.map(|c| (distance(&lower, c), c)).min_by_key(|(d, _)| *d)?;
    (best.0 <= (lower.chars().count() / 3).max(1)).then_some(best.1)
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().take(80).enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = corner + usize::from(ca != *cb);
            corner = row[j + 1];
            row[j + 1] = cost.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
