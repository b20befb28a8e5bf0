//! Takes secrets out of texts before they are kept (DESIGN 13).
//!
//! Two sources: the values of environment variables whose names say that they are secret, and the forms of well-known
//! tokens. A secret that has neither is not found; that is why environments are allow-listed as well.

use std::ffi::OsString;
use std::sync::LazyLock;

use regex::Regex;

/// What stands in a secret's place.
const MARK: &str = "[redacted]";
/// A shorter value is no secret worth the name, and replacing it would maim ordinary text.
const SHORTEST: usize = 8;

/// Parts of the names of variables that hold secrets.
const NAMES: &[&str] =
    &["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH", "COOKIE", "PRIVATE", "DSN"];

static TOKENS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"sk-[A-Za-z0-9_\-]{16,}",
        r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}",
        r"|glpat-[A-Za-z0-9_\-]{16,}|npm_[A-Za-z0-9]{30,}",
        r"|xox[abeoprs]-[A-Za-z0-9\-]{10,}",
        r"|A(?:KIA|SIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_\-]{30,}",
        r"|eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}",
        r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[^-]|-[^-])*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
        r"|(?P<head>(?i:bearer|basic)\s+)[A-Za-z0-9+/._~\-]{16,}=*",
        r"|(?P<scheme>[a-z][a-z0-9+.\-]*://[^\s:@/]*:)[^\s@/]{3,}(?P<at>@)",
    ))
    .expect("the pattern is constant")
});

/// Knows one environment's secrets.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    /// Longest first, so that a secret inside another leaves no rest.
    values: Vec<String>,
}

impl Redactor {
    /// Collects the secrets of an environment.
    #[must_use]
    pub fn of_environment(env: &[(OsString, OsString)]) -> Self {
        let mut values = Vec::new();
        for (name, value) in env {
            let name = name.to_string_lossy().to_ascii_uppercase();
            let (Some(value), true) = (value.to_str(), NAMES.iter().any(|part| name.contains(part))) else {
                continue;
            };
            // A path is where a secret lies (`SSH_AUTH_SOCK`), not the secret.
            if value.len() < SHORTEST || value.starts_with('/') {
                continue;
            }
            values.push(value.to_owned());
            // Inside JSON text the value has its escaped form.
            let escaped = serde_json::Value::from(value).to_string();
            let escaped = escaped[1..escaped.len() - 1].to_owned();
            if escaped != value {
                values.push(escaped);
            }
        }
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values }
    }

    /// The text without its secrets. Valid JSON stays valid: neither a match nor the mark holds a quote.
    #[must_use]
    pub fn text(&self, text: &str) -> String {
        let mut text = TOKENS.replace_all(text, format!("${{head}}${{scheme}}{MARK}${{at}}")).into_owned();
        for value in &self.values {
            if text.contains(value.as_str()) {
                text = text.replace(value.as_str(), MARK);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, wanted: &str) {
        let env = [
            ("OPENAI_API_KEY", "planted \"value\" 1"),
            ("HOME", "/home/somebody"),
            ("SSH_AUTH_SOCK", "/run/agent.sock"),
            ("MY_TOKEN", "short"),
        ];
        let env: Vec<_> = env.iter().map(|(k, v)| (k.into(), v.into())).collect();
        assert_eq!(Redactor::of_environment(&env).text(text), wanted);
    }

    #[test]
    fn secrets_of_the_environment_go_and_nothing_else() {
        check("x planted \"value\" 1 y", "x [redacted] y");
        check(r#"{"a":"planted \"value\" 1"}"#, r#"{"a":"[redacted]"}"#);
        check("/home/somebody /run/agent.sock short", "/home/somebody /run/agent.sock short");
    }

    #[test]
    fn well_known_tokens_go_and_commit_ids_stay() {
        check("key sk-abcdefghijklmnopqrstuv.", "key [redacted].");
        check("ghp_0123456789012345678901234567890123", "[redacted]");
        check("Authorization: Bearer abcdef0123456789abcdef==", "Authorization: Bearer [redacted]");
        check("https://me:pass1word@host/x", "https://me:[redacted]@host/x");
        let commit = "0123456789abcdef0123456789abcdef01234567";
        check(commit, commit);
        check("task-force sk-short", "task-force sk-short");
    }
}
