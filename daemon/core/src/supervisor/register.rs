//! The first state of a run.

use harness_proto::ids::{EffectId, Millis, Seq};
use harness_proto::vocab::{Lifecycle, Phase};

use crate::policy::Policy;
use crate::state::{Baseline, Brief, Counts, Landing, LastWords, Planner, RunHead, RunState};
use crate::step::Step;

use super::cx::{Cx, draft};

/// A run that was created by `create-launch` and never started.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// Its state.
    pub state: RunState,
    /// Its first rows: `init` and `registered`.
    pub step: Step,
}

/// Creates a run.
#[must_use]
pub fn register(brief: Brief, policy: &Policy, at: Millis) -> Registration {
    let goal = brief.goal.clone();
    let head = RunHead {
        brief,
        lifecycle: Lifecycle::Registered,
        phase: Phase::Planning,
        hold: None,
        stopping: false,
        cancelling: false,
        seq: Seq(0),
        last_effect: EffectId(0),
        last_turn: 0,
        target_branch: String::new(),
        base: String::new(),
        head: String::new(),
        head_tree: String::new(),
        landed: String::new(),
        unlanded: Vec::new(),
        landing: Landing::default(),
        baseline: Baseline::default(),
        plan_revision: 0,
        planner: Planner::default(),
        proposals: Vec::new(),
        incident: None,
        counts: Counts::default(),
        grants: 0,
        last: LastWords { status: "initialized".into(), decision: "initialize".into(), ..LastWords::default() },
        started_at: None,
        updated_at: at,
        agent: String::new(),
        walls: String::new(),
        terminal_reason: String::new(),
    };
    let mut state = RunState::from_rows(head, [], [], []);
    let mut cx = Cx::new(&mut state, policy, at);
    cx.event(draft("init", "initialize", "Initialized harness state and working artifacts."));
    cx.event(draft("run", "registered", format!("Registered: {goal}")));
    let step = cx.finish();
    Registration { state, step }
}
