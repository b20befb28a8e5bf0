//! The dispatch of one input: find out whom it concerns, let that module decide, then pump.

use harness_proto::ids::{EffectId, TaskId};
use harness_proto::vocab::{HoldKind, Lifecycle};

use crate::effect::{Effect, EffectKind, Purpose};
use crate::input::{Input, InputKind, Outcome};
use crate::policy::Policy;
use crate::state::RunState;
use crate::step::Step;

use super::cx::{Cx, draft};
use super::{commands, finishing, implementing, integrating, landing, planning, pump, recovery, register, verifying};

/// Applies one input to a run. The state is changed in place; if the caller cannot store the step, it must load the state again.
///
/// Never fails: an input that means nothing now (a result of an unknown effect, a late one) changes nothing.
pub fn step(state: &mut RunState, input: &Input, policy: &Policy) -> Step {
    let mut cx = Cx::new(state, policy, input.at);
    register::first_rows(&mut cx);
    match &input.kind {
        InputKind::Registered => {}
        InputKind::Unavailable(fault) => finishing::unavailable(&mut cx, fault),
        InputKind::Claimed => claimed(&mut cx),
        InputKind::Command(command) => commands::apply(&mut cx, command),
        InputKind::Effect { id, outcome } => effect_ended(&mut cx, *id, outcome),
        InputKind::EffectLost { id } => effect_lost(&mut cx, *id),
        InputKind::PlanEdited { plan, base } => planning::edited(&mut cx, plan, base),
        InputKind::LaunchEdited => {
            cx.event(
                draft(
                    "control",
                    "launch_edited",
                    "harness-launch.json was edited; the policy of a started run is frozen",
                )
                .role("user"),
            );
        }
        InputKind::Tick => tick(&mut cx),
    }
    pump::pump(&mut cx);
    finishing::settle(&mut cx);
    cx.finish()
}

fn claimed(cx: &mut Cx<'_>) {
    match cx.state.head.lifecycle {
        Lifecycle::Queued => {
            cx.state.head.lifecycle = Lifecycle::Running;
            cx.event(draft("run", "claimed", "A driver took the run from the queue."));
        }
        Lifecycle::Running => {
            cx.event(draft("run", "resumed", "A new driver goes on where the last one ended."));
        }
        // A completed run is only taken for its pending landing.
        Lifecycle::Registered
        | Lifecycle::Completed
        | Lifecycle::Stopped
        | Lifecycle::Failed
        | Lifecycle::Cancelled => {}
    }
}

/// Whom an effect belongs to.
pub(super) enum Holder {
    /// An open attempt.
    Attempt(TaskId),
    /// The planner.
    Planner,
    /// The baseline.
    Baseline,
    /// Landing.
    Landing,
    /// Nobody waits for it.
    Nobody,
}

pub(super) fn holder(state: &RunState, id: EffectId) -> Holder {
    if let Some(attempt) = state.attempts.values().find(|a| a.effect == Some(id)) {
        return Holder::Attempt(attempt.task.clone());
    }
    if state.head.planner.effect == Some(id) {
        return Holder::Planner;
    }
    if state.head.baseline.effect == Some(id) {
        return Holder::Baseline;
    }
    if state.head.landing.effect == Some(id) {
        return Holder::Landing;
    }
    Holder::Nobody
}

fn effect_ended(cx: &mut Cx<'_>, id: EffectId, outcome: &Outcome) {
    let holder = holder(cx.state, id);
    let Some(effect) = cx.take(id) else { return };
    match (&holder, outcome) {
        (_, Outcome::Interrupted) => interrupted(cx, &holder),
        (_, Outcome::Fault(fault)) => recovery::fault(cx, &holder, &effect, fault),
        (Holder::Attempt(task), _) => attempt_effect(cx, task, &effect, outcome),
        (Holder::Planner, Outcome::TurnEnded(ended)) => planning::turn_ended(cx, ended),
        (Holder::Baseline, Outcome::EvidenceCollected { tree, setup, runs }) => {
            verifying::baseline(cx, tree, setup, runs);
        }
        (Holder::Landing, _) => landing::ended(cx, &effect, outcome),
        (Holder::Planner | Holder::Baseline | Holder::Nobody, _) => {}
    }
}

/// The result of an effect that an attempt waits for.
fn attempt_effect(cx: &mut Cx<'_>, task: &TaskId, effect: &Effect, outcome: &Outcome) {
    match (&effect.kind, outcome) {
        (EffectKind::PrepareTree { .. }, Outcome::Done) => implementing::tree_prepared(cx, task),
        (EffectKind::RunSetup { .. }, Outcome::SetupDone(runs)) => implementing::setup_done(cx, task, runs),
        (EffectKind::RunTurn(request), Outcome::TurnEnded(ended)) => match request.role {
            harness_proto::vocab::Role::Verifier => verifying::turn_ended(cx, task, ended),
            harness_proto::vocab::Role::Implementer => implementing::turn_ended(cx, task, ended),
            harness_proto::vocab::Role::Planner => {}
        },
        (EffectKind::CollectEvidence(request), Outcome::EvidenceCollected { tree, setup, runs }) => {
            match request.purpose {
                Purpose::Candidate => integrating::candidate_proved(cx, task, tree, setup, runs),
                Purpose::Trial | Purpose::Baseline | Purpose::Restack => {
                    verifying::trial_proved(cx, task, tree, setup, runs);
                }
            }
        }
        (EffectKind::BuildCandidate(_), Outcome::Candidate(outcome)) => integrating::candidate(cx, task, outcome),
        (EffectKind::AdvanceIntegration { to, .. }, Outcome::Advanced { head, moved }) => {
            integrating::advanced(cx, task, to, head, *moved);
        }
        _ => {
            // The shell answered an effect with the outcome of another kind: a bug there, never a decision here.
            let name = effect.kind.name();
            cx.edit_attempt(task, |a| a.effect = None);
            recovery::internal(cx, &format!("BUG: `{name}` was answered with a result of another kind"));
        }
    }
}

fn interrupted(cx: &mut Cx<'_>, holder: &Holder) {
    match holder {
        Holder::Attempt(task) => cx.edit_attempt(task, |a| a.effect = None),
        Holder::Planner => planning::interrupted(cx),
        Holder::Baseline => cx.state.head.baseline.effect = None,
        Holder::Landing => cx.state.head.landing.effect = None,
        Holder::Nobody => {}
    }
}

fn effect_lost(cx: &mut Cx<'_>, id: EffectId) {
    let holder = holder(cx.state, id);
    let Some(effect) = cx.take(id) else { return };
    recovery::lost(cx, &holder, &effect);
}

fn tick(cx: &mut Cx<'_>) {
    let at = cx.at;
    let passed = |t: Option<harness_proto::ids::Millis>| t.is_some_and(|t| t <= at);
    let over = cx.state.head.hold.as_ref().is_some_and(|h| passed(h.until));
    if over && let Some(hold) = cx.state.head.hold.take() {
        let what = if hold.kind == HoldKind::Parked { "The limit is over" } else { "The hold is over" };
        cx.event(draft("run", "resumed", format!("{what}: {}", hold.reason)));
    }
    let waiting: Vec<TaskId> =
        cx.state.attempts.values().filter(|a| passed(a.retry_at)).map(|a| a.task.clone()).collect();
    for task in waiting {
        cx.edit_attempt(&task, |a| a.retry_at = None);
    }
    if passed(cx.state.head.planner.retry_at) {
        cx.state.head.planner.retry_at = None;
        cx.touch(crate::step::Change::Run);
    }
    if passed(cx.state.head.landing.retry_at) {
        cx.state.head.landing.retry_at = None;
        landing::kick(cx);
    }
}
