//! Values for unit tests.

use std::collections::BTreeMap;

use harness_proto::ids::{EffectId, Millis, RunId, Seq, TaskId};
use harness_proto::plan::{Check, PlannedTask};
use harness_proto::report::{CriterionResult, VerifierReport};
use harness_proto::vocab::{
    CriterionOutcome, EvidenceResult, ExecutionPolicy, LandMode, Lifecycle, Phase, RecoverySignal, Switch, TaskStatus,
    Verdict,
};
use serde_json::{Map, Value};

use crate::effect::Purpose;
use crate::evidence::EvidenceRecord;
use crate::policy::{OnExhausted, Policy};
use crate::state::{
    Attempt, Baseline, Brief, Counts, Feedback, Landing, LastWords, Planner, RunHead, RunState, Stage, Task,
};

/// A task id.
pub(crate) fn id(text: &str) -> TaskId {
    TaskId::parse(text).expect("fixture ids are valid")
}

/// The policy of preset `dag` with one suite command.
pub(crate) fn policy() -> Policy {
    Policy {
        max_parallel: 1,
        max_attempts: 3,
        loop_limit: 3,
        on_exhausted: OnExhausted::Replan,
        fault_retries: 3,
        fault_delay_s: 5,
        lost_turn_limit: 3,
        idle_planner_limit: 3,
        max_planner_turns: 0,
        max_turns: 0,
        max_tokens: 0,
        max_wall_s: 0,
        setup: Vec::new(),
        verify: vec![Check::shell("make test")],
        no_verification: false,
        evidence_timeout_s: 1_800,
        turn_start_s: 60,
        turn_silence_s: 900,
        turn_max_s: 3_600,
        turn_max_tokens: 0,
        land: LandMode::Each,
        execution: ExecutionPolicy::WorkspaceWrite,
        expansion: Switch::Enabled,
        stop_condition: String::new(),
        protected_paths: Vec::new(),
    }
}

/// A planned task with one criterion.
pub(crate) fn planned(name: &str, dependencies: &[&str]) -> PlannedTask {
    PlannedTask {
        id: id(name),
        title: format!("Do {name}"),
        description: format!("What {name} needs."),
        acceptance_criteria: vec![format!("{name} holds")],
        status: TaskStatus::Pending,
        priority: 100,
        dependencies: dependencies.iter().map(|name| id(name)).collect(),
        verification: Vec::new(),
        setup: Vec::new(),
        requirements: Vec::new(),
        files_touched: Vec::new(),
        repair_target: None,
        extra: Map::new(),
    }
}

/// A task as stored.
pub(crate) fn task(name: &str, dependencies: &[&str], status: TaskStatus) -> Task {
    Task {
        plan: planned(name, dependencies),
        status,
        attempts: 0,
        attempts_max: 3,
        last_attempt_commit: String::new(),
        last_verdict: None,
        integrated_commit: String::new(),
        blocked_reason: String::new(),
        integration_conflict: Value::Null,
        resolved_by: None,
        feedback: Feedback::default(),
        signatures: Vec::new(),
        session: None,
        requeues: 0,
        unproven: false,
    }
}

/// Tasks by id.
pub(crate) fn by_id(tasks: Vec<Task>) -> BTreeMap<TaskId, Task> {
    tasks.into_iter().map(|task| (task.plan.id.clone(), task)).collect()
}

/// An open attempt.
pub(crate) fn attempt(name: &str, number: u32, stage: Stage) -> Attempt {
    Attempt {
        task: id(name),
        number,
        stage,
        effect: None,
        retry_at: None,
        tree: format!("{name}-a{number}"),
        base: "b".repeat(40),
        trial: "c".repeat(40),
        trial_tree: "t".repeat(40),
        changed: vec!["src/a.py".to_owned()],
        summary: "Did it.".to_owned(),
        claims: (vec!["src/a.py".to_owned()], vec!["make test".to_owned()]),
        evidence: Vec::new(),
        verdict_summary: String::new(),
        candidate: String::new(),
        candidate_tree: String::new(),
        already_applied: false,
        faults: 0,
        lost: 0,
        report_errors: Vec::new(),
        session: None,
        turn: 1,
        outcome: String::new(),
        started_at: Millis(0),
    }
}

/// A running run.
pub(crate) fn state(tasks: Vec<Task>, attempts: Vec<Attempt>) -> RunState {
    let head = RunHead {
        created_at: Millis(0),
        brief: Brief {
            run: RunId::from_random([1, 2, 3, 4, 5]),
            goal: "A notes tool".to_owned(),
            original_goal: "make me a notes tool".to_owned(),
            scope: "src".to_owned(),
        },
        lifecycle: Lifecycle::Running,
        phase: Phase::Executing,
        hold: None,
        stopping: false,
        cancelling: false,
        seq: Seq(1),
        last_effect: EffectId(9),
        last_turn: 0,
        target_branch: "main".to_owned(),
        base: "b".repeat(40),
        head: "b".repeat(40),
        head_tree: "0".repeat(40),
        landed: "b".repeat(40),
        unlanded: Vec::new(),
        landing: Landing::default(),
        baseline: Baseline { effect: None, done: true, failing: Vec::new() },
        plan_revision: 1,
        planner: Planner::default(),
        proposals: Vec::new(),
        incident: None,
        counts: Counts::default(),
        last: LastWords::default(),
        started_at: Some(Millis(0)),
        updated_at: Millis(0),
        agent: String::new(),
        walls: String::new(),
        terminal_reason: String::new(),
        grants: 0,
    };
    RunState::from_rows(head, tasks, attempts, [])
}

/// A record of a command that passed.
pub(crate) fn passed(command: &str, tree: &str) -> EvidenceRecord {
    EvidenceRecord {
        purpose: Purpose::Trial,
        setup: false,
        task: None,
        attempt: 1,
        commit: "c".repeat(40),
        tree: tree.to_owned(),
        command: command.to_owned(),
        exit_code: 0,
        result: EvidenceResult::Pass,
        failure: None,
        note: String::new(),
        tests: None,
        stdout: String::new(),
        stderr: String::new(),
        output: String::new(),
        duration_ms: 1,
        fingerprint: String::new(),
        signature: String::new(),
        at: Millis(0),
    }
}

/// A verifier's report that accepts a task with `criteria` criteria.
pub(crate) fn accepts(name: &str, criteria: usize) -> VerifierReport {
    VerifierReport {
        task_id: name.to_owned(),
        attempt: 1,
        commit: String::new(),
        verdict: Verdict::Accept,
        recovery_signal: RecoverySignal::None,
        summary: "It holds.".to_owned(),
        findings: Vec::new(),
        criteria_results: (1..=criteria)
            .map(|number| CriterionResult {
                criterion: format!("C{number}"),
                result: CriterionOutcome::Pass,
                evidence: "seen".to_owned(),
            })
            .collect(),
        proposed_tasks: Vec::new(),
    }
}
