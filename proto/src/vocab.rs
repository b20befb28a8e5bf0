//! The closed vocabularies of harness, each value with one text form (DESIGN 2).

use std::fmt;

use serde::{Deserialize, Serialize};

/// A text that is no value of a vocabulary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}: known are {known}")]
pub struct UnknownWord {
    /// The vocabulary.
    pub what: &'static str,
    /// The refused text.
    pub text: String,
    /// Every known text, comma separated.
    pub known: String,
}

macro_rules! vocabulary {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $text)] $variant),* }
        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// The one text form.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text),* } }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.as_str()) }
        }
        impl std::str::FromStr for $name {
            type Err = UnknownWord;
            fn from_str(text: &str) -> Result<Self, UnknownWord> {
                Self::ALL.iter().copied().find(|v| v.as_str() == text).ok_or_else(|| UnknownWord {
                    what: stringify!($name),
                    text: text.chars().take(80).collect(),
                    known: Self::ALL.iter().map(|v| v.as_str()).collect::<Vec<_>>().join(", "),
                })
            }
        }
    )*};
}

vocabulary! {
    /// One of the three kinds of agent work; the runtime is none of them.
    Role {
        /// Owns plan and topology, never product code (S4-016).
        Planner = "planner",
        /// Writes product code for one task in its tree (S4-017).
        Implementer = "implementer",
        /// Judges one exact commit (S4-018).
        Verifier = "verifier",
    }
    /// What a turn is for (DESIGN 2).
    Kind {
        /// The first plan of a run.
        Plan = "plan",
        /// A change of the plan in a running run.
        Replan = "replan",
        /// Product code for one task.
        Implement = "implement",
        /// Judging a trial commit.
        Verify = "verify",
    }
    /// Where a run is in its life; with [`Phase`] and [`HoldKind`] the whole run state (DESIGN 4).
    Lifecycle {
        /// Created by `create-launch`, never started.
        Registered = "registered",
        /// Waiting for a driver.
        Queued = "queued",
        /// Driven.
        Running = "running",
        /// Stopped by the user; `start` continues it.
        Stopped = "stopped",
        /// Every task done; final.
        Completed = "completed",
        /// Ended without completing; `start` tries again.
        Failed = "failed",
        /// Given up by the user; final.
        Cancelled = "cancelled",
    }
    /// What a running run is doing.
    Phase {
        /// The request becomes a spec.
        Specifying = "specifying",
        /// The plan is being made.
        Planning = "planning",
        /// Tasks are being worked on.
        Executing = "executing",
        /// The whole is being reviewed.
        Reviewing = "reviewing",
        /// A release is being made.
        Releasing = "releasing",
    }
    /// Why a run does not move now.
    HoldKind {
        /// By the user's `pause`.
        Paused = "paused",
        /// Until an instant or a condition; goes on by itself.
        Parked = "parked",
        /// Until a person acts.
        NeedsHuman = "needs_human",
        /// A fault that the runtime could not bound otherwise.
        Recovery = "recovery",
    }
    /// Who has to act on a hold or an incident.
    Owner {
        /// The planner, in the running run.
        Planner = "planner",
        /// The runtime.
        Runtime = "runtime",
        /// The user.
        User = "user",
    }
    /// Where a task is (profiles 1.1).
    TaskStatus {
        /// Some dependency is not done.
        Pending = "pending",
        /// Every dependency is done.
        Ready = "ready",
        /// An attempt is being made.
        InProgress = "in_progress",
        /// The attempt is being verified.
        InReview = "in_review",
        /// Accepted and integrated; final.
        Done = "done",
        /// Cannot go on until the planner or the user acts.
        Blocked = "blocked",
        /// Its attempts are used up.
        Failed = "failed",
        /// Its last attempt ran out of time.
        TimedOut = "timed_out",
        /// Left out by the user or the planner.
        Skipped = "skipped",
        /// Replaced by other tasks.
        Superseded = "superseded",
        /// Given up by the user.
        Cancelled = "cancelled",
    }
    /// What a verifier says about a trial commit (S4-024).
    Verdict {
        /// Take it.
        Accept = "accept",
        /// Do not.
        Revert = "revert",
    }
    /// Why a verifier cannot judge (S4-047).
    RecoverySignal {
        /// It can judge.
        None = "none",
        /// The environment prevents checks.
        EnvironmentBlocked = "environment_blocked",
        /// The criteria cannot be decided.
        AmbiguousAcceptanceCriteria = "ambiguous_acceptance_criteria",
    }
    /// How grave a finding is.
    Severity {
        /// Must not ship.
        Critical = "critical",
        /// Grave.
        High = "high",
        /// To be fixed.
        Medium = "medium",
        /// Small.
        Low = "low",
        /// A remark.
        Info = "info",
    }
    /// A verifier's result for one criterion.
    CriterionOutcome {
        /// It holds.
        Pass = "pass",
        /// It does not.
        Fail = "fail",
        /// It was not looked at.
        Skip = "skip",
    }
    /// How a turn ended without a usable report (DESIGN 7).
    FailureKind {
        /// The turn's limit passed.
        Timeout = "timeout",
        /// Silence longer than the limit.
        Stalled = "stalled",
        /// Asked to slow down.
        RateLimited = "rate_limited",
        /// A usage window is used up.
        UsageLimited = "usage_limited",
        /// Login needed.
        Auth = "auth",
        /// The process ended.
        Crashed = "crashed",
        /// The peer broke the protocol.
        Protocol = "protocol",
        /// A report that breaks its schema.
        InvalidReport = "invalid_report",
        /// No report at all.
        NoReport = "no_report",
        /// Interrupted on request.
        Interrupted = "interrupted",
        /// The agent says that it cannot do the work.
        Refused = "refused",
        /// A token, turn or cost ceiling.
        Budget = "budget",
    }
    /// The result of one command of evidence.
    EvidenceResult {
        /// Exit 0 and, where expected, tests that ran.
        Pass = "PASS",
        /// Anything else; fail closed.
        Fail = "FAIL",
        /// Its time limit passed.
        TimedOut = "TIMED_OUT",
    }
    /// What kind of failure a command shows (catalogue S0, ordered rules).
    FailureType {
        /// The code does not run.
        CodeError = "CODE_ERROR",
        /// A test says no.
        TestFailure = "TEST_FAILURE",
        /// A type checker says no.
        TypeError = "TYPE_ERROR",
        /// A dependency is missing.
        DependencyError = "DEPENDENCY_ERROR",
        /// The command or its configuration is wrong.
        ConfigError = "CONFIG_ERROR",
        /// The machine, not the code.
        EnvironmentError = "ENVIRONMENT_ERROR",
        /// Too slow.
        Timeout = "TIMEOUT",
        /// None of these.
        Unknown = "UNKNOWN",
    }
    /// Which programs are walled (DESIGN 13).
    ExecutionPolicy {
        /// Agents and evidence may write their tree only.
        WorkspaceWrite = "workspace_write",
        /// No wall; shown in status.
        DangerFullAccess = "danger_full_access",
    }
    /// Whether a policy switch is on, in the predecessor's words.
    Switch {
        /// On.
        Enabled = "enabled",
        /// Off.
        Disabled = "disabled",
    }
    /// When accepted commits are brought to the target branch (DESIGN 6).
    LandMode {
        /// After each accepted task.
        Each = "each",
        /// Once, when the run ends.
        End = "end",
        /// Only on request.
        Manual = "manual",
    }
}

impl TaskStatus {
    /// Whether a dependant may start: the task is done, or somebody decided that nothing is to be done for it.
    #[must_use]
    pub const fn satisfies_dependants(self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::Superseded)
    }

    /// Whether the task asks for no more work (readings 004-5).
    #[must_use]
    pub const fn is_closed(self) -> bool {
        matches!(self, Self::Done | Self::Skipped | Self::Superseded | Self::Cancelled)
    }
}
