//! The first state of a run.

use harness_proto::ids::{EffectId, Millis, Seq};
use harness_proto::vocab::{Lifecycle, Phase};

use crate::state::{Baseline, Brief, Counts, Landing, LastWords, Planner, RunHead, RunState};

use super::cx::{Cx, draft};

/// The state of a run that was created by `create-launch` and never started. Its first input writes the `init` rows.
#[must_use]
pub fn register(brief: Brief, at: Millis) -> RunState {
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
        created_at: at,
        started_at: None,
        updated_at: at,
        agent: String::new(),
        walls: String::new(),
        terminal_reason: String::new(),
    };
    RunState::from_rows(head, [], [], [])
}

/// The first rows of every run (S4-038).
pub(super) fn first_rows(cx: &mut Cx<'_>) {
    if cx.state.head.seq == Seq(0) {
        let goal = cx.state.head.brief.goal.clone();
        cx.event(draft("init", "initialize", "Initialized harness state and working artifacts."));
        cx.event(draft("run", "registered", format!("Registered: {goal}")));
    }
}
