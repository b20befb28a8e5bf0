//! One simulated run: a random choice of what happens next, until it ends.

use std::fmt::Write as _;

use harness_core::effect::{Class, Effect};
use harness_core::input::{Command, Input, InputKind, Outcome, PlanFile, StartFacts};
use harness_core::policy::{OnExhausted, Policy};
use harness_core::state::{Brief, RunState};
use harness_core::supervisor::{register, step};
use harness_proto::ids::{Millis, RunId};
use harness_proto::plan::Check;
use harness_proto::vocab::{ExecutionPolicy, HoldKind, LandMode, Lifecycle, Switch};

use crate::oracle;
use crate::rng::Rng;
use crate::rows::Rows;
use crate::world::{World, tree_id};

/// What kind of run.
#[derive(Clone)]
pub struct Options {
    pub faults: u64,
    pub tasks: usize,
    pub parallel: u32,
    pub land: LandMode,
    pub exhausted: OnExhausted,
}

impl Options {
    pub fn for_seed(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0xABCD);
        Self {
            faults: [0, 2, 5, 10, 20][usize::try_from(rng.below(5)).expect("small")],
            tasks: 1 + usize::try_from(rng.below(4)).expect("small"),
            parallel: 1 + u32::try_from(rng.below(3)).expect("small"),
            land: [LandMode::Each, LandMode::Each, LandMode::End][usize::try_from(rng.below(3)).expect("small")],
            exhausted: [OnExhausted::Replan, OnExhausted::Block, OnExhausted::Pause]
                [usize::try_from(rng.below(3)).expect("small")],
        }
    }

    fn policy(&self) -> Policy {
        Policy {
            max_parallel: self.parallel,
            max_attempts: 3,
            loop_limit: 3,
            on_exhausted: self.exhausted,
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
            land: self.land,
            execution: ExecutionPolicy::WorkspaceWrite,
            expansion: Switch::Enabled,
            stop_condition: String::new(),
            protected_paths: Vec::new(),
        }
    }
}

/// A broken promise, with the history that led to it.
pub struct Failure {
    pub why: String,
    pub history: String,
}

struct Sim {
    world: World,
    rows: Rows,
    state: RunState,
    policy: Policy,
    now: Millis,
    /// Results that were delivered once; sometimes they come again.
    delivered: Vec<Input>,
    /// Whether the rows are read back after each step.
    rows_checked: bool,
}

/// Runs one seed to its end: the word of the lifecycle, or `held:<reason>` when only a person can go on.
pub fn simulate(seed: u64, options: &Options) -> Result<String, Failure> {
    let policy = options.policy();
    let brief = Brief {
        run: RunId::from_random([1, 2, 3, 4, 5]),
        goal: "g".into(),
        original_goal: "g".into(),
        scope: ".".into(),
    };
    let now = Millis(1_000_000);
    let state = register(brief, now);
    let rows = Rows::register(&state);
    let world = World::new(seed, options.faults, options.tasks);
    let mut sim = Sim { world, rows, state, policy, now, delivered: Vec::new(), rows_checked: seed % 8 == 0 };
    sim.go().map_err(|why| Failure { why, history: sim.history() })
}

impl Sim {
    fn go(&mut self) -> Result<String, String> {
        self.feed(InputKind::Registered)?;
        self.start()?;
        let mut starts = 0;
        for round in 0..6_000 {
            if round == 3_000 {
                self.world.faults = 0; // liveness: from here on nothing goes wrong
            }
            if let Some(end) = self.ended() {
                if end.starts_with("held") && starts < 4 && self.world.rng.chance(60) {
                    starts += 1;
                    self.start()?;
                    continue;
                }
                oracle::check_end(&self.world, &self.state)?;
                self.replay()?;
                return Ok(end);
            }
            self.one()?;
        }
        Err("the run did not end within its bound".into())
    }

    fn ended(&self) -> Option<String> {
        let head = &self.state.head;
        let quiet = self.state.pending.is_empty();
        match (head.lifecycle, &head.hold) {
            (Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled, _) if quiet => {
                Some(head.lifecycle.to_string())
            }
            (_, Some(hold)) if quiet && hold.until.is_none() && hold.kind != HoldKind::Paused => {
                Some(format!("held:{}", hold.reason))
            }
            _ => None,
        }
    }

    /// One random thing.
    fn one(&mut self) -> Result<(), String> {
        let faults = self.world.faults;
        let dice = self.world.rng.below(100);
        if dice < faults / 4 {
            return self.crash();
        }
        if dice < faults / 2 && !self.delivered.is_empty() {
            return self.redeliver();
        }
        if dice == 99 && faults > 0 {
            return self.control();
        }
        if faults > 0 && self.world.rng.chance(2) {
            // A clock that jumps, both ways.
            self.now = Millis(self.now.0 + 7_200_000 - i64::try_from(self.world.rng.below(10_000_000)).expect("small"));
        }
        let pending: Vec<Effect> = self.state.pending.values().cloned().collect();
        if pending.is_empty() {
            return self.idle();
        }
        let index = usize::try_from(self.world.rng.below(pending.len() as u64)).expect("small");
        let effect = &pending[index];
        let outcome = if self.state.head.stopping && effect.kind.interruptible() {
            Outcome::Interrupted
        } else {
            self.world.answer(effect, &self.state, self.now)
        };
        if faults > 0 && self.world.rng.chance(faults / 5) {
            return self.crash(); // it happened, and nobody was told
        }
        let input = InputKind::Effect { id: effect.id, outcome: Box::new(outcome) };
        self.delivered.push(Input { at: self.now, kind: input.clone() });
        self.feed(input)
    }

    /// Nothing is in flight: time passes, or the user goes on.
    fn idle(&mut self) -> Result<(), String> {
        let head = &self.state.head;
        if matches!(head.lifecycle, Lifecycle::Stopped)
            || head.hold.as_ref().is_some_and(|h| h.kind == HoldKind::Paused)
        {
            return self.start();
        }
        let Some(deadline) = self.state.next_deadline() else {
            return Err(format!("stuck: nothing in flight, no deadline, {:?} {:?}", head.lifecycle, head.hold));
        };
        self.now = self.now.max(deadline);
        self.feed(InputKind::Tick)
    }

    fn start(&mut self) -> Result<(), String> {
        let facts = StartFacts {
            target_branch: "main".into(),
            target_tip: self.world.target.clone(),
            target_tree: tree_id(&self.world.tree_of(&self.world.target)),
            plan: PlanFile::Missing,
            agent: "sim".into(),
            walls: "none".into(),
        };
        self.feed(InputKind::Command(Command::Start(Box::new(facts))))?;
        if self.state.head.lifecycle == Lifecycle::Queued { self.feed(InputKind::Claimed) } else { Ok(()) }
    }

    fn control(&mut self) -> Result<(), String> {
        let command = match self.world.rng.below(4) {
            0 => Command::Pause,
            1 => Command::Stop { now: true },
            2 => Command::Land,
            _ => Command::Stop { now: false },
        };
        self.feed(InputKind::Command(command))
    }

    /// The daemon is killed: a new one reads the rows and repeats or reports effects.
    fn crash(&mut self) -> Result<(), String> {
        self.state = self.rows.load();
        self.feed(InputKind::Claimed)?;
        let lost: Vec<_> =
            self.state.pending.values().filter(|e| e.kind.class() == Class::Lost).map(|e| e.id).collect();
        for id in lost {
            self.feed(InputKind::EffectLost { id })?;
        }
        Ok(())
    }

    /// A result that was delivered before comes again: nothing may happen.
    fn redeliver(&mut self) -> Result<(), String> {
        let index = usize::try_from(self.world.rng.below(self.delivered.len() as u64)).expect("small");
        let input = self.delivered[index].clone();
        let InputKind::Effect { id, .. } = &input.kind else { return Ok(()) };
        if self.state.pending.contains_key(id) {
            return Ok(());
        }
        let before = self.state.clone();
        let result = step(&mut self.state, &input, &self.policy);
        if !(result.events.is_empty() && result.effects.is_empty()) || self.state != before {
            return Err(format!("redelivery of effect {id} changed something: {:?}", result.events));
        }
        Ok(())
    }

    fn feed(&mut self, kind: InputKind) -> Result<(), String> {
        let input = Input { at: self.now, kind };
        let seq = self.state.head.seq.0;
        let result = step(&mut self.state, &input, &self.policy);
        for (index, event) in result.events.iter().enumerate() {
            if event.seq.0 != seq + 1 + i64::try_from(index).expect("small") || event.description.is_empty() {
                return Err(format!("event {} after {seq}", event.seq));
            }
        }
        if self.world.faults > 0 && self.world.rng.chance(1) {
            // The commit fails (disk full): the caller loads the state again and tries the same input.
            self.state = self.rows.load();
            return self.feed_again(&input);
        }
        self.accept(&input, &result)
    }

    fn feed_again(&mut self, input: &Input) -> Result<(), String> {
        let result = step(&mut self.state, input, &self.policy);
        self.accept(input, &result)
    }

    fn accept(&mut self, input: &Input, result: &harness_core::step::Step) -> Result<(), String> {
        self.rows.commit(Some(input), result, &self.state);
        // Reading every row back costs more than the step; one run in eight does it after each step, the others at crashes.
        if self.rows_checked && self.rows.load() != self.state {
            return Err(format!("the stored rows are not the state after {:?}", input.kind));
        }
        oracle::check(&self.world, &self.state, result, &self.policy)
    }

    /// P7: the stored inputs give the same events again.
    fn replay(&self) -> Result<(), String> {
        let brief = self.state.head.brief.clone();
        let mut fresh = register(brief, Millis(1_000_000));
        let mut events = Vec::new();
        for text in &self.rows.inputs {
            let input: Input = serde_json::from_str(text).map_err(|e| e.to_string())?;
            events.extend(step(&mut fresh, &input, &self.policy).events);
        }
        if events == self.rows.events && fresh == self.state { Ok(()) } else { Err("replay differs".into()) }
    }

    fn history(&self) -> String {
        let mut text = String::new();
        for event in &self.rows.events {
            writeln!(text, "{}", event.to_tsv()).expect("writing to a string");
        }
        text
    }
}
