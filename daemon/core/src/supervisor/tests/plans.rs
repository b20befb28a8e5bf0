//! Plans: imports, refusals, requeues, repair tasks, proposals, the planner's bound.

use harness_proto::ids::TaskId;
use harness_proto::report::{ProposedTask, Report};
use harness_proto::vocab::{Lifecycle, RecoverySignal, Role, TaskStatus, Verdict};
use serde_json::{Value, json};

use super::bench::{Bench, ended, plan, planned, verdict};
use crate::effect::EffectKind;
use crate::input::{CandidateOutcome, Command, InputKind, Outcome, PlanFile};

fn id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

/// DESIGN 4: an invalid plan gets one repair turn with the exact errors, then the run is held with them.
#[test]
fn an_invalid_plan_is_repaired_once_then_held() {
    let mut bench = Bench::dag();
    let cycle = plan(&[("A", &["B"]), ("B", &["A"])]);
    bench.turn(Role::Planner, move |_| Some(planned(&cycle, 1)));
    bench.start(PlanFile::Missing);
    bench.go();
    let turns = bench.turns_of(Role::Planner, "");
    assert_eq!(turns.len(), 2);
    assert!(turns[1].repair && turns[1].prompt.contains("A -> B -> A"), "{}", turns[1].prompt);
    assert_eq!(bench.reason(), "plan_invalid");
    assert!(bench.state.head.hold.as_ref().unwrap().detail.contains("A -> B -> A"));
    assert!(bench.state.tasks.is_empty(), "nothing of it was taken");
}

/// S4-060, weaknesses 7: a planner that leaves nothing to do is asked a bounded number of times.
#[test]
fn a_planner_without_progress_is_bounded() {
    let mut bench = Bench::dag();
    let done_nothing = |status: &str| {
        json!({"version": 1, "goal": "g", "planner_revision": 1, "tasks": [{"id": "T-1", "title": "t", "description": "d",
            "acceptance_criteria": ["c"], "status": status, "priority": 1, "dependencies": []}]})
        .to_string()
    };
    let same = done_nothing("blocked");
    bench.turn(Role::Planner, move |_| Some(planned(&same, 1)));
    bench.turn(Role::Verifier, |request| {
        let report = verdict(request, Verdict::Revert, RecoverySignal::AmbiguousAcceptanceCriteria);
        Some(Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report))))))
    });
    bench.start(PlanFile::Text(done_nothing("ready")));
    bench.go();
    assert_eq!(bench.reason(), "planner_no_progress");
    assert_eq!(bench.turns_of(Role::Planner, "").len(), 3);
    assert!(bench.happened("recovery planner_left_no_ready_tasks") >= 1);
}

/// S4-057, S4-027: a signal blocks the task and the planner goes on in the same run.
#[test]
fn a_signal_is_the_planners_to_solve() {
    let mut bench = Bench::dag();
    bench.turn(Role::Verifier, |request| {
        (request.attempt == 1).then(|| {
            let report = verdict(request, Verdict::Revert, RecoverySignal::AmbiguousAcceptanceCriteria);
            Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report)))))
        })
    });
    let clearer = plan(&[("T-1", &[])]).replace("\"pending\"", "\"ready\"").replace("it holds", "it holds for sure");
    bench.turn(Role::Planner, move |_| Some(planned(&clearer, 2)));
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.go();
    assert_eq!(bench.happened("recovery ambiguous_acceptance_criteria"), 1);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    assert!(bench.state.head.incident.is_none());
    let asked = bench.turns_of(Role::Planner, "")[0];
    assert!(asked.prompt.contains("ambiguous_acceptance_criteria"));
}

fn with_repairs(tasks: &[(&str, &str, Option<&str>)]) -> String {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, status, target)| {
            let mut task = json!({"id": id, "title": "t", "description": "d", "acceptance_criteria": ["it holds"],
                "status": status, "priority": 1, "dependencies": []});
            if let Some(target) = target {
                task["repair_target_task_id"] = json!(target);
            }
            task
        })
        .collect();
    json!({"version": 1, "goal": "g", "planner_revision": 2, "tasks": tasks}).to_string()
}

/// S4-058, S4-059, weaknesses 22: a conflict is repaired by a new task, also a repair of a repair; the first target is closed.
#[test]
fn a_conflict_is_repaired_recursively() {
    let mut bench = Bench::dag();
    bench.rule(|effect, _| match &effect.kind {
        EffectKind::BuildCandidate(r) if matches!(r.task.as_str(), "T-1" | "R-1") => {
            Some(Outcome::Candidate(CandidateOutcome::Conflicted { paths: vec!["a.py".into()], submodule: false }))
        }
        _ => None,
    });
    bench.turn(Role::Planner, |request| {
        let text = if request.prompt.contains("R-1") {
            with_repairs(&[("T-1", "blocked", None), ("R-1", "blocked", Some("T-1")), ("R-2", "ready", Some("R-1"))])
        } else {
            with_repairs(&[("T-1", "blocked", None), ("R-1", "ready", Some("T-1"))])
        };
        Some(planned(&text, 2))
    });
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.go();
    assert_eq!(bench.happened("candidate conflict"), 2);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
    for task in ["T-1", "R-1", "R-2"] {
        assert_eq!(bench.state.tasks[&id(task)].status, TaskStatus::Done, "{task}");
    }
    assert_eq!(bench.state.tasks[&id("T-1")].resolved_by, Some(id("R-2")));
    assert!(bench.state.tasks[&id("T-1")].integration_conflict.is_null());
}

/// S4-020, weaknesses 22: proposals reach the planner also when the last task was accepted.
#[test]
fn proposals_of_the_last_task_reach_the_planner() {
    let mut bench = Bench::dag();
    bench.turn(Role::Verifier, |request| {
        let mut report = verdict(request, Verdict::Accept, RecoverySignal::None);
        report.proposed_tasks.push(ProposedTask {
            title: "More tests".into(),
            reason: "they are thin".into(),
            depends_on: Vec::new(),
            introduced_by: "verifier".into(),
        });
        let more = request.task.as_ref().is_some_and(|t| t.as_str() == "T-1");
        more.then(|| Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report))))))
    });
    let grown = plan(&[("T-1", &[]), ("T-2", &["T-1"])]);
    bench.turn(Role::Planner, move |_| Some(planned(&grown.replacen("\"pending\"", "\"done\"", 1), 2)));
    bench.start(PlanFile::Text(plan(&[("T-1", &[])])));
    bench.go();
    assert!(bench.turns_of(Role::Planner, "")[0].prompt.contains("More tests"));
    assert_eq!(bench.state.tasks[&id("T-2")].status, TaskStatus::Done);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// DESIGN 4: a human's edit brings topology, the store keeps statuses; an invalid one changes nothing.
#[test]
fn a_humans_edit_is_merged_or_refused() {
    let mut bench = Bench::dag();
    let before = plan(&[("T-1", &[])]);
    bench.start(PlanFile::Text(before.clone()));
    bench.until("run_turn", "T-1");
    let edit = PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"])]));
    bench.feed(InputKind::PlanEdited { plan: edit, base: before.clone() });
    assert_eq!(bench.happened("plan_import edited_by_user"), 1);
    assert_eq!(bench.state.tasks[&id("T-1")].status, TaskStatus::InProgress);
    assert_eq!(bench.state.tasks[&id("T-2")].status, TaskStatus::Pending);
    let broken = PlanFile::Text(plan(&[("T-1", &["T-9"])]));
    let tasks = bench.state.tasks.clone();
    bench.feed(InputKind::PlanEdited { plan: broken, base: before });
    assert_eq!(bench.happened("plan_import refused"), 1);
    assert_eq!(bench.state.tasks, tasks);
    bench.go();
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}

/// Verbs on tasks: retry gives attempts again, skip lets dependants go, cancel keeps the work.
#[test]
fn tasks_are_retried_skipped_and_cancelled() {
    let mut bench = Bench::dag();
    bench.policy.on_exhausted = crate::policy::OnExhausted::Pause;
    bench.policy.max_attempts = 1;
    bench.evidence("T-1", 1..=1, 1);
    bench.start(PlanFile::Text(plan(&[("T-1", &[]), ("T-2", &["T-1"]), ("T-3", &[])])));
    bench.go();
    assert_eq!(bench.reason(), "task_failed");
    bench.feed(InputKind::Command(Command::Retry { task: id("T-1"), note: "mind the edge".into() }));
    assert!(bench.turns_of(Role::Implementer, "T-1").len() == 1 || bench.state.head.hold.is_none());
    bench.until("run_turn", "T-1");
    assert!(bench.turns_of(Role::Implementer, "T-1")[1].prompt.contains("mind the edge"));
    bench.feed(InputKind::Command(Command::Skip { task: id("T-1"), reason: "not needed".into() }));
    assert_eq!(bench.state.tasks[&id("T-1")].status, TaskStatus::Skipped);
    assert_eq!(bench.state.tasks[&id("T-2")].status, TaskStatus::Ready);
    bench.feed(InputKind::Command(Command::CancelTask { task: id("T-3") }));
    assert!(bench.state.attempts.is_empty(), "the interrupted turn still takes the one place");
    bench.go();
    assert_eq!(bench.state.tasks[&id("T-3")].status, TaskStatus::Cancelled);
    assert_eq!(bench.state.tasks[&id("T-2")].status, TaskStatus::Done);
    assert_eq!(bench.state.head.lifecycle, Lifecycle::Completed);
}
