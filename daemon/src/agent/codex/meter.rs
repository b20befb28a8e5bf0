//! What a turn uses and which limits the account has.

use harness_core::input::TurnUsage;
use harness_proto::ids::Millis;
use serde_json::Value;

/// Token totals of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    input: i64,
    output: i64,
    all: i64,
}

impl Totals {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            input: value["inputTokens"].as_i64()?,
            output: value["outputTokens"].as_i64()?,
            all: value["totalTokens"].as_i64()?,
        })
    }

    fn less(self, other: Self) -> Self {
        Self {
            input: (self.input - other.input).max(0),
            output: (self.output - other.output).max(0),
            all: (self.all - other.all).max(0),
        }
    }
}

/// Follows `thread/tokenUsage/updated` and `account/rateLimits/updated`.
///
/// Updates come twice with the same numbers and are replayed after a resume: a turn's use is the difference of totals, never
/// a sum.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// The total before this turn; unknown for a resumed thread until the first update.
    before: Option<Totals>,
    now: Option<Totals>,
    windows: Vec<(f64, i64)>,
}

impl Meter {
    /// Begins a turn on a thread whose total so far is `before`, if that is known.
    pub(super) fn new(before: Option<Totals>) -> Self {
        Self { before, ..Self::default() }
    }

    /// A usage update; `ours` when it is of this turn.
    pub(super) fn usage(&mut self, usage: &Value, ours: bool) {
        let Some(total) = Totals::read(&usage["total"]) else {
            return;
        };
        if !ours {
            // The replay after a resume carries the old turn's id.
            if self.now.is_none() {
                self.before = Some(total);
            }
            return;
        }
        if self.before.is_none() {
            let last = Totals::read(&usage["last"]).unwrap_or_default();
            self.before = Some(total.less(last));
        }
        self.now = Some(total);
    }

    /// A rate limit update; one without windows forgets nothing, because it comes after every call.
    pub(super) fn limits(&mut self, limits: &Value) {
        let window = |name: &str| {
            let window = &limits[name];
            Some((window["usedPercent"].as_f64()?, window["resetsAt"].as_i64()?))
        };
        let windows: Vec<_> = ["primary", "secondary"].into_iter().filter_map(window).collect();
        if !windows.is_empty() {
            self.windows = windows;
        }
    }

    /// When the account's used-up window ends: the latest of those that are full, else of the fullest.
    pub(super) fn reset(&self) -> Option<Millis> {
        let full = self.windows.iter().filter(|(used, _)| *used >= 100.0);
        let latest = full.map(|(_, at)| *at).max();
        let fullest = || {
            let fullest = self.windows.iter().max_by(|a, b| a.0.total_cmp(&b.0));
            fullest.map(|(_, at)| *at)
        };
        latest.or_else(fullest).map(|seconds| Millis(seconds.saturating_mul(1_000)))
    }

    /// Tokens of this turn so far.
    pub(super) fn used(&self) -> i64 {
        self.difference().all
    }

    /// The thread's total, for the next turn.
    pub(super) fn total(&self) -> Option<Totals> {
        self.now.or(self.before)
    }

    /// The turn's use.
    pub(super) fn turn_usage(&self, duration_ms: i64) -> TurnUsage {
        let used = self.difference();
        TurnUsage { input_tokens: used.input, output_tokens: used.output, total_tokens: used.all, duration_ms }
    }

    fn difference(&self) -> Totals {
        self.now.map_or(Totals::default(), |now| now.less(self.before.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn usage(total: i64, last: i64) -> Value {
        let of = |n: i64| json!({"inputTokens": n - 1, "outputTokens": 1, "totalTokens": n});
        json!({"total": of(total), "last": of(last)})
    }

    fn check(before: Option<Totals>, updates: &[(i64, i64, bool)], used: i64) {
        let mut meter = Meter::new(before);
        for (total, last, ours) in updates {
            meter.usage(&usage(*total, *last), *ours);
        }
        assert_eq!(meter.used(), used);
    }

    #[test]
    fn use_is_the_difference_of_totals() {
        let fresh = Some(Totals::default());
        check(fresh, &[], 0);
        check(fresh, &[(100, 100, true), (100, 100, true), (250, 150, true)], 250);
        // Resumed: with the replay, and without it.
        check(None, &[(900, 40, false), (1_000, 100, true)], 100);
        check(None, &[(1_000, 100, true), (1_050, 50, true)], 150);
    }

    #[test]
    fn a_reset_is_the_one_of_the_full_window() {
        let mut meter = Meter::default();
        assert_eq!(meter.reset(), None);
        meter.limits(&json!({"primary": {"usedPercent": 100, "resetsAt": 50}, "secondary": {"usedPercent": 30, "resetsAt": 900}}));
        meter.limits(&json!({"primary": null, "secondary": null}));
        assert_eq!(meter.reset(), Some(Millis(50_000)));
        meter.limits(&json!({"primary": {"usedPercent": 92, "resetsAt": 70}}));
        assert_eq!(meter.reset(), Some(Millis(70_000)));
    }
}
