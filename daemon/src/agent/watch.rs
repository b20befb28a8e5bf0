//! The deadlines of a turn and the wish that it ends.

use std::time::Duration;

use harness_core::effect::TurnLimits;
use harness_core::input::TurnFailure;
use harness_proto::vocab::FailureKind;
use tokio::time::Instant;

use super::turn::{StopSignal, failure};

/// Why a turn has to end before its agent says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wake {
    /// Not taken up within `start_s`.
    NotStarted,
    /// Silent for `silence_s`.
    Silent,
    /// Longer than `max_s`.
    TooLong,
    /// More tokens than allowed.
    TooManyTokens,
    /// Asked to end.
    Stop,
    /// Asked to end at once.
    StopNow,
}

/// One turn's clock: told of every sign of life, it says when the turn has to end.
#[derive(Debug)]
pub(super) struct Watch {
    begun: Instant,
    limits: TurnLimits,
    stop: StopSignal,
    last_sign: Instant,
    taken_up: bool,
    /// Whether silence counts; a program that speaks only at its end is silent all along.
    silence_counts: bool,
}

impl Watch {
    /// Starts the clock.
    pub(super) fn new(limits: TurnLimits, stop: StopSignal, silence_counts: bool) -> Self {
        let now = Instant::now();
        Self { begun: now, limits, stop, last_sign: now, taken_up: false, silence_counts }
    }

    /// The agent said something.
    pub(super) fn sign_of_life(&mut self) {
        self.last_sign = Instant::now();
    }

    /// The agent has the turn; from now on silence counts.
    pub(super) fn taken_up(&mut self) {
        self.taken_up = true;
        self.sign_of_life();
    }

    /// Time since the turn began.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Milliseconds since the turn began.
    pub(super) fn elapsed_ms(&self) -> i64 {
        i64::try_from(self.elapsed().as_millis()).unwrap_or(i64::MAX)
    }

    /// The token ceiling, if there is one.
    pub(super) fn token_ceiling(&self) -> Option<i64> {
        (self.limits.tokens > 0).then_some(self.limits.tokens)
    }

    /// Resolves when the turn has to end. Cancel safe.
    pub(super) async fn wake(&self) -> Wake {
        let after = |from: Instant, seconds: u32| from + Duration::from_secs(u64::from(seconds));
        let mut deadline = (after(self.begun, self.limits.max_s), Wake::TooLong);
        if !self.taken_up {
            deadline = earlier(deadline, (after(self.begun, self.limits.start_s), Wake::NotStarted));
        } else if self.silence_counts {
            deadline = earlier(deadline, (after(self.last_sign, self.limits.silence_s), Wake::Silent));
        }
        tokio::select! {
            biased;
            () = self.stop.now.cancelled() => Wake::StopNow,
            () = self.stop.graceful.cancelled() => Wake::Stop,
            () = tokio::time::sleep_until(deadline.0) => deadline.1,
        }
    }

    /// Resolves when the turn has to end at once. Cancel safe.
    pub(super) async fn stop_now(&self) {
        self.stop.now.cancelled().await;
    }

    /// The failure that a wake makes of a turn.
    pub(super) fn failure(&self, wake: Wake) -> TurnFailure {
        let limits = &self.limits;
        match wake {
            Wake::NotStarted => {
                failure(FailureKind::Stalled, format!("the agent did not take up the turn within {} s", limits.start_s))
            }
            Wake::Silent => failure(FailureKind::Stalled, format!("the agent was silent for {} s", limits.silence_s)),
            Wake::TooLong => failure(FailureKind::Timeout, format!("the turn took longer than {} s", limits.max_s)),
            Wake::TooManyTokens => {
                failure(FailureKind::Budget, format!("the turn used more than {} tokens", limits.tokens))
            }
            Wake::Stop | Wake::StopNow => failure(FailureKind::Interrupted, "the turn was interrupted on request"),
        }
    }
}

fn earlier(a: (Instant, Wake), b: (Instant, Wake)) -> (Instant, Wake) {
    if b.0 < a.0 { b } else { a }
}
