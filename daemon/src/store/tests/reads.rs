//! Reads give back what steps wrote; names resolve; lists are bounded.

use harness_core::effect::Purpose;
use harness_core::evidence::EvidenceRecord;
use harness_core::state::Incident;
use harness_core::step::{Lesson, PlanRow, TurnEndRow, TurnRow};
use harness_proto::ids::TaskId;
use harness_proto::report::{PlannerReport, Report, TaskChanges};
use harness_proto::vocab::{EvidenceResult, Kind, Owner, Role};

use super::super::{QueueLengths, RunFilter, RunName, UsageSum};
use super::*;

/// The end of a planner turn.
pub(super) fn ended(turn: i64) -> TurnEndRow {
    TurnEndRow {
        turn,
        outcome: "report".into(),
        message: String::new(),
        report: Some(Report::Planner(PlannerReport {
            revision: 1,
            summary: "planned".into(),
            task_changes: TaskChanges::default(),
            planner_requested_reason: "initial".into(),
        })),
        report_file: "planner-1.json".into(),
        session: "s".into(),
        agent: "offline 1".into(),
        input_tokens: 3,
        output_tokens: 4,
        total_tokens: 7,
        duration_ms: 50,
        transcript: "sha".into(),
        at: T0,
    }
}

fn record(task: Option<&str>, attempt: u32) -> EvidenceRecord {
    EvidenceRecord {
        purpose: Purpose::Trial,
        setup: false,
        task: task.map(|t| TaskId::parse(t).unwrap()),
        attempt,
        commit: "c".into(),
        tree: "t".into(),
        command: "true".into(),
        exit_code: 0,
        result: EvidenceResult::Pass,
        failure: None,
        note: String::new(),
        tests: None,
        stdout: "out".into(),
        stderr: String::new(),
        output: "sha".into(),
        duration_ms: 5,
        fingerprint: "f".into(),
        signature: String::new(),
        at: T0,
    }
}

fn begun(t: &TaskId) -> TurnRow {
    TurnRow {
        turn: 1,
        effect: EffectId(1),
        role: Role::Planner,
        kind: Kind::Plan,
        task: Some(t.clone()),
        attempt: 1,
        commit: "c".into(),
        template: "t".into(),
        at: T0,
    }
}

fn incident(t: &TaskId) -> Incident {
    Incident {
        owner: Owner::Planner,
        reason: "conflict".into(),
        task: Some(t.clone()),
        attempt: 1,
        commit: "c".into(),
        details: json!({"paths": ["a"]}),
        count: 1,
        at: T0,
    }
}

#[tokio::test]
async fn what_a_step_wrote_is_read_back() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    let loaded = store.load(&lease.run).await.unwrap();
    let (state, mut step) = moved(&loaded.state, Lifecycle::Running);
    let t = TaskId::parse("T-1").unwrap();
    let (begun, incident) = (begun(&t), incident(&t));
    let plan =
        PlanRow { revision: 1, source: "planner".into(), text: "{}".into(), prose: Some("# plan".into()), at: T0 };
    let lesson = Lesson {
        title: "t".into(),
        category: "task".into(),
        strategy: "s".into(),
        outcome: "accept".into(),
        insight: "i".into(),
        role: "verifier".into(),
        iteration: 1,
        at: T0,
    };
    let landing = Change::Landing { commit: "c".into(), outcome: "landed".into(), data: json!({"kept_edits": []}) };
    step.changes.extend([
        Change::TurnStarted(begun.clone()),
        Change::TurnEnded(Box::new(ended(1))),
        Change::Evidence(Box::new(record(Some("T-1"), 1))),
        Change::Evidence(Box::new(record(Some("T-1"), 2))),
        Change::Evidence(Box::new(record(None, 0))),
        Change::Plan(plan.clone()),
        Change::Incident { incident: Box::new(incident.clone()), closed: false },
        Change::Incident { incident: Box::new(Incident { count: 2, ..incident.clone() }), closed: false },
        landing,
        Change::Lesson(lesson.clone()),
    ]);
    store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await.unwrap();

    let turns = store.turns(&lease.run, 0, 10).await.unwrap();
    assert_eq!((&turns[0].begun, turns[0].ended.as_ref()), (&begun, Some(&ended(1))));
    assert_eq!(store.task_turns(&lease.run, &t).await.unwrap(), turns);
    assert_eq!(store.reports(&lease.run, 0, 10).await.unwrap()[0].file, "planner-1.json");
    let used = UsageSum {
        role: "planner".into(),
        agent: "offline 1".into(),
        turns: 1,
        input_tokens: 3,
        output_tokens: 4,
        total_tokens: 7,
        duration_ms: 50,
    };
    assert_eq!(store.usage(&lease.run).await.unwrap(), [used]);
    assert_eq!(store.evidence(&lease.run, Some(&t), None).await.unwrap().len(), 2);
    assert_eq!(store.evidence(&lease.run, Some(&t), Some(2)).await.unwrap(), [record(Some("T-1"), 2)]);
    assert_eq!(store.evidence(&lease.run, None, None).await.unwrap(), [record(None, 0)]);
    assert_eq!(store.plan(&lease.run, None).await.unwrap(), Some(plan.clone()));
    assert_eq!(store.plan(&lease.run, Some(1)).await.unwrap(), Some(plan));
    assert_eq!(store.lessons(&lease.run).await.unwrap(), [lesson]);
    assert_eq!(store.landings(&lease.run, 10).await.unwrap()[0].outcome, "landed");
    let open = store.incidents(&lease.run, 10).await.unwrap();
    assert_eq!((open.len(), open[0].incident.count, open[0].closed_at), (1, 2, None));

    let (state, mut step) = moved(&state, Lifecycle::Running);
    step.changes.push(Change::Incident { incident: Box::new(incident), closed: true });
    store.commit_step(&lease.run, lease.fence, Some(&input()), &step, &state).await.unwrap();
    assert_eq!(store.incidents(&lease.run, 10).await.unwrap()[0].closed_at, Some(T0));
    assert_eq!(store.last_events(&lease.run, 1).await.unwrap(), [event(Seq(2))]);
    assert_eq!(store.events(&lease.run, Seq(0), 1).await.unwrap(), [event(Seq(1))]);
    assert_eq!(store.check().await.unwrap().problems, Vec::<String>::new());
}

#[tokio::test]
async fn runs_are_found_by_every_name() {
    let (_dir, store) = fresh().await;
    for n in 1..=3 {
        store.register(new_run(&run(n), if n == 3 { "other" } else { "r" })).await.unwrap();
    }
    let ids = |rows: Vec<super::super::RunRow>| rows.into_iter().map(|r| r.run).collect::<Vec<_>>();
    assert_eq!(ids(store.find_runs(&RunName::Id(run(2))).await.unwrap()), [run(2)]);
    assert_eq!(ids(store.find_runs(&RunName::Last).await.unwrap()), [run(3)]);
    assert_eq!(ids(store.find_runs(&RunName::Repo("r".into())).await.unwrap()), [run(2)]);
    let whole = run(1).as_str().to_owned();
    assert_eq!(ids(store.find_runs(&RunName::Prefix(whole)).await.unwrap()), [run(1)]);
    assert_eq!(store.find_runs(&RunName::Prefix("run_".into())).await.unwrap().len(), 3);
    assert_eq!(store.find_runs(&RunName::Prefix("run_zz".into())).await.unwrap(), []);
    assert_eq!(store.active_run("r").await.unwrap(), None);
    let loaded = store.load(&run(1)).await.unwrap();
    let (state, step) = moved(&loaded.state, Lifecycle::Queued);
    store.commit_control(&run(1), loaded.fence, &input(), &step, &state, None).await.unwrap();
    assert_eq!(store.active_run("r").await.unwrap().unwrap().run, run(1));
    assert_eq!(ids(store.find_runs(&RunName::Repo("r".into())).await.unwrap()), [run(1)]);

    let filter = |repo: Option<&str>, lifecycle, limit| RunFilter {
        repo: repo.map(str::to_owned),
        lifecycle,
        before: None,
        limit,
    };
    assert_eq!(ids(store.list_runs(&filter(None, None, 2)).await.unwrap()), [run(3), run(2)]);
    assert_eq!(ids(store.list_runs(&filter(Some("r"), None, 9)).await.unwrap()), [run(2), run(1)]);
    let queued = Some(Lifecycle::Queued);
    assert_eq!(ids(store.list_runs(&filter(Some("r"), queued, 9)).await.unwrap()), [run(1)]);
    assert_eq!(ids(store.list_runs(&filter(None, queued, 9)).await.unwrap()), [run(1)]);
    let page = RunFilter { before: Some(2), ..filter(None, None, 9) };
    assert_eq!(ids(store.list_runs(&page).await.unwrap()), [run(1)]);
    assert_eq!(store.queue_lengths().await.unwrap(), QueueLengths { waiting: 0, ready: 1, leased: 0 });
}

#[tokio::test]
async fn launch_and_policy_can_change_until_the_first_start() {
    let (_dir, store) = fresh().await;
    store.register(new_run(&run(1), "r")).await.unwrap();
    assert!(store.set_launch(&run(1), &json!({"v": 2}), &json!({"p": 3})).await.unwrap());
    let loaded = store.load(&run(1)).await.unwrap();
    assert_eq!((&loaded.launch, &loaded.policy), (&json!({"v": 2}), &json!({"p": 3})));
    let (state, step) = moved(&loaded.state, Lifecycle::Queued);
    store.commit_control(&run(1), loaded.fence, &input(), &step, &state, None).await.unwrap();
    assert!(!store.set_launch(&run(1), &json!({}), &json!({})).await.unwrap());
}

#[tokio::test]
async fn processes_are_kept_until_removed() {
    let (_dir, store) = fresh().await;
    store.register(new_run(&run(1), "r")).await.unwrap();
    let identity = json!({"pid": 7, "start_time": 9, "boot_id": "b", "marker": "m"});
    let row = store.add_process(Some(&run(1)), &identity, T0).await.unwrap();
    store.add_process(None, &identity, T0).await.unwrap();
    assert_eq!(store.processes(None).await.unwrap().len(), 2);
    let mine = store.processes(Some(&run(1))).await.unwrap();
    assert_eq!((mine[0].id, &mine[0].identity), (row, &identity));
    store.remove_process(row).await.unwrap();
    assert_eq!(store.processes(Some(&run(1))).await.unwrap(), []);
    assert!(store.add_process(Some(&run(9)), &identity, T0).await.is_err(), "a process of no run");
}
