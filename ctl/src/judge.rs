//! Whether a condition of `wait` holds: a pure function of a run's view (ux.md section 3).

use clap::ValueEnum;
use harness_proto::api::view::RunView;
use harness_proto::exit::Exit;

/// What to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Condition {
    /// The run has ended
    Done,
    /// A task more than at the beginning is accepted
    Accepted,
    /// Accepted commits are on the target branch
    Landed,
    /// Somebody has to act
    NeedsHuman,
    /// Nothing moves: ended, stopped, paused or held
    Idle,
    /// Something happened since the beginning
    Progress,
}

/// The exit code that a run at rest stands for; none while it moves or will move by itself.
pub(crate) fn rest(run: &RunView) -> Option<Exit> {
    match run.state.as_str() {
        "done" => Some(Exit::Success),
        "done-with-refusals" | "failed" | "cancelled" | "stopped" => Some(Exit::NotAllAccepted),
        "needs-human" => Some(Exit::NeedsHuman),
        _ => None,
    }
}

/// The exit code of `status --exit-code`.
pub(crate) fn standing(run: &RunView) -> Exit {
    rest(run).unwrap_or(Exit::Pending)
}

/// Judges; none means: wait on.
pub(crate) fn judge(condition: Condition, begin: &RunView, now: &RunView) -> Option<Exit> {
    let accepts = |run: &RunView| run.counts.get("accepts").copied().unwrap_or_default();
    let held = |word: &str| now.state == word;
    let met = match condition {
        Condition::Done => false,
        Condition::Accepted => accepts(now) > accepts(begin),
        Condition::Landed => now.landing.status == "landed",
        Condition::NeedsHuman => held("needs-human"),
        Condition::Idle => rest(now).is_some() || held("paused") || held("registered"),
        Condition::Progress if held("parked") => return Some(Exit::Parked),
        Condition::Progress => now.seq > begin.seq,
    };
    // A run that is done may still land: what is in the way goes, or the user lands by hand.
    let may_land = matches!(condition, Condition::Landed) && now.state == "done" && now.landing.status == "pending";
    match met {
        true => Some(Exit::Success),
        false if may_land => None,
        false => rest(now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(state: &str, accepts: i64, seq: i64) -> RunView {
        RunView { state: state.into(), counts: [("accepts".to_owned(), accepts)].into(), seq, ..RunView::default() }
    }

    #[test]
    fn conditions_follow_the_table() {
        use Condition::{Accepted, Done, Idle, NeedsHuman, Progress};
        let begin = view("running", 1, 5);
        let case = |condition, state, accepts, seq| judge(condition, &begin, &view(state, accepts, seq));
        assert_eq!(case(Done, "running", 1, 5), None);
        assert_eq!(case(Done, "parked", 1, 5), None, "a park ends by itself");
        assert_eq!(case(Done, "done", 1, 5), Some(Exit::Success));
        assert_eq!(case(Done, "done-with-refusals", 1, 5), Some(Exit::NotAllAccepted));
        assert_eq!(case(Done, "needs-human", 1, 5), Some(Exit::NeedsHuman));
        assert_eq!(case(NeedsHuman, "needs-human", 1, 5), Some(Exit::Success));
        assert_eq!(case(Accepted, "running", 2, 9), Some(Exit::Success));
        assert_eq!(case(Accepted, "failed", 1, 9), Some(Exit::NotAllAccepted));
        assert_eq!(case(Idle, "paused", 1, 5), Some(Exit::Success));
        assert_eq!(case(Progress, "parked", 1, 5), Some(Exit::Parked));
        assert_eq!(case(Progress, "running", 1, 6), Some(Exit::Success));
        let mut pending = view("done", 1, 5);
        pending.landing.status = "pending".into();
        assert_eq!(judge(Condition::Landed, &begin, &pending), None);
        assert_eq!(judge(Done, &begin, &pending), Some(Exit::Success));
    }
}
