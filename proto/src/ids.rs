//! Ids: newtypes, so that two numbers or two texts can never be swapped.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The pattern of a task id, as errors print it (DESIGN 4).
pub const TASK_ID_PATTERN: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

/// Why a text is no id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text does not have the form of a task id.
    #[error(
        "task id `{0}` is not allowed: it must match {TASK_ID_PATTERN} without `..`, a trailing `.` or a trailing `.lock`"
    )]
    Task(String),
    /// The text does not have the form of a run id.
    #[error("`{0}` is no run id: run ids are `run_` and 8 characters of a-z2-7")]
    Run(String),
}

/// A run: `run_` and 8 random base32 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// Builds an id from 5 random bytes given by the caller.
    #[must_use]
    pub fn from_random(bytes: [u8; 5]) -> Self {
        const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
        let bits = bytes.iter().fold(0u64, |acc, byte| (acc << 8) | u64::from(*byte));
        let text: String =
            (0..8).rev().map(|place| char::from(ALPHABET[((bits >> (place * 5)) & 31) as usize])).collect();
        Self(format!("run_{text}"))
    }

    /// Parses a complete id.
    ///
    /// # Errors
    /// [`IdError::Run`] when the text has another form.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let tail = text.strip_prefix("run_").filter(|tail| {
            tail.len() == 8 && tail.bytes().all(|b| b.is_ascii_lowercase() || (b'2'..=b'7').contains(&b))
        });
        match tail {
            Some(_) => Ok(Self(text.to_owned())),
            None => Err(IdError::Run(shown(text))),
        }
    }

    /// The text form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A task of a plan: matches [`TASK_ID_PATTERN`], no `..`, no trailing `.` or `.lock` (it becomes part of refs and file names).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TaskId(String);

impl TaskId {
    /// Parses a task id.
    ///
    /// # Errors
    /// [`IdError::Task`] with the pattern when the text is no id.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let bytes = text.as_bytes();
        let form = (1..=64).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        let lower = text.to_ascii_lowercase();
        if form && !text.contains("..") && !text.ends_with('.') && !lower.ends_with(".lock") {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError::Task(shown(text)))
        }
    }

    /// The text form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// At most 80 characters of a refused text, so that an error stays one line.
fn shown(text: &str) -> String {
    let clean: String = text.chars().take(80).map(|c| if c.is_control() { '?' } else { c }).collect();
    if text.chars().count() > 80 { format!("{clean}…") } else { clean }
}

macro_rules! text_id {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(&self.0) }
        }
        impl From<$name> for String { fn from(id: $name) -> Self { id.0 } }
        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> { Self::parse(&text) }
        }
        impl std::str::FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> { Self::parse(text) }
        }
    )*};
}
text_id!(RunId, TaskId);

macro_rules! number_id {
    ($($(#[$doc:meta])* $name:ident),*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{}", self.0) }
        }
    )*};
}
number_id!(
    /// An effect of one run, from 1 in the order they were decided.
    EffectId,
    /// A row of a run's history, from 1 without gaps.
    Seq,
    /// The lease epoch of a run: each claim adds one, each write carries it.
    Fence,
    /// A point in time: milliseconds since 1970-01-01 UTC by the wall clock.
    Millis
);

impl Millis {
    /// The instant `ms` milliseconds later; saturates.
    #[must_use]
    pub fn plus(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_follow_the_pattern() {
        for good in ["T-001", "a", "T.1_x-9", &"x".repeat(64)] {
            assert!(TaskId::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "..",
            "a..b",
            "-a",
            ".a",
            "a.",
            "a.lock",
            "A.LOCK",
            "a/b",
            "a b",
            "ä",
            "🙂",
            "../../x",
            &"x".repeat(65),
        ] {
            assert!(TaskId::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn run_ids_have_a_fixed_form() {
        let id = RunId::from_random([0xff, 0, 0x12, 0x34, 0x56]);
        assert_eq!(id.as_str().len(), 12);
        assert_eq!(RunId::parse(id.as_str()), Ok(id));
        assert!(RunId::parse("run_ABCDEFGH").is_err());
    }
}
