//! A bench for whole runs as unit tests: every effect gets a friendly answer unless the test says otherwise.

use std::collections::VecDeque;

use harness_proto::event::Event;
use harness_proto::ids::{Millis, RunId};
use harness_proto::report::{CriterionResult, ImplementerReport, PlannerReport, Report, TaskChanges, VerifierReport};
use harness_proto::vocab::{CriterionOutcome, FailureKind, RecoverySignal, Role, Verdict};
use serde_json::{Value, json};

use crate::effect::{Class, Effect, EffectKind, TurnRequest};
use crate::evidence::{CommandExit, CommandRun};
use crate::fixtures;
use crate::input::{
    CandidateOutcome, Command, Input, InputKind, LandOutcome, Outcome, PlanFile, RestackOutcome, StartFacts, TreeFacts,
    TurnEnded, TurnFailure, TurnUsage,
};
use crate::policy::Policy;
use crate::state::{Brief, RunState};
use crate::step::Step;
use crate::supervisor::{register, step};

type Answer = Box<dyn Fn(&Effect, &RunState) -> Option<Outcome>>;

/// A run with its answers.
pub(super) struct Bench {
    pub(super) state: RunState,
    pub(super) policy: Policy,
    pub(super) now: Millis,
    pub(super) events: Vec<Event>,
    pub(super) turns: Vec<TurnRequest>,
    pub(super) effects: Vec<Effect>,
    answers: VecDeque<Answer>,
}

/// A full commit id from a short word.
pub(super) fn commit(n: u32) -> String {
    format!("{n:040x}")
}

/// Text of a plan with these tasks: `(id, dependencies)`.
pub(super) fn plan(tasks: &[(&str, &[&str])]) -> String {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, needs)| {
            json!({"id": id, "title": format!("Do {id}"), "description": "d", "acceptance_criteria": ["it holds"],
                "status": "pending", "priority": 1, "dependencies": needs})
        })
        .collect();
    json!({"version": 1, "goal": "g", "planner_revision": 1, "tasks": tasks}).to_string()
}

pub(super) fn ran(command: &str, code: i32) -> CommandRun {
    CommandRun {
        command: command.into(),
        expect_tests_min: None,
        exit: CommandExit::Code(code),
        stdout: String::new(),
        stderr: if code == 0 { String::new() } else { "assertion failed".into() },
        output: String::new(),
        output_bytes: 0,
        duration_ms: 1,
        fingerprint: "f".into(),
    }
}

pub(super) fn ended(result: Result<Report, TurnFailure>) -> TurnEnded {
    TurnEnded {
        result,
        tree: None,
        plan: None,
        plan_md: None,
        session: Some("thread-1".into()),
        resumed: false,
        usage: TurnUsage::default(),
        transcript: String::new(),
        agent: "bench".into(),
    }
}

pub(super) fn failed(kind: FailureKind, until: Option<Millis>) -> Outcome {
    let failure = TurnFailure { kind, message: format!("bench says {kind}"), until, errors: Vec::new() };
    Outcome::TurnEnded(Box::new(ended(Err(failure))))
}

pub(super) fn planned(text: &str, revision: i64) -> Outcome {
    let report = PlannerReport {
        revision,
        summary: "Planned.".into(),
        task_changes: TaskChanges::default(),
        planner_requested_reason: String::new(),
    };
    let mut turn = ended(Ok(Report::Planner(report)));
    turn.plan = Some(PlanFile::Text(text.into()));
    Outcome::TurnEnded(Box::new(turn))
}

pub(super) fn implemented(request: &TurnRequest) -> (ImplementerReport, TreeFacts) {
    let task = request.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let trial = commit(1000 + u32::try_from(request.turn).unwrap());
    let report = ImplementerReport {
        task_id: task.clone(),
        attempt: i64::from(request.attempt),
        commit: trial.clone(),
        summary: format!("Did {task}."),
        files_changed: vec!["a.py".into()],
        checks_run: Vec::new(),
        proposed_tasks: Vec::new(),
    };
    let facts = TreeFacts {
        head: trial.clone(),
        commits: vec![trial.clone()],
        trial_tree: format!("tree-of-{trial}"),
        trial,
        changed: vec!["a.py".into()],
        leftover: false,
        problems: Vec::new(),
    };
    (report, facts)
}

pub(super) fn verdict(request: &TurnRequest, verdict: Verdict, signal: RecoverySignal) -> VerifierReport {
    let pass = if verdict == Verdict::Accept { CriterionOutcome::Pass } else { CriterionOutcome::Fail };
    VerifierReport {
        task_id: request.task.as_ref().map(ToString::to_string).unwrap_or_default(),
        attempt: i64::from(request.attempt),
        commit: request.commit.clone(),
        verdict,
        recovery_signal: signal,
        summary: format!("Says {verdict} of attempt {}.", request.attempt),
        findings: Vec::new(),
        criteria_results: vec![CriterionResult { criterion: "C1".into(), result: pass, evidence: "seen".into() }],
        proposed_tasks: Vec::new(),
    }
}

impl Bench {
    pub(super) fn new(policy: Policy) -> Self {
        let brief =
            Brief { run: RunId::from_random([9; 5]), goal: "g".into(), original_goal: "g".into(), scope: ".".into() };
        let now = Millis(1_000_000);
        let mut bench = Self {
            state: register(brief, now),
            policy,
            now,
            events: Vec::new(),
            turns: Vec::new(),
            effects: Vec::new(),
            answers: VecDeque::new(),
        };
        bench.feed(InputKind::Registered);
        bench
    }

    pub(super) fn dag() -> Self {
        Self::new(fixtures::policy())
    }

    /// Answers effects before the friendly answers do; the newest rule is asked first.
    pub(super) fn rule(&mut self, answer: impl Fn(&Effect, &RunState) -> Option<Outcome> + 'static) {
        self.answers.push_front(Box::new(answer));
    }

    /// A rule for turns of a role.
    pub(super) fn turn(&mut self, role: Role, answer: impl Fn(&TurnRequest) -> Option<Outcome> + 'static) {
        self.rule(move |effect, _| match &effect.kind {
            EffectKind::RunTurn(request) if request.role == role => answer(request),
            _ => None,
        });
    }

    /// Evidence commands end with this code for these attempts of a task.
    pub(super) fn evidence(&mut self, task: &'static str, attempts: std::ops::RangeInclusive<u32>, code: i32) {
        self.rule(move |effect, state| match &effect.kind {
            EffectKind::CollectEvidence(request)
                if request.task.as_ref().is_some_and(|t| t.as_str() == task) && attempts.contains(&request.attempt) =>
            {
                let tree = tree_for(state, &request.commit);
                let runs = request.checks.iter().map(|c| ran(&c.command.display(), code)).collect();
                Some(Outcome::EvidenceCollected { tree, setup: Vec::new(), runs })
            }
            _ => None,
        });
    }

    pub(super) fn start(&mut self, plan: PlanFile) {
        let facts = StartFacts {
            target_branch: "main".into(),
            target_tip: commit(1),
            target_tree: "tree-of-base".into(),
            plan,
            agent: "bench".into(),
            walls: "none".into(),
        };
        self.feed(InputKind::Command(Command::Start(Box::new(facts))));
        self.feed(InputKind::Claimed);
    }

    pub(super) fn feed(&mut self, kind: InputKind) -> Step {
        let input = Input { at: self.now, kind };
        let result = step(&mut self.state, &input, &self.policy);
        self.events.extend(result.events.iter().cloned());
        self.effects.extend(result.effects.iter().cloned());
        for effect in &result.effects {
            if let EffectKind::RunTurn(request) = &effect.kind {
                self.turns.push((**request).clone());
            }
        }
        let audit = crate::audit::audit(&self.state, &self.policy);
        assert!(audit.is_empty(), "{audit:?}");
        result
    }

    /// Answers effects until none is pending; a deadline passes when nothing else can. Stops after 500 steps.
    pub(super) fn go(&mut self) {
        for _ in 0..500 {
            let Some(effect) = self.state.pending.values().next().cloned() else {
                match self.state.next_deadline() {
                    Some(at) if self.state.head.landing.retry_at != Some(at) => {
                        self.now = at;
                        self.feed(InputKind::Tick);
                        continue;
                    }
                    _ => return,
                }
            };
            self.answer(&effect);
        }
        panic!("the run does not come to rest: {:?}", self.words());
    }

    /// Answers one effect.
    pub(super) fn answer(&mut self, effect: &Effect) {
        let outcome = self.answers.iter().find_map(|rule| rule(effect, &self.state));
        let outcome = outcome.unwrap_or_else(|| friendly(effect, &self.state));
        self.feed(InputKind::Effect { id: effect.id, outcome: Box::new(outcome) });
    }

    /// Answers effects until one of this name is pending; it is left so.
    pub(super) fn until(&mut self, name: &str, task: &str) -> Effect {
        for _ in 0..200 {
            let next = self.state.pending.values().next().cloned().expect("something is pending");
            let mine = match &next.kind {
                EffectKind::RunTurn(r) => r.task.as_ref().map(ToString::to_string).unwrap_or_default() == task,
                _ => true,
            };
            if next.kind.name() == name && mine {
                return next;
            }
            self.answer(&next);
        }
        panic!("no {name} came up: {:?}", self.words());
    }

    /// The daemon dies: what was in flight and cannot be repeated is lost.
    pub(super) fn crash(&mut self) {
        let lost: Vec<_> =
            self.state.pending.values().filter(|e| e.kind.class() == Class::Lost).map(|e| e.id).collect();
        self.feed(InputKind::Claimed);
        for id in lost {
            self.feed(InputKind::EffectLost { id });
        }
    }

    /// `status decision` of every event.
    pub(super) fn words(&self) -> Vec<String> {
        self.events.iter().map(|e| format!("{} {}", e.status, e.decision)).collect()
    }

    pub(super) fn happened(&self, words: &str) -> usize {
        self.words().iter().filter(|w| *w == words).count()
    }

    pub(super) fn turns_of(&self, role: Role, task: &str) -> Vec<&TurnRequest> {
        let of =
            |r: &&TurnRequest| r.role == role && r.task.as_ref().map(ToString::to_string).unwrap_or_default() == task;
        self.turns.iter().filter(of).collect()
    }

    pub(super) fn reason(&self) -> &str {
        self.state.head.hold.as_ref().map_or("", |h| h.reason.as_str())
    }
}

/// The tree of a commit as the bench's git knows it.
fn tree_for(state: &RunState, commit: &str) -> String {
    let attempt = state.attempts.values().find(|a| a.candidate == commit || a.trial == commit);
    match attempt {
        Some(a) if a.candidate == commit && !a.candidate_tree.is_empty() => a.candidate_tree.clone(),
        Some(a) => a.trial_tree.clone(),
        None => state.head.landing.restacked.as_ref().map_or_else(|| format!("tree-of-{commit}"), |r| r.tree.clone()),
    }
}

fn friendly(effect: &Effect, state: &RunState) -> Outcome {
    match &effect.kind {
        EffectKind::PrepareTree { .. } | EffectKind::RemoveTree { .. } | EffectKind::Finish => Outcome::Done,
        EffectKind::RunSetup { commands, .. } => {
            Outcome::SetupDone(commands.iter().map(|c| ran(&c.command.display(), 0)).collect())
        }
        EffectKind::RunTurn(request) => match request.role {
            Role::Planner => planned(&plan(&[("T-1", &[])]), state.head.plan_revision + 1),
            Role::Implementer => {
                let (report, facts) = implemented(request);
                let mut turn = ended(Ok(Report::Implementer(report)));
                turn.tree = Some(facts);
                Outcome::TurnEnded(Box::new(turn))
            }
            Role::Verifier => {
                let report = verdict(request, Verdict::Accept, RecoverySignal::None);
                Outcome::TurnEnded(Box::new(ended(Ok(Report::Verifier(report)))))
            }
        },
        EffectKind::CollectEvidence(request) => Outcome::EvidenceCollected {
            tree: tree_for(state, &request.commit),
            setup: request.setup.iter().map(|c| ran(&c.command.display(), 0)).collect(),
            runs: request.checks.iter().map(|c| ran(&c.command.display(), 0)).collect(),
        },
        EffectKind::BuildCandidate(request) => {
            let tree = state.attempts[&request.task].trial_tree.clone();
            let id = u32::try_from(effect.id.0).unwrap() + 5000;
            Outcome::Candidate(CandidateOutcome::Built { commit: commit(id), tree })
        }
        EffectKind::AdvanceIntegration { to, .. } => Outcome::Advanced { head: to.clone(), moved: true },
        EffectKind::Land { .. } => Outcome::Land(LandOutcome::Landed { kept_edits: Vec::new() }),
        EffectKind::Restack { commits, .. } => Outcome::Restack(RestackOutcome::Rebuilt {
            commits: commits.iter().map(|c| (c.clone(), format!("{}f", &c[..39]))).collect(),
            tip: commits.last().map(|c| format!("{}f", &c[..39])).unwrap_or_default(),
            tree: "tree-rebuilt".into(),
        }),
    }
}
