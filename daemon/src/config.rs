//! Where the daemon keeps what, from its environment.

use std::ffi::OsString;
use std::path::PathBuf;

use harness_proto::place::{self, PlaceError, SocketPlace};

/// Places and names of one daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// State directory (0700).
    pub state_dir: PathBuf,
    /// Folder of run directories.
    pub runs_dir: PathBuf,
    /// Where it listens.
    pub socket: SocketPlace,
    /// The user's home, for walls.
    pub home: PathBuf,
    /// PATH of the daemon; a run uses its client's.
    pub path: OsString,
    /// This binary: launcher and `offline` agent.
    pub own_binary: PathBuf,
}

impl Config {
    /// Reads the environment of the process.
    ///
    /// # Errors
    /// [`PlaceError`] when a variable is unusable.
    pub fn from_env() -> Result<Self, PlaceError> {
        let env = |name: &str| std::env::var_os(name);
        let uid = nix::unistd::Uid::current().as_raw();
        let state_dir = place::state_dir(&env)?;
        let home = env("HOME").filter(|h| !h.is_empty()).map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Ok(Self {
            runs_dir: place::runs_dir(&env)?,
            socket: place::listen_place(&env, uid)?,
            home,
            path: env("PATH").unwrap_or_default(),
            own_binary: own_binary(),
            state_dir,
        })
    }

    /// Folder of mirrors.
    #[must_use]
    pub fn repos_dir(&self) -> PathBuf {
        self.state_dir.join("repos")
    }

    /// Folder of trees and private TMPDIRs, short because sockets live below TMPDIR.
    #[must_use]
    pub fn work_dir(&self) -> PathBuf {
        self.state_dir.join("w")
    }
}

/// Path of this program, also after its file was replaced by an upgrade.
fn own_binary() -> PathBuf {
    let path = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("harnessd"));
    match path.to_str().and_then(|text| text.strip_suffix(" (deleted)")) {
        Some(text) => PathBuf::from(text),
        None => path,
    }
}
