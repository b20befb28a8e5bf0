//! The verifier's prompt: one exact commit, its criteria, what the implementer claims, what the runtime measured.

use harness_proto::report::{CriterionResult, Report, VerifierReport};
use harness_proto::vocab::{CriterionOutcome, RecoverySignal, Verdict};

use super::implementer::about;
use super::parts::{DATA_RULE, Prompt, answer, checks, criteria, data, evidence, goal, line, template};
use crate::policy::Policy;
use crate::state::{Attempt, RunState};

const ROLE: &str = "$harness You are the verifier of one exact commit. The current folder is a throw-away tree of it: you may run and write \
what a check needs, nothing of it is kept. You do not repair anything.\n";

const RULES: &str = "<rules>
- Judge this commit, not what it could become: `git show --stat --name-only COMMIT`, then read and try what each criterion needs. \
About 5 commands are enough.
- Check every criterion with evidence of your own and answer each one exactly once by its id: `pass`, `fail`, or `skip` when it cannot be \
checked. What the implementer claims is a claim.
- `accept`: every criterion passes and nothing grave is wrong. `revert`: anything else; say in `findings` what is wrong and what to do, \
because the next attempt gets your words.
- A `critical` or `high` finding keeps the commit out, also with `accept`.
- `recovery_signal` is `none`, except: `environment_blocked` when the machine prevents you from checking at all, \
`ambiguous_acceptance_criteria` when the criteria cannot be decided. Both need `revert`.
- The runtime has run the commands below itself. Tests that were weakened, deleted or made to pass by special cases are a `high` finding.
- Work that you find besides goes into `proposed_tasks`. Do not edit tasks.json or plan.md.
</rules>
";

/// Most criteria that the example answers; a longer list is told, not shown.
const EXAMPLE_CRITERIA: usize = 50;

/// The prompt of a verifier turn.
#[must_use]
pub fn verifier_prompt(state: &RunState, policy: &Policy, attempt: &Attempt) -> Prompt {
    let template = template(&[ROLE, RULES]);
    let Some(task) = state.tasks.get(&attempt.task) else { return Prompt { text: String::new(), template } };
    let plan = &task.plan;
    let mut text = format!(
        "{ROLE}{DATA_RULE}\n\nAssigned task: {}\nAttempt: {}\nTrial commit: {}\nBase commit: {}\n\n",
        attempt.task, attempt.number, attempt.trial, attempt.base
    );
    text.push_str(&goal(state, policy));
    text.push_str(&about(plan));
    text.push_str(&format!("Acceptance criteria:\n{}</task>\n", criteria(plan)));
    text.push_str(&RULES.replace("COMMIT", &attempt.trial));
    text.push_str(&format!("<claims>\nThe implementer says:\n{}\n", data(&attempt.summary, 4_000)));
    let list = |items: &[String]| items.iter().take(100).map(|item| line(item, 300)).collect::<Vec<_>>().join(", ");
    text.push_str(&format!("Files: {}\nChecks: {}\n", list(&attempt.claims.0), list(&attempt.claims.1)));
    text.push_str(&format!("</claims>\n<changed_paths>\n{}\n</changed_paths>\n", list(&attempt.changed)));
    text.push_str(&format!("<checks>\n{}</checks>\n", checks(policy, plan)));
    text.push_str(&format!(
        "<evidence>\nMeasured by the runtime on this commit:\n{}</evidence>\n\n",
        evidence(&attempt.evidence)
    ));
    text.push_str(&answer(&example(attempt, plan.acceptance_criteria.len())));
    Prompt { text, template }
}

fn example(attempt: &Attempt, criteria: usize) -> Report {
    let answers = (1..=criteria.min(EXAMPLE_CRITERIA)).map(|number| CriterionResult {
        criterion: format!("C{number}"),
        result: CriterionOutcome::Fail,
        evidence: "what you ran and what you saw".to_owned(),
    });
    // A copied example must never take a commit in: it reverts.
    Report::Verifier(VerifierReport {
        task_id: attempt.task.to_string(),
        attempt: i64::from(attempt.number),
        commit: attempt.trial.clone(),
        verdict: Verdict::Revert,
        recovery_signal: RecoverySignal::None,
        summary: "Why you accept or revert.".to_owned(),
        findings: Vec::new(),
        criteria_results: answers.collect(),
        proposed_tasks: Vec::new(),
    })
}
