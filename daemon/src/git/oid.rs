//! Object names: full hexadecimal ids, never abbreviations, branch names or revision expressions.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A full, lower-case hexadecimal object id of either object format.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    /// Accepts exactly 40 or 64 lower-case hexadecimal digits; anything else is `None`.
    pub fn parse(text: &str) -> Option<Self> {
        let full = matches!(text.len(), 40 | 64);
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (full && hex).then(|| Self(text.to_owned()))
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id git uses for "no object" in the same format.
    pub fn zero_like(&self) -> Self {
        Self("0".repeat(self.0.len()))
    }

    /// Whether this is git's "no object".
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|b| b == b'0')
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Oid {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| format!("`{text}` is not a full object id"))
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> Self {
        oid.0
    }
}

/// The hash a repository names its objects with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectFormat {
    /// 40 digits; what nearly every repository uses.
    Sha1,
    /// 64 digits.
    Sha256,
}

impl ObjectFormat {
    /// Git's own word for the format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// Reads git's own word; `None` for a format this version does not know.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sha1" => Some(Self::Sha1),
            "sha256" => Some(Self::Sha256),
            _ => None,
        }
    }
}
