//! The rules of the gate, each a few lines: facts in, blockers out.

use harness_proto::plan::{Check, PlannedTask};
use harness_proto::report::VerifierReport;
use harness_proto::vocab::{CriterionOutcome, RecoverySignal, Severity, Verdict};

use super::evidence::evidence_blockers;
use super::paths::path_blockers;
use crate::evidence::EvidenceRecord;
use crate::input::TreeFacts;
use crate::output::head;
use crate::policy::Policy;

/// Why the gate did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Stable symbolic code; one of [`CODES`].
    pub code: &'static str,
    /// What is wrong with which object.
    pub detail: String,
    /// What to do.
    pub next: String,
}

impl Blocker {
    pub(super) fn new(code: &'static str, detail: &str, next: &str) -> Self {
        Self { code, detail: detail.to_owned(), next: next.to_owned() }
    }

    /// One text for feedback: code, detail, next step.
    #[must_use]
    pub fn sentence(&self) -> String {
        format!("{}: {}\n-> {}", self.code, self.detail, self.next)
    }
}

/// Every code that the gate can give.
pub const CODES: [&str; 17] = [
    "CRITERION_FAILED",
    "CRITERION_MISSING",
    "CRITERION_SKIPPED",
    "EVIDENCE_FAILED",
    "EVIDENCE_MISSING",
    "EVIDENCE_STALE",
    "EVIDENCE_TIMED_OUT",
    "FINDING_CRITICAL",
    "HARNESS_FILE_CHANGED",
    "NOT_DESCENDED",
    "NO_CHANGE",
    "NO_VERIFICATION",
    "PROTECTED_PATH",
    "SIGNAL_RAISED",
    "TREE_PROBLEM",
    "VERDICT_REVERT",
    "ZERO_TESTS",
];

/// Everything that the gate looks at.
#[derive(Debug, Clone, Copy)]
pub struct GateInput<'a> {
    /// The run's policy.
    pub policy: &'a Policy,
    /// The task.
    pub task: &'a PlannedTask,
    /// Records of the attempt, oldest first.
    pub evidence: &'a [EvidenceRecord],
    /// Commands that must pass; see [`super::expected_checks`].
    pub expected: &'a [Check],
    /// Tree of the trial commit.
    pub tree: &'a str,
    /// The verifier's report.
    pub verdict: &'a VerifierReport,
    /// Net changed paths.
    pub changed: &'a [String],
}

/// The gate: no blockers means pass. Order: paths, evidence, criteria, verdict.
#[must_use]
pub fn gate(input: &GateInput<'_>) -> Vec<Blocker> {
    let mut blockers = change_blockers(input.policy, input.changed);
    blockers.extend(evidence_blockers(input.policy, input.expected, input.evidence, input.tree));
    blockers.extend(criteria(input.task, input.verdict));
    blockers.extend(verdict(input.verdict));
    blockers
}

/// What is wrong with an attempt's tree, before anything is run or anybody is asked (DESIGN 6).
#[must_use]
pub fn tree_blockers(policy: &Policy, facts: &TreeFacts) -> Vec<Blocker> {
    let mut blockers: Vec<Blocker> = facts.problems.iter().map(|problem| tree_problem(problem)).collect();
    // A tree that cannot be read has no change to speak of.
    if blockers.is_empty() || !facts.changed.is_empty() {
        let changed = if facts.trial.is_empty() { &[][..] } else { &facts.changed[..] };
        blockers.extend(change_blockers(policy, changed));
    }
    blockers
}

fn change_blockers(policy: &Policy, changed: &[String]) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    if changed.is_empty() {
        blockers.push(Blocker::new(
            "NO_CHANGE",
            "the attempt changes nothing against its base",
            "do the work and commit it; a task that needs no change is closed by the planner",
        ));
    }
    blockers.extend(path_blockers(changed, &policy.protected_paths));
    blockers
}

fn tree_problem(problem: &str) -> Blocker {
    let code = if problem.contains("descend") { "NOT_DESCENDED" } else { "TREE_PROBLEM" };
    Blocker::new(code, problem, "work in the given tree and commit on top of its base, without switching branches")
}

/// Place of the criterion that a report means, by id (`C2`, also `C2: …`) or by whitespace-folded text (corrections 45).
#[must_use]
pub fn criterion_place(criteria: &[String], given: &str) -> Option<usize> {
    let given = given.trim();
    let by_id = given.strip_prefix(['C', 'c']).and_then(|rest| {
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, tail) = rest.split_at(digits);
        let ends = tail.is_empty() || tail.starts_with([':', '.', ')', ' ']);
        let place = number.parse::<usize>().ok()?.checked_sub(1)?;
        (ends && place < criteria.len()).then_some(place)
    });
    by_id.or_else(|| {
        let text = folded(given);
        criteria.iter().position(|criterion| folded(criterion) == text)
    })
}

fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn criteria(task: &PlannedTask, report: &VerifierReport) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    for (place, text) in task.acceptance_criteria.iter().enumerate() {
        let results: Vec<_> = report
            .criteria_results
            .iter()
            .filter(|result| criterion_place(&task.acceptance_criteria, &result.criterion) == Some(place))
            .collect();
        let name = format!("C{}: {}", place + 1, head(text, 300));
        // Answered twice: the worse answer counts.
        let worst = results.iter().max_by_key(|result| match result.result {
            CriterionOutcome::Fail => 2,
            CriterionOutcome::Skip => 1,
            CriterionOutcome::Pass => 0,
        });
        let (code, what, next) = match worst {
            None => ("CRITERION_MISSING", String::new(), "the verifier must answer every criterion"),
            Some(result) => match result.result {
                CriterionOutcome::Pass => continue,
                CriterionOutcome::Fail => {
                    ("CRITERION_FAILED", head(&result.evidence, 1_000), "make the criterion hold and show it by a test")
                }
                CriterionOutcome::Skip => {
                    ("CRITERION_SKIPPED", head(&result.evidence, 1_000), "make the criterion checkable in the tree")
                }
            },
        };
        let detail = if what.is_empty() { name } else { format!("{name}: {what}") };
        blockers.push(Blocker::new(code, &detail, next));
    }
    blockers
}

fn verdict(report: &VerifierReport) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    match report.recovery_signal {
        RecoverySignal::None => {}
        signal @ (RecoverySignal::EnvironmentBlocked | RecoverySignal::AmbiguousAcceptanceCriteria) => {
            blockers.push(Blocker::new(
                "SIGNAL_RAISED",
                &format!("the verifier could not judge ({signal}): {}", head(&report.summary, 1_000)),
                "the planner or the user must clear this before the task goes on",
            ));
        }
    }
    match report.verdict {
        Verdict::Revert => blockers.push(Blocker::new(
            "VERDICT_REVERT",
            &format!("the verifier says revert: {}", head(&report.summary, 2_000)),
            "correct what the verifier found",
        )),
        Verdict::Accept => {
            for finding in report.findings.iter().filter(|f| matches!(f.severity, Severity::Critical | Severity::High))
            {
                blockers.push(Blocker::new(
                    "FINDING_CRITICAL",
                    &format!(
                        "the verifier accepts, but names a {} finding: {} ({})",
                        finding.severity,
                        head(&finding.description, 1_000),
                        if finding.file.is_empty() { "no file" } else { &finding.file }
                    ),
                    &head(&finding.recommendation, 1_000),
                ));
            }
        }
    }
    blockers
}
