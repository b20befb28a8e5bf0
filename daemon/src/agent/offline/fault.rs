//! Mistakes made on purpose: `offline:faults=RULES`, so that the runtime's answers can be tried on a real process.
//!
//! `RULES` is `fault[@role][:task][:aN][:xK]`, separated by `;`; the first rule that fits a turn applies.
//! `aN`: only in attempt N. `xK`: at most K times, counted in the folder HARNESS_OFFLINE_STATE; without that folder
//! nothing is remembered between turns and `xK` means "in attempts up to K". A task id of the form `a1` or `x1` cannot
//! be named. Faults of one role (`syntax_error` `failing_test` `no_change` `touch_plan`: implementer; `revert`
//! `false_accept`: verifier; `bad_plan=cycle|dangling|duplicate`: planner) need no `@role`; `bad_report` `garbage`
//! `empty` `exit=N` `hang` `crash` `big_report=BYTES` `outside` `refuse` fit every role that is not narrowed.
//! The faulty turn claims to be fine: that is what must not help it.

use std::ffi::OsStr;
use std::io::Write;
use std::path::Path;

use super::turn::{Role, TurnSpec};

/// The most that `big_report` may ask for, in bytes.
const BIG_REPORT_MAX: usize = 256 * 1024 * 1024;

/// How a plan is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanFlaw {
    /// The first task depends on the last.
    Cycle,
    /// A task depends on one that does not exist.
    Dangling,
    /// Two tasks have one id.
    Duplicate,
}

/// What a rule makes a turn do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// The code has a syntax error.
    SyntaxError,
    /// One test fails.
    FailingTest,
    /// Nothing is written, the report says it was.
    NoChange,
    /// The verifier reverts good work.
    Revert,
    /// The verifier accepts without looking.
    FalseAccept,
    /// The report lacks a member.
    BadReport,
    /// The answer is not JSON.
    Garbage,
    /// There is no answer.
    Empty,
    /// The process ends with this code and no answer.
    Exit(u8),
    /// The work is done and the process never ends.
    Hang,
    /// The work is done and the process dies of a signal.
    Crash,
    /// The implementer writes a plan of its own into its tree.
    TouchPlan,
    /// The planner's plan is invalid.
    BadPlan(PlanFlaw),
    /// The report has at least this many bytes.
    BigReport(usize),
    /// A file is written next to the tree.
    Outside,
    /// The turn is refused.
    Refuse,
}

/// Why fault rules are not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// The fault's name or its value is unknown.
    #[error("unknown fault `{0}` (see the module documentation of the offline agent for the list)")]
    Unknown(String),
    /// The role after `@` is unknown.
    #[error("unknown role in fault rule `{0}` (planner, implementer, verifier)")]
    Role(String),
    /// The fault can only happen in another role.
    #[error("fault rule `{0}` names a role in which the fault cannot happen")]
    WrongRole(String),
    /// A part after `:` is given twice or is empty.
    #[error("fault rule `{0}` has a part that is empty or given twice")]
    Part(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    effect: Effect,
    role: Option<Role>,
    task: Option<String>,
    attempt: Option<u64>,
    times: Option<u64>,
}

/// The rules of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults(Vec<Rule>);

impl Faults {
    /// Reads rules; an empty text has none.
    ///
    /// # Errors
    /// A [`FaultError`] that quotes the rule.
    pub fn parse(text: &str) -> Result<Self, FaultError> {
        let rules = text.split(';').map(str::trim).filter(|rule| !rule.is_empty());
        rules.map(Rule::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Returns the effect on this turn and counts it.
    pub(super) fn take(&self, spec: &TurnSpec, state: Option<&OsStr>) -> Result<Option<Effect>, String> {
        for (index, rule) in self.0.iter().enumerate() {
            if rule.fits(spec) && rule.has_times_left(index, spec, state)? {
                return Ok(Some(rule.effect.clone()));
            }
        }
        Ok(None)
    }
}

impl Rule {
    fn parse(text: &str) -> Result<Self, FaultError> {
        let mut parts = text.split(':');
        let head = parts.next().unwrap_or_default();
        let (fault, role) = match head.split_once('@') {
            Some((fault, word)) => (fault, Some(Role::parse(word).ok_or_else(|| FaultError::Role(text.to_owned()))?)),
            None => (head, None),
        };
        let effect = Effect::parse(fault).ok_or_else(|| FaultError::Unknown(fault.to_owned()))?;
        let only = effect.only_role();
        if only.is_some() && role.is_some() && only != role {
            return Err(FaultError::WrongRole(text.to_owned()));
        }
        let mut rule = Self { effect, role: role.or(only), task: None, attempt: None, times: None };
        for part in parts {
            let number = |letter| part.strip_prefix(letter).and_then(|digits: &str| digits.parse::<u64>().ok());
            let doubled = if let Some(attempt) = number('a') {
                rule.attempt.replace(attempt).is_some()
            } else if let Some(times) = number('x') {
                rule.times.replace(times).is_some()
            } else {
                rule.task.replace(part.to_owned()).is_some()
            };
            if doubled || part.is_empty() {
                return Err(FaultError::Part(text.to_owned()));
            }
        }
        Ok(rule)
    }

    fn fits(&self, spec: &TurnSpec) -> bool {
        self.role.is_none_or(|role| role == spec.role)
            && self.task.as_ref().is_none_or(|task| *task == spec.task_id)
            && self.attempt.is_none_or(|attempt| attempt == spec.attempt)
    }

    /// One byte is appended for each time, so that a count needs no parsing and a crash cannot tear it.
    fn has_times_left(&self, index: usize, spec: &TurnSpec, state: Option<&OsStr>) -> Result<bool, String> {
        let Some(times) = self.times else {
            return Ok(true);
        };
        let Some(folder) = state.filter(|folder| !folder.is_empty()) else {
            return Ok(spec.attempt <= times);
        };
        let path = Path::new(folder).join(format!("fault-{index}"));
        let count = || -> std::io::Result<bool> {
            std::fs::create_dir_all(folder)?;
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(&path)?;
            if file.metadata()?.len() >= times {
                return Ok(false);
            }
            file.write_all(b"x").map(|()| true)
        };
        count().map_err(|error| format!("cannot count a fault in `{}`: {error}", path.display()))
    }
}

impl Effect {
    fn parse(text: &str) -> Option<Self> {
        if let Some((name, value)) = text.split_once('=') {
            return match name {
                "exit" => value.parse().ok().map(Self::Exit),
                "big_report" => value.parse().ok().filter(|bytes| *bytes <= BIG_REPORT_MAX).map(Self::BigReport),
                "bad_plan" => match value {
                    "cycle" => Some(Self::BadPlan(PlanFlaw::Cycle)),
                    "dangling" => Some(Self::BadPlan(PlanFlaw::Dangling)),
                    "duplicate" => Some(Self::BadPlan(PlanFlaw::Duplicate)),
                    _ => None,
                },
                _ => None,
            };
        }
        Some(match text {
            "syntax_error" => Self::SyntaxError,
            "failing_test" => Self::FailingTest,
            "no_change" => Self::NoChange,
            "revert" => Self::Revert,
            "false_accept" => Self::FalseAccept,
            "bad_report" => Self::BadReport,
            "garbage" => Self::Garbage,
            "empty" => Self::Empty,
            "hang" => Self::Hang,
            "crash" => Self::Crash,
            "touch_plan" => Self::TouchPlan,
            "outside" => Self::Outside,
            "refuse" => Self::Refuse,
            _ => return None,
        })
    }

    fn only_role(&self) -> Option<Role> {
        match self {
            Self::SyntaxError | Self::FailingTest | Self::NoChange | Self::TouchPlan => Some(Role::Implementer),
            Self::Revert | Self::FalseAccept => Some(Role::Verifier),
            Self::BadPlan(_) => Some(Role::Planner),
            Self::BadReport
            | Self::Garbage
            | Self::Empty
            | Self::Exit(_)
            | Self::Hang
            | Self::Crash
            | Self::BigReport(_)
            | Self::Outside
            | Self::Refuse => None,
        }
    }

    /// Says whether the turn ends before any work.
    pub(super) fn replaces_the_work(&self) -> bool {
        matches!(self, Self::Refuse)
    }
}

/// For the fault `outside`: tries to write next to the tree and returns what came of it, for the summary.
pub(super) fn write_outside(tree: &Path) -> String {
    let path = tree.join("../harness-offline-outside.txt");
    match std::fs::write(&path, "written by the fault `outside`\n") {
        Ok(()) => " A file was written outside the tree.".to_owned(),
        Err(error) => format!(" Writing outside the tree failed: {error}."),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn spec(role: &str, task: &str, attempt: u64) -> TurnSpec {
        let value = serde_json::json!({"role": role, "task_id": task, "attempt": attempt});
        serde_json::from_value(value).unwrap()
    }

    fn effect(rules: &str, role: &str, task: &str, attempt: u64) -> Option<Effect> {
        Faults::parse(rules).unwrap().take(&spec(role, task, attempt), None).unwrap()
    }

    #[test]
    fn a_rule_applies_only_to_its_turn() {
        let rules = "syntax_error:T-001:a1; exit=9@verifier:T-002; big_report=10@planner; hang:a7";
        assert_eq!(effect(rules, "implementer", "T-001", 1), Some(Effect::SyntaxError));
        assert_eq!(effect(rules, "implementer", "T-001", 2), None);
        assert_eq!(effect(rules, "verifier", "T-001", 1), None);
        assert_eq!(effect(rules, "verifier", "T-002", 5), Some(Effect::Exit(9)));
        assert_eq!(effect(rules, "planner", "", 1), Some(Effect::BigReport(10)));
        assert_eq!(effect(rules, "implementer", "T-001", 7), Some(Effect::Hang));
        assert_eq!(effect("", "planner", "", 1), None);
    }

    #[test]
    fn the_first_rule_that_fits_wins() {
        assert_eq!(effect("garbage:a2;empty", "planner", "", 1), Some(Effect::Empty));
        assert_eq!(effect("garbage:a2;empty", "planner", "", 2), Some(Effect::Garbage));
    }

    #[test]
    fn without_a_state_folder_a_count_is_of_attempts() {
        assert_eq!(effect("empty:x2", "planner", "", 2), Some(Effect::Empty));
        assert_eq!(effect("empty:x2", "planner", "", 3), None);
    }

    #[test]
    fn wrong_rules_are_refused_and_quoted() {
        let check = |rules: &str, error: FaultError| assert_eq!(Faults::parse(rules), Err(error));
        check("nonsense", FaultError::Unknown("nonsense".into()));
        check("exit=300", FaultError::Unknown("exit=300".into()));
        check("exit", FaultError::Unknown("exit".into()));
        check("bad_plan=odd", FaultError::Unknown("bad_plan=odd".into()));
        check("big_report=99999999999", FaultError::Unknown("big_report=99999999999".into()));
        check("hang@cook", FaultError::Role("hang@cook".into()));
        check("revert@planner", FaultError::WrongRole("revert@planner".into()));
        check("hang:a1:a2", FaultError::Part("hang:a1:a2".into()));
        check("hang:T-1:T-2", FaultError::Part("hang:T-1:T-2".into()));
        check("hang:", FaultError::Part("hang:".into()));
    }
}
