//! How states are shown.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use harness_core::policy::Policy;
use harness_core::state::{
    Baseline, Brief, Counts, Feedback, Hold, Incident, Landing, LastWords, Planner, RunHead, RunState, Task,
};
use harness_proto::api::answer::DaemonView;
use harness_proto::api::view::{RunView, WallsView};
use harness_proto::ids::{EffectId, Millis, RunId, Seq, TaskId};
use harness_proto::plan::PlannedTask;
use harness_proto::policy::PolicyValues;
use harness_proto::vocab::{HoldKind, Lifecycle, Owner, Phase, TaskStatus};
use serde_json::{Value, json};

use super::view::{Paths, ViewFacts, run_view};

fn head() -> RunHead {
    RunHead {
        created_at: Millis(0),
        grants: 0,
        brief: Brief {
            run: RunId::parse("run_aaaaaaaa").unwrap(),
            goal: "g".into(),
            original_goal: "g".into(),
            scope: "s".into(),
        },
        lifecycle: Lifecycle::Running,
        phase: Phase::Executing,
        hold: None,
        stopping: false,
        cancelling: false,
        seq: Seq(9),
        last_effect: EffectId(1),
        last_turn: 1,
        target_branch: "main".into(),
        base: "b".into(),
        head: "h".into(),
        head_tree: "t".into(),
        landed: "b".into(),
        unlanded: Vec::new(),
        landing: Landing::default(),
        baseline: Baseline::default(),
        plan_revision: 1,
        planner: Planner::default(),
        proposals: Vec::new(),
        incident: None,
        counts: Counts { accepts: 1, ..Counts::default() },
        last: LastWords { status: "accept".into(), decision: "continue_after_accept".into(), ..LastWords::default() },
        started_at: Some(Millis(1_796_065_618_000)),
        updated_at: Millis(1_796_065_618_000),
        agent: "offline".into(),
        walls: "landlock".into(),
        terminal_reason: String::new(),
    }
}

fn task(id: &str, status: TaskStatus, dependencies: &[&str]) -> Task {
    Task {
        plan: PlannedTask {
            id: TaskId::parse(id).unwrap(),
            title: format!("title of {id}"),
            description: String::new(),
            acceptance_criteria: vec!["c".into()],
            status,
            priority: 100,
            dependencies: dependencies.iter().map(|d| TaskId::parse(d).unwrap()).collect(),
            verification: Vec::new(),
            setup: Vec::new(),
            requirements: Vec::new(),
            files_touched: Vec::new(),
            repair_target: None,
            extra: serde_json::Map::new(),
        },
        status,
        attempts: 1,
        attempts_max: 3,
        last_attempt_commit: String::new(),
        last_verdict: None,
        integrated_commit: String::new(),
        blocked_reason: "why".into(),
        integration_conflict: Value::Null,
        resolved_by: None,
        feedback: Feedback::default(),
        signatures: Vec::new(),
        session: None,
        requeues: 0,
        unproven: false,
    }
}

fn view(head: RunHead, tasks: Vec<Task>) -> RunView {
    let state = RunState::from_rows(head, tasks, [], []);
    let policy = Policy::from_values(&PolicyValues::preset("dag").unwrap()).unwrap();
    run_view(
        &state,
        &ViewFacts {
            now: Millis(1_796_065_618_000),
            daemon: &DaemonView { pid: 7, alive: true, ..DaemonView::default() },
            command: &["harnessd".into()],
            created_at: Millis(0),
            paths: &Paths { repo: "/r".into(), ..Paths::default() },
            policy: &policy,
            branch: "dev",
            agents: &BTreeMap::new(),
            walls: &WallsView::default(),
            since: &BTreeMap::new(),
            tasks: true,
        },
    )
}

fn hold(kind: HoldKind) -> Hold {
    Hold {
        kind,
        owner: Owner::User,
        reason: "usage_limit".into(),
        detail: "d".into(),
        until: Some(Millis(1_796_065_619_000)),
        next: "harnessctl start run_aaaaaaaa".into(),
        since: Millis(0),
    }
}

#[test]
fn words_of_a_run_follow_from_its_three_fields() {
    let case = |lifecycle, kind: Option<HoldKind>| {
        let shown = view(RunHead { lifecycle, hold: kind.map(hold), ..head() }, vec![task("A", TaskStatus::Done, &[])]);
        (shown.status, shown.state, shown.terminal_reason, shown.last_decision)
    };
    let words = |a: &str, b: &str, c: &str, d: &str| (a.to_owned(), b.to_owned(), c.to_owned(), d.to_owned());
    assert_eq!(case(Lifecycle::Registered, None), words("idle", "registered", "none", "apply_accept"));
    assert_eq!(case(Lifecycle::Queued, None), words("idle", "queued", "none", "apply_accept"));
    assert_eq!(case(Lifecycle::Running, None), words("running", "running", "none", "apply_accept"));
    assert_eq!(case(Lifecycle::Running, Some(HoldKind::Parked)), words("running", "parked", "none", "apply_accept"));
    assert_eq!(case(Lifecycle::Running, Some(HoldKind::Paused)), words("idle", "paused", "none", "apply_accept"));
    assert_eq!(
        case(Lifecycle::Running, Some(HoldKind::NeedsHuman)),
        words("recovery", "needs-human", "none", "recovery")
    );
    assert_eq!(case(Lifecycle::Stopped, None), words("terminal", "stopped", "user_stopped", "stop"));
    assert_eq!(case(Lifecycle::Completed, None), words("terminal", "done", "all_tasks_done", "stop"));
}

#[test]
fn a_hold_carries_its_command_and_its_end() {
    let shown = view(RunHead { hold: Some(hold(HoldKind::Parked)), ..head() }, Vec::new());
    let hold = shown.hold.unwrap();
    assert_eq!(
        (hold.until.as_str(), shown.next.as_str()),
        ("2026-11-30T19:06:59+00:00", "harnessctl start run_aaaaaaaa")
    );
}

#[test]
fn tasks_say_what_they_wait_for_and_what_helps() {
    let shown = view(
        head(),
        vec![
            task("A", TaskStatus::Done, &[]),
            task("B", TaskStatus::Failed, &[]),
            task("C", TaskStatus::Pending, &["A", "B"]),
        ],
    );
    let states: Vec<&str> = shown.tasks.iter().map(|t| t.state.as_str()).collect();
    assert_eq!(states, ["accepted", "refused", "waiting"]);
    assert_eq!(shown.tasks[2].note, "waits for B");
    assert_eq!(shown.tasks[1].hold.as_ref().unwrap().next, "harnessctl retry B --run run_aaaaaaaa");
    assert_eq!(shown.task_counts["failed"], 1);
}

#[test]
fn landing_is_pending_as_long_as_something_did_not_land() {
    assert_eq!(view(head(), Vec::new()).landing.status, "landed");
    let shown = view(RunHead { unlanded: vec!["c".into()], lifecycle: Lifecycle::Completed, ..head() }, Vec::new());
    assert_eq!((shown.landing.status.as_str(), shown.next.as_str()), ("pending", "harnessctl start run_aaaaaaaa"));
    assert_eq!(shown.status, "terminal");
}

#[test]
fn the_recovery_object_has_the_predecessors_members() {
    let clear = view(head(), Vec::new()).recovery;
    assert_eq!((clear["status"].as_str(), clear["owner"].as_str()), (Some("clear"), Some("")));
    let incident = |owner| Incident {
        owner,
        reason: "integration_conflict".into(),
        task: Some(TaskId::parse("A").unwrap()),
        attempt: 2,
        commit: "c".into(),
        details: json!({"paths": ["x"]}),
        count: 4,
        at: Millis(0),
    };
    let planner = view(RunHead { incident: Some(incident(Owner::Planner)), ..head() }, Vec::new()).recovery;
    assert_eq!((planner["resume_task_id"].as_str(), planner["incident"]["commit"].as_str()), (Some("A"), Some("c")));
    assert_eq!(planner["retry"]["count"], 0);
    let runtime = view(RunHead { incident: Some(incident(Owner::Runtime)), ..head() }, Vec::new()).recovery;
    assert_eq!((runtime["retry"]["count"].as_i64(), runtime["retry"]["resume_attempt"].as_i64()), (Some(4), Some(2)));
    assert_eq!(runtime["incident"], json!({}));
}
