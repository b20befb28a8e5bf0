//! A fixed run in the middle of its life.

use std::path::Path;

use harness_core::state::{
    Attempt, Baseline, Brief, Counts, Feedback, Incident, Landing, LastWords, Planner, RunHead, RunState, Stage, Task,
};
use harness_proto::doc::{ConfigDoc, LaunchDoc};
use harness_proto::event::{Event, timestamp};
use harness_proto::ids::{EffectId, Millis, RunId, Seq, TaskId};
use harness_proto::plan::{Check, CommandLine, PlannedTask};
use harness_proto::vocab::{ExecutionPolicy, Lifecycle, Owner, Phase, Switch, TaskStatus, Verdict};
use serde_json::{Map, Value, json};

use super::super::{Layout, ProjectContext};

pub(super) const AT: Millis = Millis(1_796_065_618_000);

pub(super) fn run() -> RunId {
    RunId::parse("run_abcdefgh").unwrap()
}

pub(super) fn task_id(text: &str) -> TaskId {
    TaskId::parse(text).unwrap()
}

pub(super) fn head() -> RunHead {
    RunHead {
        brief: Brief { run: run(), goal: "Grüße schreiben".into(), original_goal: "OG".into(), scope: "src".into() },
        lifecycle: Lifecycle::Running,
        phase: Phase::Executing,
        hold: None,
        stopping: false,
        cancelling: false,
        seq: Seq(7),
        last_effect: EffectId(9),
        last_turn: 4,
        target_branch: "main".into(),
        base: "a".repeat(40),
        head: "b".repeat(40),
        head_tree: "c".repeat(40),
        landed: "b".repeat(40),
        unlanded: vec![],
        landing: Landing::default(),
        baseline: Baseline { effect: None, done: true, failing: vec![] },
        plan_revision: 1,
        planner: Planner::default(),
        proposals: vec![],
        incident: None,
        counts: Counts {
            planner_runs: 1,
            implementer_runs: 2,
            verifier_runs: 1,
            accepts: 1,
            reverts: 1,
            ..Counts::default()
        },
        grants: 0,
        last: LastWords {
            status: "revert".into(),
            decision: "retry_task".into(),
            verdict: "revert".into(),
            role: "verifier".into(),
            task: "T-002".into(),
            error: String::new(),
            accepted_commit: "b".repeat(40),
        },
        created_at: AT,
        started_at: Some(AT),
        updated_at: AT.plus(60_000),
        agent: "offline".into(),
        walls: "none".into(),
        terminal_reason: String::new(),
    }
}

pub(super) fn task(id: &str, status: TaskStatus) -> Task {
    Task {
        plan: PlannedTask {
            id: task_id(id),
            title: format!("Write {id}"),
            description: "One file.".into(),
            acceptance_criteria: vec!["The file is there.".into()],
            status: TaskStatus::Ready,
            priority: 1,
            dependencies: vec![],
            verification: vec![
                Check::shell("test -f a.txt"),
                Check {
                    command: CommandLine::Argv(vec!["cat".into(), "a b".into()]),
                    timeout_s: Some(5),
                    ..Check::shell("")
                },
            ],
            setup: vec![],
            requirements: vec!["REQ-001".into()],
            files_touched: vec![],
            repair_target: None,
            extra: Map::from_iter([("owner_note".to_owned(), json!({"kept": true}))]),
        },
        status,
        attempts: 1,
        attempts_max: 3,
        last_attempt_commit: "d".repeat(40),
        last_verdict: Some(Verdict::Revert),
        integrated_commit: String::new(),
        blocked_reason: String::new(),
        integration_conflict: Value::Null,
        resolved_by: None,
        feedback: Feedback { summary: "The commit does not do what the task asks.".into(), ..Feedback::default() },
        signatures: vec![],
        session: None,
        requeues: 0,
        unproven: false,
    }
}

pub(super) fn attempt(id: &str) -> Attempt {
    Attempt {
        task: task_id(id),
        number: 2,
        stage: Stage::Implementing,
        effect: Some(EffectId(9)),
        retry_at: None,
        tree: format!("{id}-a2"),
        base: "b".repeat(40),
        trial: String::new(),
        trial_tree: String::new(),
        changed: vec![],
        summary: String::new(),
        claims: (vec![], vec![]),
        evidence: vec![],
        verdict_summary: String::new(),
        candidate: String::new(),
        candidate_tree: String::new(),
        already_applied: false,
        faults: 0,
        lost: 0,
        report_errors: vec![],
        session: Some("01a22def-e848-76c5-b3b2-20acee5e51dd".into()),
        turn: 4,
        outcome: String::new(),
        started_at: AT,
    }
}

pub(super) fn incident() -> Incident {
    Incident {
        owner: Owner::Planner,
        reason: "integration_conflict".into(),
        task: Some(task_id("T-002")),
        attempt: 1,
        commit: "d".repeat(40),
        details: json!({"outcome": "conflict", "returncode": 1}),
        count: 0,
        at: AT,
    }
}

pub(super) fn state() -> RunState {
    let mut done = task("T-001", TaskStatus::Done);
    done.last_verdict = Some(Verdict::Accept);
    done.integrated_commit = "b".repeat(40);
    RunState::from_rows(head(), [done, task("T-002", TaskStatus::InProgress)], [attempt("T-002")], [])
}

pub(super) fn launch() -> LaunchDoc {
    LaunchDoc {
        approvals: Map::new(),
        config: ConfigDoc {
            allow_task_expansion: Switch::Enabled,
            execution_policy: ExecutionPolicy::WorkspaceWrite,
            goal: "Grüße schreiben".into(),
            max_task_attempts: 3,
            scope: "src".into(),
            session_mode: "background".into(),
            stop_condition: String::new(),
        },
        created_at: timestamp(AT),
        defaults: Map::new(),
        mode: "harness".into(),
        notes: vec![],
        original_goal: "OG".into(),
        policy: Map::from_iter([("max_parallel".to_owned(), json!(1))]),
        prompt_text: "OG".into(),
        run_id: run().to_string(),
        updated_at: timestamp(AT),
        version: 1,
    }
}

pub(super) fn context(repo: &Path) -> ProjectContext {
    ProjectContext {
        layout: Layout::choose(repo, []).unwrap(),
        launch: launch(),
        daemon: Some(super::super::DaemonIdentity { pid: 4711, pgid: 4711, command: vec!["harnessd".into()] }),
        created_at: AT,
        trees: "/state/runs/run_abcdefgh/trees".into(),
        prose: None,
        servers: vec![],
        reports: vec![],
    }
}

pub(super) fn event(seq: i64) -> Event {
    Event {
        seq: Seq(seq),
        at: AT.plus(seq * 1_000),
        role: "verifier".into(),
        task_id: "T-001".into(),
        attempt: 1,
        commit: "b".repeat(40),
        status: "accept".into(),
        decision: "continue_after_accept".into(),
        description: format!("line one\nline\ttwo of {seq}"),
        data: json!({"n": seq}),
    }
}
