//! The engine on the real store: every step is committed and loaded again, the daemon dies in between, and the stored inputs
//! replay to the stored events (DESIGN P2, P7).
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../../tests/sim/rng.rs"]
mod rng;
#[path = "../../tests/sim/world.rs"]
mod world;

use std::path::PathBuf;

use harness_core::effect::Class;
use harness_core::input::{Command, Input, InputKind, Outcome, PlanFile, StartFacts};
use harness_core::policy::{OnExhausted, Policy};
use harness_core::state::{Brief, RunState};
use harness_core::supervisor::{register, step};
use harness_proto::ids::{Fence, Millis, RunId, Seq};
use harness_proto::plan::Check;
use harness_proto::report::Report;
use harness_proto::vocab::{ExecutionPolicy, LandMode, Lifecycle, Switch};
use harnessd::store::{CommitError, NewRun, Queue as _, QueueState, RepoKey, Store};
use serde_json::json;
use tempfile::TempDir;

use rng::Rng;
use world::{World, tree_id};

const SEEDS: u64 = 45;
const INPUTS: u32 = 250;

fn policy() -> Policy {
    Policy {
        max_parallel: 2,
        max_attempts: 3,
        loop_limit: 3,
        on_exhausted: OnExhausted::Replan,
        fault_retries: 1,
        fault_delay_s: 5,
        lost_turn_limit: 3,
        idle_planner_limit: 3,
        max_planner_turns: 0,
        max_turns: 0,
        max_tokens: 0,
        max_wall_s: 0,
        setup: vec![Check::shell("make setup")],
        verify: vec![Check::shell("make test")],
        no_verification: false,
        evidence_timeout_s: 60,
        turn_start_s: 60,
        turn_silence_s: 900,
        turn_max_s: 3600,
        turn_max_tokens: 0,
        land: LandMode::Each,
        execution: ExecutionPolicy::WorkspaceWrite,
        expansion: Switch::Enabled,
        stop_condition: String::new(),
        protected_paths: Vec::new(),
    }
}

struct Life {
    dir: TempDir,
    store: Store,
    world: World,
    rng: Rng,
    policy: Policy,
    run: RunId,
    state: RunState,
    fence: Fence,
    now: Millis,
    crashes: u32,
}

impl Life {
    async fn new(seed: u64) -> Self {
        // Order matters here, not power cuts: where a flush costs nothing.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let store = Store::open(dir.path()).await.unwrap();
        let run = RunId::from_random([0, 0, 0, 0, u8::try_from(seed % 250).unwrap()]);
        let brief = Brief { run: run.clone(), goal: "g".into(), original_goal: "g".into(), scope: ".".into() };
        let now = Millis(1_000_000);
        let state = register(brief, now);
        let new = NewRun {
            repo: RepoKey { path: PathBuf::from("/r"), key: "r".into() },
            launch: json!({}),
            policy: json!({}),
            head: state.head.clone(),
            priority: 0,
            request: None,
            at: now,
        };
        store.register(new).await.unwrap();
        let world = World::new(seed, [0, 5, 20][usize::try_from(seed % 3).unwrap()], 3);
        let rng = Rng::new(seed ^ 0x5eed);
        Self { dir, store, world, rng, policy: policy(), run, state, fence: Fence(0), now, crashes: 0 }
    }

    /// One input by the driver: what was committed loads equal.
    async fn drive(&mut self, kind: InputKind) {
        let input = Input { at: self.now, kind };
        let result = step(&mut self.state, &input, &self.policy);
        self.store.commit_step(&self.run, self.fence, Some(&input), &result, &self.state).await.unwrap();
        assert_eq!(self.store.load(&self.run).await.unwrap().state, self.state);
    }

    /// One input while nobody drives.
    async fn control(&mut self, kind: InputKind) {
        let loaded = self.store.load(&self.run).await.unwrap();
        self.state = loaded.state;
        let input = Input { at: self.now, kind };
        let result = step(&mut self.state, &input, &self.policy);
        self.store.commit_control(&self.run, loaded.fence, &input, &result, &self.state, None).await.unwrap();
    }

    /// The user starts the run and a driver takes it; false when it is held again at once (another budget is used up).
    async fn start(&mut self) -> bool {
        let facts = StartFacts {
            target_branch: "main".into(),
            target_tip: self.world.target.clone(),
            target_tree: tree_id(&self.world.tree_of(&self.world.target)),
            plan: PlanFile::Missing,
            agent: "sim".into(),
            walls: "none".into(),
        };
        self.control(InputKind::Command(Command::Start(Box::new(facts)))).await;
        let Some(lease) = self.store.claim("d", Millis(i64::MAX)).await.unwrap() else {
            assert!(self.state.head.hold.is_some(), "not offered, though nothing holds it");
            return false;
        };
        self.fence = lease.fence;
        self.drive(InputKind::Claimed).await;
        true
    }

    /// The daemon is killed and the next one takes over; the old one can write nothing any more.
    async fn crash(&mut self) {
        self.crashes += 1;
        let old = self.fence;
        let before = self.state.clone();
        self.store = Store::open(self.dir.path()).await.unwrap();
        let taken = self.store.takeover("next").await.unwrap();
        self.fence = taken[0].fence;
        let loaded = self.store.load(&self.run).await.unwrap();
        assert_eq!(loaded.state, before);
        let late = Input { at: self.now, kind: InputKind::Tick };
        let mut state = before;
        let result = step(&mut state, &late, &self.policy);
        let refused = self.store.commit_step(&self.run, old, Some(&late), &result, &state).await;
        assert!(matches!(refused, Err(CommitError::Fenced { .. })), "{refused:?}");
        self.drive(InputKind::Claimed).await;
        let lost = self.state.pending.values().filter(|e| e.kind.class() == Class::Lost).map(|e| e.id);
        for id in lost.collect::<Vec<_>>() {
            self.drive(InputKind::EffectLost { id }).await;
        }
    }

    /// One thing happens; false when nothing can.
    async fn one(&mut self) -> bool {
        if self.rng.chance(4) {
            self.crash().await;
            return true;
        }
        if self.rng.chance(1) {
            self.drive(InputKind::Command(Command::Pause)).await;
        }
        let pending: Vec<_> = self.state.pending.values().cloned().collect();
        if pending.is_empty() {
            let Some(deadline) = self.state.next_deadline() else { return false };
            self.now = self.now.max(deadline);
            self.drive(InputKind::Tick).await;
            return true;
        }
        let index = usize::try_from(self.rng.below(pending.len() as u64)).unwrap();
        let mut outcome = self.world.answer(&pending[index], &self.state, self.now);
        if let Outcome::TurnEnded(ended) = &mut outcome {
            // The world's commit names are short; a report may leave the commit out.
            match &mut ended.result {
                Ok(Report::Implementer(report)) => report.commit.clear(),
                Ok(Report::Verifier(report)) => report.commit.clear(),
                Ok(Report::Planner(_)) | Err(_) => {}
            }
        }
        self.drive(InputKind::Effect { id: pending[index].id, outcome: Box::new(outcome) }).await;
        true
    }

    async fn replay(&self) {
        let stored = self.store.inputs(&self.run, 0, 1000).await.unwrap();
        let mut state = self.store.origin(&self.run).await.unwrap();
        let mut events = Vec::new();
        for input in stored {
            events.extend(step(&mut state, &input.input, &self.policy).events);
            assert_eq!(state.head.seq, input.seq);
        }
        assert_eq!(events, self.store.events(&self.run, Seq(0), 1000).await.unwrap());
        assert_eq!(state, self.state);
    }
}

#[tokio::test]
async fn what_the_engine_decides_survives_and_replays() {
    let (mut completed, mut crashes, mut restarts) = (0, 0, 0);
    for seed in 1..=SEEDS {
        let mut life = Life::new(seed).await;
        assert!(life.start().await);
        for _ in 0..INPUTS {
            let over = matches!(life.state.head.lifecycle, Lifecycle::Completed | Lifecycle::Failed);
            if over && life.state.pending.is_empty() {
                break;
            }
            if !life.one().await {
                if life.state.head.hold.is_none() {
                    break; // The engine stands still; that is what tests/sim looks for, here only rows matter.
                }
                // Held or paused: the driver gives it back, nobody is offered it, and the user starts it again.
                life.store.release(&life.run, life.fence, life.now).await.unwrap();
                let row = life.store.run(&life.run).await.unwrap().unwrap();
                assert_eq!(row.queue, QueueState::Idle, "seed {seed}");
                assert_eq!(life.store.claim("d", Millis(i64::MAX)).await.unwrap(), None);
                restarts += 1;
                while !life.start().await {}
            }
        }
        life.store.release(&life.run, life.fence, life.now).await.unwrap();
        let row = life.store.run(&life.run).await.unwrap().unwrap();
        if row.lifecycle == Lifecycle::Completed && life.state.next_deadline().is_none() {
            completed += 1;
            assert_eq!(row.queue, QueueState::Idle, "seed {seed}");
        }
        crashes += life.crashes;
        life.replay().await;
        let found = life.store.check().await.unwrap();
        assert!(found.is_healthy(), "seed {seed}: {found:?}");
    }
    let seen = format!("{completed} completed, {crashes} crashes, {restarts} restarts");
    assert!(completed > 5 && crashes > 20 && restarts > 5, "{seen}");
}
