//! The environment git is started with: an allow-list, so that no `GIT_*` of a caller changes what is done.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Passed on to every git command.
const ALLOWED: &[&str] = &["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_CONFIG_HOME"];

/// Passed on only where the user's own configuration is meant: landing (filters may fetch) and reading it.
const ALLOWED_AS_USER: &[&str] = &[
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// The parts of the user's environment git may see, taken once and carried along.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserEnv {
    all: Vec<(OsString, OsString)>,
    as_user: Vec<(OsString, OsString)>,
}

impl UserEnv {
    /// Takes the allow-listed variables of this process.
    pub fn from_process() -> Self {
        let take =
            |names: &[&str]| names.iter().filter_map(|n| std::env::var_os(n).map(|v| (OsString::from(n), v))).collect();
        Self { all: take(ALLOWED), as_user: take(ALLOWED_AS_USER) }
    }

    /// Replaces or adds one variable if it is on an allow-list; others are ignored.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<OsString>) -> Self {
        let list = if ALLOWED.contains(&name) {
            &mut self.all
        } else if ALLOWED_AS_USER.contains(&name) {
            &mut self.as_user
        } else {
            return self;
        };
        list.retain(|(n, _)| n != name);
        list.push((OsString::from(name), value.into()));
        self
    }

    /// Variables for every command.
    pub(super) fn all(&self) -> &[(OsString, OsString)] {
        &self.all
    }

    /// Variables for commands under the user's own configuration.
    pub(super) fn as_user(&self) -> &[(OsString, OsString)] {
        &self.as_user
    }

    /// Expands a leading `~/` with the user's home, as git does for paths in its configuration.
    pub(super) fn expand(&self, value: &str) -> PathBuf {
        let home = self.all.iter().find(|(n, _)| n == "HOME").map(|(_, v)| PathBuf::from(v));
        match (value.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => Path::new(value).to_path_buf(),
        }
    }
}
