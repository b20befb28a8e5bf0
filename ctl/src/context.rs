//! What every verb has: places, options, the client.

use harness_proto::error::Problem;
use harness_proto::place::{self, PlaceError, SocketOrigin, SocketPlace};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use crate::cli::{Global, RunRef};
use crate::client::{Client, Target};
use crate::failure::Failure;
use crate::render::Out;
use crate::repo;

/// See the module.
pub(crate) struct Context<'a> {
    /// Options of every verb.
    pub(crate) global: Global,
    /// Where to print.
    pub(crate) out: &'a Out,
    /// The state directory.
    pub(crate) state_dir: PathBuf,
    /// Where the daemon listens.
    pub(crate) socket: SocketPlace,
    /// The daemon.
    pub(crate) client: Client,
}

impl<'a> Context<'a> {
    /// Looks at the environment; connects to nothing.
    pub(crate) fn new(global: Global, out: &'a Out) -> Result<Self, Failure> {
        let env = |name: &str| std::env::var_os(name);
        let state_dir = place::state_dir(&env).map_err(|e| misplaced(&e))?;
        let record = std::fs::read_to_string(state_dir.join(place::SOCKET_RECORD)).ok();
        let socket =
            place::call_place(&env, nix::unistd::geteuid().as_raw(), record.as_deref()).map_err(|e| misplaced(&e))?;
        trusted(&socket)?;
        let client = Client::new(&socket.path)?;
        Ok(Self { global, out, state_dir, socket, client })
    }

    /// The target of a run.
    pub(crate) fn target(&self, run: &RunRef) -> Result<Target, Failure> {
        match &run.run {
            Some(run) => Ok(Target { run: run.clone(), ..Target::default() }),
            None => {
                Ok(Target { run: "@repo".into(), ..Target::default() }
                    .with("repo", repo::absolute(run.repo.as_deref())?))
            }
        }
    }
}

fn misplaced(error: &PlaceError) -> Problem {
    Problem::new("USAGE", error.to_string()).why(error.why()).next(error.next())
}

/// A folder in `/tmp` that is not ours could hold somebody else's socket.
fn trusted(socket: &SocketPlace) -> Result<(), Problem> {
    let Some(folder) = socket.path.parent().filter(|_| socket.origin == SocketOrigin::Temporary) else {
        return Ok(());
    };
    let Ok(found) = folder.symlink_metadata() else {
        return Ok(());
    };
    if found.is_dir() && found.uid() == nix::unistd::geteuid().as_raw() && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(Problem::new("SOCKET_UNSAFE", format!("{} is not a private folder of this user", folder.display()))
        .why("somebody else could answer there in the daemon's place")
        .next("export XDG_RUNTIME_DIR=/run/user/$(id -u), or set HARNESS_SOCKET"))
}
