//! The one table of exit codes of both binaries (ux.md section 3, corrections 17).

/// An exit code. A code that is not in this table must be read as failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Success; for `wait`: the condition came true with a good result.
    Success = 0,
    /// Unexpected error.
    Unexpected = 1,
    /// Usage or precondition.
    Usage = 2,
    /// The daemon does not run or cannot be reached.
    Unreachable = 3,
    /// Authentication needed, of an agent or because the daemon refused the peer.
    Auth = 4,
    /// The run ended, but not everything was accepted.
    NotAllAccepted = 5,
    /// The run, commit or branch is not the one asked for.
    Mismatch = 6,
    /// Needs a person now.
    NeedsHuman = 7,
    /// Still pending, asked without waiting.
    Pending = 8,
    /// An evidence check failed.
    Evidence = 9,
    /// State directory locked, other daemon, other version.
    Conflict = 10,
    /// Parked by a limit or budget.
    Parked = 11,
    /// Temporary trouble, try again.
    Temporary = 75,
    /// Configuration error: do not restart.
    Config = 78,
    /// `wait` ran out of time.
    Timeout = 124,
    /// Interrupted.
    Interrupted = 130,
    /// Terminated.
    Terminated = 143,
}

/// Every code with its meaning, for the manual.
pub const TABLE: &[(Exit, &str)] = &[
    (Exit::Success, "success; for `wait`: the condition came true with a good result"),
    (Exit::Unexpected, "unexpected error"),
    (Exit::Usage, "usage or precondition"),
    (Exit::Unreachable, "the daemon does not run or cannot be reached"),
    (Exit::Auth, "authentication needed, or the daemon refused the peer"),
    (Exit::NotAllAccepted, "the run ended, but not everything was accepted"),
    (Exit::Mismatch, "the run, commit or branch is not the one asked for"),
    (Exit::NeedsHuman, "needs a person now"),
    (Exit::Pending, "still pending, asked without waiting"),
    (Exit::Evidence, "an evidence check failed"),
    (Exit::Conflict, "state directory locked, other daemon, other version"),
    (Exit::Parked, "parked by a limit or budget"),
    (Exit::Temporary, "temporary trouble, try again"),
    (Exit::Config, "configuration error: do not restart"),
    (Exit::Timeout, "`wait` ran out of time"),
    (Exit::Interrupted, "interrupted"),
    (Exit::Terminated, "terminated"),
];

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The code of that number.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        TABLE.iter().map(|(exit, _)| *exit).find(|exit| exit.code() == code)
    }

    /// The code to end with when several apply: 3, then 10, 7, 5, 8, then the smallest failure (corrections 17).
    #[must_use]
    pub fn strongest(of: impl IntoIterator<Item = Self>) -> Self {
        const FIRST: [Exit; 5] =
            [Exit::Unreachable, Exit::Conflict, Exit::NeedsHuman, Exit::NotAllAccepted, Exit::Pending];
        let rank = |exit: &Exit| match FIRST.iter().position(|first| first == exit) {
            Some(place) => place,
            None if *exit == Exit::Success => usize::MAX,
            None => FIRST.len() + usize::from(exit.code()),
        };
        of.into_iter().min_by_key(rank).unwrap_or(Self::Success)
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_code_wins() {
        use Exit::{Conflict, NeedsHuman, NotAllAccepted, Parked, Pending, Success, Unreachable};
        assert_eq!(Exit::strongest([]), Success);
        assert_eq!(Exit::strongest([Success, Parked]), Parked);
        assert_eq!(Exit::strongest([Parked, Pending]), Pending);
        assert_eq!(Exit::strongest([Pending, NotAllAccepted, NeedsHuman]), NeedsHuman);
        assert_eq!(Exit::strongest([NeedsHuman, Conflict]), Conflict);
        assert_eq!(Exit::strongest([Conflict, Unreachable, Success]), Unreachable);
    }

    #[test]
    fn numbers_read_back() {
        for (exit, meaning) in TABLE {
            assert_eq!(Exit::from_code(exit.code()), Some(*exit));
            assert!(!meaning.is_empty());
        }
        assert_eq!(Exit::from_code(42), None);
    }
}
