//! Every kind of history row that the runtime writes: role, status, decision (artifacts.md 1.5b; S4-038).
//!
//! `docs/events.md` shows this table and a tidy test compares the two; another tidy test finds each row that the core drafts in it.
//! A decision that ends in `*` has an open end: a reason, a code or a verb follows.

/// One kind of row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventWord {
    /// Who: `runtime`, `user`, a role, or `ROLE` for each of the three.
    pub role: &'static str,
    /// The kind of happening.
    pub status: &'static str,
    /// The finer word; `*` at its end stands for any text.
    pub decision: &'static str,
    /// What it means, for people.
    pub meaning: &'static str,
}

impl EventWord {
    /// Whether a row with these words is of this kind.
    #[must_use]
    pub fn covers(&self, role: &str, status: &str, decision: &str) -> bool {
        let role_fits = match self.role {
            "ROLE" => matches!(role, "planner" | "implementer" | "verifier"),
            other => other == role,
        };
        role_fits && self.status == status && self.covers_decision(decision)
    }

    /// Whether the finer word is of this kind.
    #[must_use]
    pub fn covers_decision(&self, decision: &str) -> bool {
        match self.decision.strip_suffix('*') {
            Some(start) => decision.starts_with(start),
            None => decision == self.decision,
        }
    }
}

const fn word(role: &'static str, status: &'static str, decision: &'static str, meaning: &'static str) -> EventWord {
    EventWord { role, status, decision, meaning }
}

/// Every kind, the predecessor's words first. Rows are added, never taken away: old histories keep their words.
pub const EVENT_WORDS: &[EventWord] = &[
    word("runtime", "init", "initialize", "the run's files were made; the first row"),
    word("planner", "plan", "dispatch_implementer", "a planner turn ended with a plan"),
    word("implementer", "submit_trial", "dispatch_verifier", "an implementer turn ended with a trial commit"),
    word("verifier", "accept", "all_tasks_done", "the accepted commit is integrated and was the last one"),
    word("verifier", "accept", "continue_after_accept", "the accepted commit is integrated"),
    word(
        "verifier",
        "revert",
        "*",
        "the attempt is thrown back, also when the gate overruled an accept; the reason follows",
    ),
    word("verifier", "recovery", "*", "the verifier or the integration asks the planner for help; the reason follows"),
    word("planner", "recovery", "*", "the planner left nothing to do while tasks are open; the reason follows"),
    word("runtime", "recovery", "*", "the runtime asks for help; the reason follows"),
    word("runtime", "run", "registered", "create-launch registered the run"),
    word("runtime", "run", "queued", "start put the run into the queue"),
    word("runtime", "run", "claimed", "a driver took the run from the queue"),
    word("runtime", "run", "held:*", "the run does not move: paused, parked, needs_human or recovery"),
    word("runtime", "run", "resumed", "a hold ended, or a new driver goes on"),
    word("runtime", "run", "stopped", "stopped by the user; start continues it"),
    word("runtime", "run", "completed", "every task is closed and the work is integrated"),
    word("runtime", "run", "failed", "the run ended without completing"),
    word("runtime", "run", "cancelled", "given up by the user; final"),
    word("ROLE", "turn", "started", "a turn of the role began"),
    word("ROLE", "turn", "lost", "the daemon or the machine ended while the turn ran"),
    word("ROLE", "turn", "failed:*", "the turn ended without a usable report; the kind of failure follows"),
    word("runtime", "setup", "pass", "the setup commands of a fresh tree passed"),
    word("runtime", "setup", "fail", "a setup command failed"),
    word("runtime", "evidence", "pass", "a command passed on the commit named"),
    word("runtime", "evidence", "fail", "a command failed on the commit named"),
    word("runtime", "evidence", "timed_out", "a command ran out of time on the commit named"),
    word("runtime", "evidence", "environment", "the machine, not the code, kept a command from passing"),
    word("verifier", "verdict", "accept", "the verifier would take the trial commit"),
    word("verifier", "verdict", "revert", "the verifier would not take the trial commit"),
    word("runtime", "gate", "pass", "evidence, verdict and findings let the commit through"),
    word("runtime", "gate", "blocked:*", "something does not let the commit through; its code follows"),
    word("runtime", "candidate", "built", "the commit was rebuilt on the integration head"),
    word("runtime", "candidate", "conflict", "the commit does not fit on the integration head"),
    word("runtime", "candidate", "no_change", "the attempt changes nothing"),
    word("runtime", "candidate", "already_applied", "the integration head already has the change"),
    word("runtime", "integrated", "advanced", "the integration head moved to the candidate"),
    word("runtime", "integrated", "restacked", "the rebuilt commits passed and the integration head moved to them"),
    word("runtime", "landed", "done", "the target branch has the accepted commits"),
    word("runtime", "landed", "pending:*", "the target branch cannot take them now; why follows"),
    word("runtime", "landed", "restacked", "the target branch had moved; the accepted commits were rebuilt on it"),
    word("runtime", "plan_import", "imported", "a plan was taken as a new revision"),
    word("runtime", "plan_import", "refused", "a plan has errors and was not taken"),
    word("user", "plan_import", "edited_by_user", "an edited tasks.json was merged"),
    word("user", "plan_import", "refused", "an edited tasks.json has errors and was not taken"),
    word("runtime", "retry", "*", "something failed and is tried again; the reason follows"),
    word("runtime", "incident", "opened", "a problem that somebody has to solve"),
    word("runtime", "incident", "closed", "that problem is over"),
    word("user", "control", "*", "the user asked for something; the verb follows"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_row_is_listed_once_and_explained() {
        for (n, a) in EVENT_WORDS.iter().enumerate() {
            assert!(!a.meaning.is_empty() && !a.meaning.contains('|'));
            let again =
                EVENT_WORDS[n + 1..].iter().any(|b| (a.role, a.status, a.decision) == (b.role, b.status, b.decision));
            assert!(!again, "{a:?} twice");
        }
    }

    #[test]
    fn open_ends_and_roles_are_covered() {
        let covered = |role, status, decision| EVENT_WORDS.iter().any(|w| w.covers(role, status, decision));
        assert!(covered("planner", "turn", "failed:timeout"));
        assert!(covered("runtime", "gate", "blocked:EVIDENCE_FAILED"));
        assert!(!covered("runtime", "turn", "started"));
        assert!(!covered("verifier", "turn", "begun"));
    }
}
