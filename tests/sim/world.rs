//! The simulated world: git as sets of changes, agents and commands as dice.

use std::collections::{BTreeMap, BTreeSet};

use harness_core::effect::{Effect, EffectKind, TurnRequest};
use harness_core::evidence::{CommandExit, CommandRun};
use harness_core::input::{
    CandidateOutcome, Fault, LandOutcome, Outcome, PlanFile, RestackOutcome, TreeFacts, TurnEnded, TurnFailure,
    TurnUsage,
};
use harness_core::state::RunState;
use harness_proto::ids::Millis;
use harness_proto::plan::Check;
use harness_proto::report::{CriterionResult, ImplementerReport, PlannerReport, Report, TaskChanges, VerifierReport};
use harness_proto::vocab::{CriterionOutcome, FailureKind, RecoverySignal, Role, TaskStatus, Verdict};
use serde_json::json;

use crate::rng::Rng;

/// A tree is the sorted set of changes in it.
pub(crate) type Tree = BTreeSet<String>;

/// What is true, whatever the engine believes.
pub(crate) struct World {
    pub(crate) rng: Rng,
    /// Chance of a fault in percent.
    pub(crate) faults: u64,
    /// How many tasks a first plan has.
    pub(crate) tasks: usize,
    /// Commit → tree.
    pub(crate) commits: BTreeMap<String, Tree>,
    /// Integration head in the mirror.
    pub(crate) head: String,
    /// Target branch.
    pub(crate) target: String,
    /// Commits that the engine brought to the target.
    pub(crate) landed: BTreeSet<String>,
    /// `(tree, command)` that passed for real.
    pub(crate) passed: BTreeSet<(String, String)>,
    /// Trees for which a verifier accepted.
    pub(crate) accepted: BTreeSet<String>,
    counter: u64,
}

pub(crate) fn tree_id(tree: &Tree) -> String {
    let parts: Vec<&str> = tree.iter().map(String::as_str).collect();
    format!("tree:{}", parts.join("+"))
}

impl World {
    pub(crate) fn new(seed: u64, faults: u64, tasks: usize) -> Self {
        let base = format!("{:040x}", 0);
        Self {
            rng: Rng::new(seed),
            faults,
            tasks,
            commits: BTreeMap::from([(base.clone(), Tree::new())]),
            head: base.clone(),
            target: base,
            landed: BTreeSet::new(),
            passed: BTreeSet::new(),
            accepted: BTreeSet::new(),
            counter: 0,
        }
    }

    pub(crate) fn commit(&mut self, tree: Tree) -> String {
        self.counter += 1;
        let id = format!("{:040x}", self.counter);
        self.commits.insert(id.clone(), tree);
        id
    }

    pub(crate) fn tree_of(&self, commit: &str) -> Tree {
        self.commits.get(commit).cloned().unwrap_or_default()
    }

    fn fault(&mut self) -> bool {
        let faults = self.faults;
        self.rng.chance(faults)
    }

    /// Carries an effect out.
    pub(crate) fn answer(&mut self, effect: &Effect, state: &RunState, now: Millis) -> Outcome {
        let turn = matches!(effect.kind, EffectKind::RunTurn(_));
        if !turn && self.fault() && self.fault() {
            return Outcome::Fault(Fault {
                code: "disk_full".into(),
                detail: "no space left".into(),
                next: String::new(),
                retryable: self.rng.chance(80),
            });
        }
        match &effect.kind {
            EffectKind::PrepareTree { .. } | EffectKind::RemoveTree { .. } | EffectKind::Finish => Outcome::Done,
            EffectKind::RunSetup { commands, .. } => Outcome::SetupDone(self.run(commands, "tree:setup")),
            EffectKind::RunTurn(request) => Outcome::TurnEnded(Box::new(self.turn(request, state, now))),
            EffectKind::CollectEvidence(request) => {
                let tree = tree_id(&self.tree_of(&request.commit));
                let setup = self.run(&request.setup, "tree:setup");
                let failed = setup.iter().any(|r| r.exit != CommandExit::Code(0));
                let runs = if failed { Vec::new() } else { self.run(&request.checks, &tree) };
                Outcome::EvidenceCollected { tree, setup, runs }
            }
            EffectKind::BuildCandidate(request) => {
                Outcome::Candidate(self.candidate(&request.head, &request.base, &request.trial))
            }
            EffectKind::AdvanceIntegration { from, to } => {
                let moved = self.head == *from;
                if moved {
                    self.head.clone_from(to);
                }
                Outcome::Advanced { head: self.head.clone(), moved }
            }
            EffectKind::Land { from, to } => Outcome::Land(self.land(from, to)),
            EffectKind::Restack { commits, onto, from } => Outcome::Restack(self.restack(from, commits, onto)),
        }
    }

    fn run(&mut self, checks: &[Check], tree: &str) -> Vec<CommandRun> {
        checks
            .iter()
            .map(|check| {
                let command = check.command.display();
                let exit = match self.rng.below(4) {
                    0 if self.fault() => CommandExit::TimedOut,
                    1 if self.fault() => CommandExit::Signal(9),
                    2 if self.fault() => CommandExit::Code(1),
                    _ => CommandExit::Code(0),
                };
                if exit == CommandExit::Code(0) {
                    self.passed.insert((tree.to_owned(), command.clone()));
                }
                CommandRun {
                    command,
                    expect_tests_min: None,
                    exit,
                    stdout: String::new(),
                    stderr: "assertion failed".into(),
                    output: String::new(),
                    output_bytes: 0,
                    duration_ms: 1,
                    fingerprint: tree.to_owned(),
                }
            })
            .collect()
    }

    fn candidate(&mut self, head: &str, base: &str, trial: &str) -> CandidateOutcome {
        let (base, trial) = (self.tree_of(base), self.tree_of(trial));
        let change: Tree = trial.difference(&base).cloned().collect();
        if change.is_empty() {
            return CandidateOutcome::NoChange;
        }
        if self.fault() {
            return CandidateOutcome::Conflicted { paths: vec!["shared.txt".into()], submodule: self.rng.chance(5) };
        }
        let on_head = self.tree_of(head);
        let tree: Tree = on_head.union(&change).cloned().collect();
        if tree == on_head {
            return CandidateOutcome::AlreadyApplied;
        }
        let id = tree_id(&tree);
        CandidateOutcome::Built { commit: self.commit(tree), tree: id }
    }

    fn land(&mut self, from: &str, to: &str) -> LandOutcome {
        if self.fault() {
            // The user commits to the target.
            let mut tree = self.tree_of(&self.target.clone());
            self.counter += 1;
            tree.insert(format!("user{}", self.counter));
            self.target = self.commit(tree);
        }
        if self.target == to {
            return LandOutcome::Landed { kept_edits: Vec::new() };
        }
        if self.target != from {
            return LandOutcome::TargetMoved { tip: self.target.clone(), descends: true };
        }
        if self.fault() {
            return LandOutcome::Pending {
                why: "local_changes".into(),
                paths: vec!["a".into()],
                command: "git stash".into(),
            };
        }
        to.clone_into(&mut self.target);
        self.landed.insert(to.to_owned());
        LandOutcome::Landed { kept_edits: Vec::new() }
    }

    fn restack(&mut self, from: &str, commits: &[String], onto: &str) -> RestackOutcome {
        let (mut below, mut tip) = (self.tree_of(from), onto.to_owned());
        let mut pairs = Vec::new();
        for old in commits {
            if self.fault() && self.fault() {
                return RestackOutcome::Conflicted { commit: old.clone(), paths: vec!["a".into()] };
            }
            let tree = self.tree_of(old);
            let change: Tree = tree.difference(&below).cloned().collect();
            below = tree;
            let next: Tree = self.tree_of(&tip).union(&change).cloned().collect();
            tip = self.commit(next);
            pairs.push((old.clone(), tip.clone()));
        }
        let tree = tree_id(&self.tree_of(&tip));
        RestackOutcome::Rebuilt { commits: pairs, tip, tree }
    }

    fn turn(&mut self, request: &TurnRequest, state: &RunState, now: Millis) -> TurnEnded {
        let mut ended = TurnEnded {
            result: Err(self.failure(now)),
            tree: None,
            plan: None,
            plan_md: None,
            session: Some(format!("thread-{}", request.turn)),
            resumed: false,
            usage: TurnUsage { total_tokens: 10, duration_ms: 5, ..TurnUsage::default() },
            transcript: String::new(),
            agent: "sim".into(),
        };
        if self.fault() {
            return ended;
        }
        let bad = self.fault();
        match request.role {
            Role::Planner => {
                ended.plan = Some(self.plan(state, bad));
                ended.result = Ok(Report::Planner(PlannerReport {
                    revision: state.head.plan_revision + 1,
                    summary: "planned".into(),
                    task_changes: TaskChanges::default(),
                    planner_requested_reason: String::new(),
                }));
            }
            Role::Implementer => {
                let facts = self.implement(request, bad);
                let task = request.task.clone().expect("an implementer has a task");
                ended.result = Ok(Report::Implementer(ImplementerReport {
                    task_id: if self.fault() && bad { "T-999".into() } else { task.to_string() },
                    attempt: i64::from(request.attempt),
                    commit: facts.trial.clone(),
                    summary: "done".into(),
                    files_changed: Vec::new(),
                    checks_run: Vec::new(),
                    proposed_tasks: Vec::new(),
                }));
                ended.tree = Some(facts);
            }
            Role::Verifier => ended.result = Ok(Report::Verifier(self.verify(request, state, bad))),
        }
        ended
    }

    fn failure(&mut self, now: Millis) -> TurnFailure {
        let kinds = FailureKind::ALL;
        let index = usize::try_from(self.rng.below(kinds.len() as u64)).expect("small");
        let kind = kinds[index];
        let until = match kind {
            FailureKind::UsageLimited => Some(now.plus(3_600_000)),
            _ => None,
        };
        let errors = if kind == FailureKind::InvalidReport { vec!["summary is missing".into()] } else { Vec::new() };
        TurnFailure { kind, message: format!("simulated {kind}"), until, errors }
    }

    fn implement(&mut self, request: &TurnRequest, bad: bool) -> TreeFacts {
        let mut tree = self.tree_of(&request.base);
        if !bad {
            let task = request.task.as_ref().map(ToString::to_string).unwrap_or_default();
            tree.insert(format!("{task}.{}", request.attempt));
        }
        let id = tree_id(&tree);
        let trial = if bad { String::new() } else { self.commit(tree) };
        TreeFacts {
            head: trial.clone(),
            commits: vec![trial.clone()],
            trial,
            trial_tree: id,
            changed: vec!["work/file".into()],
            leftover: false,
            problems: Vec::new(),
        }
    }

    fn verify(&mut self, request: &TurnRequest, state: &RunState, bad: bool) -> VerifierReport {
        let task = request.task.clone().expect("a verifier has a task");
        let criteria = state.tasks[&task].plan.acceptance_criteria.len();
        let verdict = if bad { Verdict::Revert } else { Verdict::Accept };
        let signal = match verdict {
            Verdict::Revert if self.fault() => RecoverySignal::EnvironmentBlocked,
            _ => RecoverySignal::None,
        };
        if verdict == Verdict::Accept {
            self.accepted.insert(tree_id(&self.tree_of(&request.commit)));
        }
        let drop = usize::from(self.fault() && self.fault());
        VerifierReport {
            task_id: task.to_string(),
            attempt: i64::from(request.attempt),
            commit: request.commit.clone(),
            verdict,
            recovery_signal: signal,
            summary: format!("verdict of attempt {}", request.attempt),
            findings: Vec::new(),
            criteria_results: (1..=criteria.saturating_sub(drop))
                .map(|n| CriterionResult {
                    criterion: format!("C{n}"),
                    result: if bad { CriterionOutcome::Fail } else { CriterionOutcome::Pass },
                    evidence: "looked".into(),
                })
                .collect(),
            proposed_tasks: Vec::new(),
        }
    }

    fn plan(&mut self, state: &RunState, bad: bool) -> PlanFile {
        if bad {
            let broken = ["{", "[]", r#"{"version":1,"tasks":[{"id":"x"}]}"#];
            let index = usize::try_from(self.rng.below(3)).expect("small");
            return PlanFile::Text(broken[index].into());
        }
        let mut tasks = Vec::new();
        if state.tasks.is_empty() {
            for n in 0..self.tasks {
                let needs = if n > 0 && self.rng.chance(40) { vec![format!("T-{:03}", n)] } else { Vec::new() };
                tasks.push(json!({"id": format!("T-{:03}", n + 1), "title": "t", "description": "d",
                    "acceptance_criteria": ["it works", "it is tested"], "status": "pending", "priority": n,
                    "dependencies": needs, "verification": ["make test"]}));
            }
        }
        for task in state.tasks.values() {
            let stuck = matches!(task.status, TaskStatus::Failed | TaskStatus::Blocked | TaskStatus::TimedOut);
            let status = if stuck && self.rng.chance(70) { "ready" } else { task.status.as_str() };
            tasks.push(json!({"id": task.plan.id, "title": task.plan.title, "description": task.plan.description,
                "acceptance_criteria": task.plan.acceptance_criteria, "status": status, "priority": task.plan.priority,
                "dependencies": task.plan.dependencies, "verification": ["make test"]}));
        }
        PlanFile::Text(json!({"version": 1, "goal": "g", "planner_revision": 1, "tasks": tasks}).to_string())
    }
}
