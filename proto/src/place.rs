//! Where things stand, as a pure function of the environment; both binaries use it (ux.md section 6, corrections 16).
//!
//! An empty variable counts as unset and a relative one is refused: it would mean another place in each folder (scenarios B144).

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Longest path that a Unix socket can have (`sun_path` is 108 bytes with its final NUL).
pub const SOCKET_PATH_MAX: usize = 107;
/// Name of the record in the state directory that tells where the daemon listens.
pub const SOCKET_RECORD: &str = "socket.path";
/// Name of the file that `status` reads when the daemon is down.
pub const STATUS_FILE: &str = "status.json";
/// Name of the daemon's own log in the state directory.
pub const DAEMON_LOG: &str = "harnessd.log";

/// Why no place can be named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// A variable holds a relative path.
    #[error("{name} is `{value}`, which is not an absolute path")]
    Relative {
        /// The variable.
        name: &'static str,
        /// Its value.
        value: String,
    },
    /// Neither `HARNESS_STATE_DIR`, `XDG_STATE_HOME` nor `HOME` is set.
    #[error("no state directory: HARNESS_STATE_DIR, XDG_STATE_HOME and HOME are all unset")]
    NoHome,
    /// An explicit socket path is too long.
    #[error("HARNESS_SOCKET has {length} bytes: a socket path can have {SOCKET_PATH_MAX}")]
    SocketTooLong {
        /// Its length.
        length: usize,
    },
}

impl PlaceError {
    /// Why it is refused.
    #[must_use]
    pub const fn why(&self) -> &'static str {
        match self {
            Self::Relative { .. } => "it would be another place in each folder",
            Self::NoHome => "state has to be kept somewhere, and no place is guessed",
            Self::SocketTooLong { .. } => "the operating system takes no longer path for a socket",
        }
    }

    /// The command that helps.
    #[must_use]
    pub fn next(&self) -> String {
        match self {
            Self::Relative { name, value } => {
                format!("export {name}=\"$PWD/\"'{}'", value.replace('\'', "'\\''"))
            }
            Self::NoHome => "export HARNESS_STATE_DIR=/var/tmp/harness-state".to_owned(),
            Self::SocketTooLong { .. } => "unset HARNESS_SOCKET".to_owned(),
        }
    }
}

/// Where a socket path came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketOrigin {
    /// `HARNESS_SOCKET`; used as it is.
    Explicit,
    /// The record in the state directory.
    Record,
    /// `$XDG_RUNTIME_DIR/harness/`.
    Runtime,
    /// `/tmp/harness-$UID/`: the folder must be 0700 and the user's own.
    Temporary,
}

/// Where to listen or to call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketPlace {
    /// The path.
    pub path: PathBuf,
    /// Where it came from.
    pub origin: SocketOrigin,
}

/// The environment, as far as places depend on it.
pub trait Environment {
    /// The variable, none when unset.
    fn get(&self, name: &str) -> Option<OsString>;
}

impl<F: Fn(&str) -> Option<OsString>> Environment for F {
    fn get(&self, name: &str) -> Option<OsString> {
        self(name)
    }
}

impl Environment for std::collections::BTreeMap<String, String> {
    fn get(&self, name: &str) -> Option<OsString> {
        self.get(name).map(OsString::from)
    }
}

fn absolute(env: &impl Environment, name: &'static str) -> Result<Option<PathBuf>, PlaceError> {
    match env.get(name).filter(|value| !value.is_empty()).map(PathBuf::from) {
        Some(path) if !path.is_absolute() => Err(PlaceError::Relative { name, value: path.display().to_string() }),
        other => Ok(other),
    }
}

/// The state directory: `$HARNESS_STATE_DIR`, else `$XDG_STATE_HOME/harness`, else `~/.local/state/harness` (DESIGN 5).
///
/// # Errors
/// [`PlaceError`] for a relative variable or when none is set.
pub fn state_dir(env: &impl Environment) -> Result<PathBuf, PlaceError> {
    if let Some(path) = absolute(env, "HARNESS_STATE_DIR")? {
        return Ok(clean(&path));
    }
    // The XDG specification: a relative value is invalid and to be ignored.
    if let Ok(Some(path)) = absolute(env, "XDG_STATE_HOME") {
        return Ok(clean(&path.join("harness")));
    }
    let home = absolute(env, "HOME")?.ok_or(PlaceError::NoHome)?;
    Ok(clean(&home.join(".local/state/harness")))
}

/// The folder of run directories: `$HARNESS_RUNS_DIR`, else `<state>/runs` (DESIGN 5).
///
/// # Errors
/// [`PlaceError`] as [`state_dir`].
pub fn runs_dir(env: &impl Environment) -> Result<PathBuf, PlaceError> {
    match absolute(env, "HARNESS_RUNS_DIR")? {
        Some(path) => Ok(path),
        None => Ok(state_dir(env)?.join("runs")),
    }
}

/// Where the client calls: `HARNESS_SOCKET`, else the record in the state directory, else where a daemon would listen.
///
/// `record` is the text of `<state>/socket.path`, none when there is no such file.
///
/// # Errors
/// [`PlaceError`] as [`listen_place`].
pub fn call_place(env: &impl Environment, uid: u32, record: Option<&str>) -> Result<SocketPlace, PlaceError> {
    let recorded = record.map(|text| PathBuf::from(text.trim_end_matches('\n'))).filter(|path| path.is_absolute());
    let explicit = absolute(env, "HARNESS_SOCKET")?.is_some();
    match recorded {
        Some(path) if !explicit => Ok(SocketPlace { path, origin: SocketOrigin::Record }),
        _ => listen_place(env, uid),
    }
}

/// Where a daemon listens: `HARNESS_SOCKET`, else `$XDG_RUNTIME_DIR/harness/<8 hex of the state directory>.sock`, else
/// `/tmp/harness-$UID/<8 hex>.sock`. A path over [`SOCKET_PATH_MAX`] bytes falls back to the short one.
///
/// # Errors
/// [`PlaceError`] for a relative variable, no state directory, or an explicit path that is too long.
pub fn listen_place(env: &impl Environment, uid: u32) -> Result<SocketPlace, PlaceError> {
    if let Some(path) = absolute(env, "HARNESS_SOCKET")? {
        let length = path.as_os_str().len();
        if length > SOCKET_PATH_MAX {
            return Err(PlaceError::SocketTooLong { length });
        }
        return Ok(SocketPlace { path, origin: SocketOrigin::Explicit });
    }
    let name = format!("{}.sock", hash8(&state_dir(env)?));
    if let Ok(Some(runtime)) = absolute(env, "XDG_RUNTIME_DIR") {
        let path = runtime.join("harness").join(&name);
        if path.as_os_str().len() <= SOCKET_PATH_MAX {
            return Ok(SocketPlace { path, origin: SocketOrigin::Runtime });
        }
    }
    Ok(SocketPlace { path: PathBuf::from(format!("/tmp/harness-{uid}")).join(name), origin: SocketOrigin::Temporary })
}

/// First 8 hex digits of a hash of the path's bytes. FNV-1a, 64 bits folded to 32: only two state directories of one user must differ.
fn hash8(path: &Path) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in path.as_os_str().as_encoded_bytes() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    let mut text = String::with_capacity(8);
    write!(text, "{folded:08x}").expect("a String takes every write");
    text
}

/// Without `.` and doubled slashes, so that two spellings are one state directory; `..` and links stay.
fn clean(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use std::collections::BTreeMap;

    use super::*;

    fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn state_directory_follows_its_order() {
        let all = env(&[("HARNESS_STATE_DIR", "/s/./x//"), ("XDG_STATE_HOME", "/xdg"), ("HOME", "/h")]);
        assert_eq!(state_dir(&all).unwrap(), PathBuf::from("/s/x"));
        assert_eq!(
            state_dir(&env(&[("HARNESS_STATE_DIR", ""), ("XDG_STATE_HOME", "/xdg")])).unwrap(),
            PathBuf::from("/xdg/harness")
        );
        assert_eq!(
            state_dir(&env(&[("XDG_STATE_HOME", "rel"), ("HOME", "/h")])).unwrap(),
            PathBuf::from("/h/.local/state/harness")
        );
        assert_eq!(state_dir(&env(&[])), Err(PlaceError::NoHome));
        assert!(matches!(state_dir(&env(&[("HARNESS_STATE_DIR", "rel")])), Err(PlaceError::Relative { .. })));
    }

    #[test]
    fn socket_follows_its_order() {
        let state = ("HARNESS_STATE_DIR", "/s");
        let record = Some("/run/other.sock\n");
        let place = call_place(&env(&[state, ("HARNESS_SOCKET", "/a.sock")]), 7, record).unwrap();
        assert_eq!((place.path, place.origin), (PathBuf::from("/a.sock"), SocketOrigin::Explicit));
        let place = call_place(&env(&[state]), 7, record).unwrap();
        assert_eq!((place.path, place.origin), (PathBuf::from("/run/other.sock"), SocketOrigin::Record));
        let place = call_place(&env(&[state, ("XDG_RUNTIME_DIR", "/run/user/7")]), 7, None).unwrap();
        assert_eq!(place.origin, SocketOrigin::Runtime);
        assert!(place.path.starts_with("/run/user/7/harness"));
        let place = call_place(&env(&[state, ("XDG_RUNTIME_DIR", "")]), 7, Some("relative")).unwrap();
        assert_eq!(place.origin, SocketOrigin::Temporary);
        assert!(place.path.starts_with("/tmp/harness-7"));
    }

    #[test]
    fn a_long_folder_falls_back_and_two_long_ones_differ() {
        let long = "/x".repeat(100);
        let (a, b) = (format!("{long}/a"), format!("{long}/b"));
        let at = |state: &str| {
            listen_place(&env(&[("HARNESS_STATE_DIR", state), ("XDG_RUNTIME_DIR", long.as_str())]), 7).unwrap()
        };
        assert_eq!(at(&a).origin, SocketOrigin::Temporary);
        assert_ne!(at(&a).path, at(&b).path);
        assert!(at(&a).path.as_os_str().len() <= SOCKET_PATH_MAX);
        let explicit = env(&[("HARNESS_SOCKET", long.as_str())]);
        assert_eq!(listen_place(&explicit, 7), Err(PlaceError::SocketTooLong { length: 200 }));
    }
}
