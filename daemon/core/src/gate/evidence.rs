//! The evidence half of the gate: every expected command passed on the exact tree.

use std::collections::BTreeMap;

use harness_proto::plan::{Check, PlannedTask};
use harness_proto::vocab::EvidenceResult;

use super::rules::Blocker;
use crate::evidence::EvidenceRecord;
use crate::output::tail;
use crate::policy::Policy;

/// Characters of output in a blocker's text.
const OUTPUT_CHARS: usize = 1_200;

/// The commands that must pass for a task: its own, then the launch's; the same command twice is one.
#[must_use]
pub fn expected_checks(policy: &Policy, task: &PlannedTask) -> Vec<Check> {
    let mut out: Vec<Check> = Vec::new();
    for check in task.verification.iter().chain(&policy.verify) {
        if !out.contains(check) {
            out.push(check.clone());
        }
    }
    out
}

/// Whether a pass of this gate would rest on no evidence at all (`--no-verification`); shown in trailers and reports.
#[must_use]
pub fn unproven(policy: &Policy, expected: &[Check]) -> bool {
    policy.no_verification && expected.is_empty()
}

/// What is wrong with the evidence for `expected` on `tree`. Used for the trial, the candidate and rebuilt tips alike.
#[must_use]
pub fn evidence_blockers(policy: &Policy, expected: &[Check], evidence: &[EvidenceRecord], tree: &str) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    if expected.is_empty() {
        if !policy.no_verification {
            blockers.push(Blocker::new(
                "NO_VERIFICATION",
                "neither the task's `verification` nor the launch's `--verify` names a command",
                "add `verification` to the task in tasks.json, or register the run with `--verify CMD`",
            ));
        }
        return blockers;
    }
    blockers.extend(setup_blockers(evidence, tree));
    // Two checks may show the same text (another folder or environment): then as many records are needed.
    let mut wanted: BTreeMap<String, usize> = BTreeMap::new();
    let mut order = Vec::new();
    for check in expected {
        let shown = check.command.display();
        let count = wanted.entry(shown.clone()).or_insert(0);
        *count += 1;
        if *count == 1 {
            order.push(shown);
        }
    }
    for command in order {
        let needed = wanted.get(&command).copied().unwrap_or(1);
        blockers.extend(command_blockers(&command, needed, evidence, tree));
    }
    blockers
}

fn setup_blockers(evidence: &[EvidenceRecord], tree: &str) -> Vec<Blocker> {
    let mut last: BTreeMap<&str, &EvidenceRecord> = BTreeMap::new();
    for record in evidence.iter().filter(|record| record.setup && record.tree == tree) {
        last.insert(&record.command, record);
    }
    last.into_values().filter(|record| record.result != EvidenceResult::Pass).map(failed).collect()
}

/// Of the records of one command, the last `needed` on the tree count: a repeat after a fault replaces what was there.
fn command_blockers(command: &str, needed: usize, evidence: &[EvidenceRecord], tree: &str) -> Vec<Blocker> {
    let all: Vec<&EvidenceRecord> =
        evidence.iter().filter(|record| !record.setup && record.command == command).collect();
    let here: Vec<&EvidenceRecord> =
        all.iter().copied().filter(|record| !tree.is_empty() && record.tree == tree).collect();
    let last = &here[here.len().saturating_sub(needed)..];
    let mut blockers: Vec<Blocker> =
        last.iter().filter(|record| record.result != EvidenceResult::Pass).map(|record| failed(record)).collect();
    if last.len() < needed {
        blockers.push(if all.len() > here.len() {
            Blocker::new(
                "EVIDENCE_STALE",
                &format!("`{command}` ran on another tree, not on {}", short(tree)),
                "the runtime runs it again on the exact tree",
            )
        } else {
            Blocker::new(
                "EVIDENCE_MISSING",
                &format!("`{command}` has no result on tree {}", short(tree)),
                "the runtime runs it; a setup command or an earlier check that failed may have kept it from running",
            )
        });
    }
    blockers
}

fn failed(record: &EvidenceRecord) -> Blocker {
    let what = if record.setup { "setup command" } else { "command" };
    let kind = record.failure.map_or("UNKNOWN", |kind| kind.as_str());
    let (code, happened, next) = match record.result {
        EvidenceResult::TimedOut => (
            "EVIDENCE_TIMED_OUT",
            format!("did not end within its limit ({} ms)", record.duration_ms),
            "make it faster, or raise `timeout_s` of the check or policy `evidence.timeout_s`",
        ),
        _ if record.exit_code == 0 => (
            "ZERO_TESTS",
            format!("ended with exit 0, but {}", if record.note.is_empty() { "no test ran" } else { &record.note }),
            "add tests that this command runs, or correct the command",
        ),
        EvidenceResult::Fail | EvidenceResult::Pass => (
            "EVIDENCE_FAILED",
            format!("exit {} ({kind})", record.exit_code),
            "run the command in the tree, read its output and correct the code until it ends with exit 0",
        ),
    };
    Blocker::new(code, &format!("{what} `{}`: {happened}{}", record.command, output(record)), next)
}

fn output(record: &EvidenceRecord) -> String {
    let mut text = String::new();
    for (name, stream) in [("stdout", &record.stdout), ("stderr", &record.stderr)] {
        let stream = stream.trim();
        if !stream.is_empty() {
            text.push_str(&format!("\n{name} (end):\n{}", tail(stream, OUTPUT_CHARS)));
        }
    }
    text
}

fn short(id: &str) -> &str {
    if id.is_empty() { "(unknown)" } else { id.get(..12).unwrap_or(id) }
}
