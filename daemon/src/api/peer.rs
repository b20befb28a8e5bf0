//! Who may talk: the daemon's own user, and no descendant of a launcher: agents must not approve themselves (DESIGN 11, corrections 34).

use std::sync::Arc;

use harness_proto::error::Problem;
use tokio::net::UnixStream;

/// Whether a process descends from one of our launchers; given by the process layer.
pub type Ancestry = Arc<dyn Fn(u32) -> bool + Send + Sync>;

/// Why a peer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PeerRefusal {
    /// The kernel does not tell who it is.
    #[error("the peer of the connection cannot be known")]
    Unknown,
    /// Another user.
    #[error("the peer runs as uid {peer}, the daemon as uid {own}")]
    OtherUser {
        /// Its uid.
        peer: u32,
        /// Ours.
        own: u32,
    },
    /// An agent, or something that one started.
    #[error("process {0} was started by an agent or a check of a run")]
    Agent(u32),
}

impl PeerRefusal {
    /// The refusal as the peer reads it.
    #[must_use]
    pub fn problem(&self) -> Problem {
        Problem::new("PEER_REFUSED", "the daemon does not answer this process")
            .why(self.to_string())
            .next("run harnessctl from a shell of the user who started harnessd, outside of any agent turn")
    }
}

/// Looks at the credentials that the kernel kept when the peer connected.
///
/// # Errors
/// [`PeerRefusal`] for another uid, a descendant of a launcher, or a peer that cannot be known.
pub(super) fn check(stream: &UnixStream, ancestry: &Ancestry) -> Result<(), PeerRefusal> {
    let peer = stream.peer_cred().map_err(|_| PeerRefusal::Unknown)?;
    let own = nix::unistd::geteuid().as_raw();
    judge(peer.uid(), peer.pid(), own, ancestry)
}

fn judge(uid: u32, pid: Option<i32>, own: u32, ancestry: &Ancestry) -> Result<(), PeerRefusal> {
    if uid != own {
        return Err(PeerRefusal::OtherUser { peer: uid, own });
    }
    // A pid of 0 belongs to another pid namespace: its ancestors cannot be looked at, so it is refused.
    let pid = pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid != 0).ok_or(PeerRefusal::Unknown)?;
    if ancestry(pid) { Err(PeerRefusal::Agent(pid)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_an_agent_and_a_stranger_are_refused() {
        let ancestry: Ancestry = Arc::new(|pid| pid == 66);
        assert_eq!(judge(5, Some(9), 5, &ancestry), Ok(()));
        assert_eq!(judge(6, Some(9), 5, &ancestry), Err(PeerRefusal::OtherUser { peer: 6, own: 5 }));
        assert_eq!(judge(0, Some(9), 5, &ancestry), Err(PeerRefusal::OtherUser { peer: 0, own: 5 }));
        assert_eq!(judge(5, Some(66), 5, &ancestry), Err(PeerRefusal::Agent(66)));
        assert_eq!(judge(5, None, 5, &ancestry), Err(PeerRefusal::Unknown));
        assert_eq!(judge(5, Some(0), 5, &ancestry), Err(PeerRefusal::Unknown));
    }
}
