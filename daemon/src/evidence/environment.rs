//! The allow-list of environment variables (artifacts.md 2b).
//!
//! `HOME` is passed on because toolchains look for their files there; behind a wall the home as a whole is unreadable and only
//! the toolchains that `PATH` names are open, so it is a name and no key.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Names that pass.
const ALLOWED: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "TERM",
    "TZ",
    "TMPDIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
];
/// What programs are looked for in when the daemon has no usable `PATH`.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Picks from the daemon's environment what evidence may see: the allow-list, `LC_*`, and the names of policy `agent.env[]`
/// and `--agent-env`. Names beginning with `HARNESS_` never pass, whoever asks. Sorted by name.
#[must_use]
pub fn allowed_environment(
    daemon: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
) -> Vec<(OsString, OsString)> {
    let passes = |name: &OsStr| {
        let bytes = name.as_bytes();
        !bytes.starts_with(b"HARNESS_")
            && (bytes.starts_with(b"LC_")
                || ALLOWED.iter().any(|allowed| name == *allowed)
                || named.iter().any(|extra| name == extra.as_str()))
    };
    let mut env: Vec<_> = daemon.into_iter().filter(|(name, _)| passes(name)).collect();
    let path = env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| absolute_only(value));
    env.retain(|(name, _)| name != "PATH");
    env.push(("PATH".into(), path.unwrap_or_else(|| DEFAULT_PATH.into())));
    env.sort();
    env
}

/// The same for an agent, which also gets the variables that hold its own keys (and no other agent's).
#[must_use]
pub fn agent_environment(
    daemon: impl IntoIterator<Item = (OsString, OsString)>,
    named: &[String],
    own_keys: &[&str],
) -> Vec<(OsString, OsString)> {
    let mut names = named.to_vec();
    names.extend(own_keys.iter().map(|name| (*name).to_owned()));
    allowed_environment(daemon, &names)
}

/// Only absolute folders: a relative one would let a tree bring its own `sh`.
fn absolute_only(path: &OsStr) -> OsString {
    let folders: Vec<_> = std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect();
    let joined = std::env::join_paths(folders).unwrap_or_default();
    if joined.is_empty() { DEFAULT_PATH.into() } else { joined }
}

/// Finds a program in the absolute folders of an environment's `PATH`.
pub(super) fn find_program(env: &[(OsString, OsString)], program: &str) -> Option<OsString> {
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())?;
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|candidate| is_executable(candidate))
        .map(Into::into)
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && nix::unistd::access(path, nix::unistd::AccessFlags::X_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(daemon: &[(&str, &str)], named: &[&str], wanted: &[(&str, &str)]) {
        let pairs = |list: &[(&str, &str)]| -> Vec<(OsString, OsString)> {
            list.iter().map(|(name, value)| (name.into(), value.into())).collect()
        };
        let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(allowed_environment(pairs(daemon), &named), pairs(wanted));
    }

    #[test]
    fn only_what_is_allowed_passes() {
        check(
            &[
                ("OPENAI_API_KEY", "secret"),
                ("LC_ALL", "C"),
                ("PATH", "/usr/bin:.:bin:/bin"),
                ("GIT_DIR", "/x"),
                ("LD_PRELOAD", "/x.so"),
                ("HOME", "/h"),
                ("HARNESS_NONCE", "n"),
                ("MINE", "1"),
            ],
            &["MINE", "HARNESS_NONCE"],
            &[("HOME", "/h"), ("LC_ALL", "C"), ("MINE", "1"), ("PATH", "/usr/bin:/bin")],
        );
        check(&[("PATH", "relative")], &[], &[("PATH", DEFAULT_PATH)]);
        check(&[], &[], &[("PATH", DEFAULT_PATH)]);
    }

    #[test]
    fn an_agent_gets_its_own_keys_only() {
        let daemon =
            [("A_KEY", "a"), ("B_KEY", "b"), ("PATH", "/bin")].map(|(name, value)| (name.into(), value.into()));
        let env = agent_environment(daemon, &[], &["A_KEY"]);
        let names: Vec<_> = env.iter().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert_eq!(names, ["A_KEY", "PATH"]);
    }
}
