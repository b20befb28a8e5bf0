//! Bringing the integration head to the target branch, and rebuilding on a target that the user moved (DESIGN 6).
//!
//! Landing never blocks a run: what is in the way makes it pending, and it is tried again.

use harness_proto::vocab::{HoldKind, LandMode, Lifecycle, Owner};
use serde_json::json;

use crate::effect::{Effect, EffectKind, EvidenceRequest, Purpose};
use crate::evidence::{CommandRun, is_environment};
use crate::gate::evidence_blockers;
use crate::input::{LandOutcome, Outcome, RestackOutcome};
use crate::state::Restacked;
use crate::step::Change;

use super::cx::{Cx, draft};
use super::verifying::record_runs;

/// Delay before a pending landing is tried again by itself: doubles from 30 s to 10 minutes.
const RETRY_FIRST_MS: i64 = 30_000;
const RETRY_MAX_MS: i64 = 600_000;
/// Tries by itself after the run completed, about two hours; then `start` lands (corrections 49: bounded).
const RETRIES_AFTER_THE_RUN: u32 = 16;

/// Delay before the try after `tries` that did not land, in milliseconds.
pub(super) fn retry_delay(tries: u32) -> i64 {
    RETRY_FIRST_MS.saturating_mul(1 << tries.saturating_sub(1).min(8)).min(RETRY_MAX_MS)
}

/// Starts a landing if the policy wants one now, something is to land, and none is in flight.
pub(super) fn kick(cx: &mut Cx<'_>) {
    let head = &cx.state.head;
    let wanted = head.landing.requested
        || match cx.policy.land {
            LandMode::Each => true,
            LandMode::End => cx.state.open_count == 0,
            LandMode::Manual => false,
        };
    let due = head.head != head.landed && !head.head.is_empty();
    let free = head.landing.effect.is_none() && head.landing.moved_to.is_empty() && head.landing.restacked.is_none();
    let allowed =
        matches!(head.lifecycle, Lifecycle::Running | Lifecycle::Completed) && !head.stopping && !head.cancelling;
    if wanted && due && free && allowed {
        let (from, to) = (head.landed.clone(), head.head.clone());
        let id = cx.effect(EffectKind::Land { from, to });
        cx.state.head.landing.effect = Some(id);
        cx.state.head.landing.retry_at = None;
    }
}

/// Whether nothing of a landing is in flight or due.
pub(super) fn settled(cx: &Cx<'_>) -> bool {
    let landing = &cx.state.head.landing;
    landing.effect.is_none() && landing.moved_to.is_empty() && landing.restacked.is_none()
}

/// Goes on with a rebuild, or with a landing that is due and has no effect: a restart finds such a one.
pub(super) fn pump(cx: &mut Cx<'_>) {
    let landing = &cx.state.head.landing;
    if landing.moved_to.is_empty() && landing.restacked.is_none() {
        // A pending one waits for its time.
        if landing.effect.is_none() && landing.retry_at.is_none() {
            kick(cx);
        }
    } else {
        rebuild(cx);
    }
}

/// Rebuilds on a target that the user moved, once no attempt has the integration head in hand; also after the run completed.
pub(super) fn rebuild(cx: &mut Cx<'_>) {
    let landing = &cx.state.head.landing;
    if landing.effect.is_some() {
        return;
    }
    if let Some(restacked) = landing.restacked.clone() {
        return prove_restacked(cx, &restacked);
    }
    let busy = cx.state.attempts.values().any(|a| {
        a.stage > crate::state::Stage::Building || (a.stage == crate::state::Stage::Building && a.effect.is_some())
    });
    if !landing.moved_to.is_empty() && !busy {
        let (from, onto) = (cx.state.head.landed.clone(), landing.moved_to.clone());
        let commits = cx.state.head.unlanded.clone();
        let id = cx.effect(EffectKind::Restack { from, commits, onto });
        cx.state.head.landing.effect = Some(id);
    }
}

pub(super) fn ended(cx: &mut Cx<'_>, effect: &Effect, outcome: &Outcome) {
    cx.state.head.landing.effect = None;
    match (&effect.kind, outcome) {
        (EffectKind::Land { to, .. }, Outcome::Land(outcome)) => landed(cx, to, outcome),
        (EffectKind::Restack { onto, .. }, Outcome::Restack(outcome)) => restacked(cx, onto, outcome),
        (EffectKind::CollectEvidence(_), Outcome::EvidenceCollected { tree, setup, runs }) => {
            restack_proved(cx, tree, setup, runs);
        }
        (EffectKind::AdvanceIntegration { to, .. }, Outcome::Advanced { head, moved }) => {
            if *moved || head == to {
                adopt(cx);
            } else {
                stuck(cx, "integration_head_moved", &format!("the integration head is {head}"));
            }
        }
        _ => super::recovery::internal(cx, "BUG: a landing was answered with a result of another kind"),
    }
}

fn landed(cx: &mut Cx<'_>, to: &str, outcome: &LandOutcome) {
    match outcome {
        LandOutcome::Landed { kept_edits } => {
            cx.state.head.landed = to.into();
            let unlanded = &mut cx.state.head.unlanded;
            let done = unlanded.iter().position(|c| c == to).map_or(0, |i| i + 1);
            unlanded.drain(..done);
            let moved_to = std::mem::take(&mut cx.state.head.landing.moved_to);
            cx.state.head.landing = crate::state::Landing { moved_to, ..Default::default() };
            let branch = cx.state.head.target_branch.clone();
            let mut text = format!("`{branch}` is at the accepted commit.");
            if !kept_edits.is_empty() {
                text.push_str(&format!(" Your edits were kept in {}.", kept_edits.join(", ")));
            }
            cx.event(draft("landed", "done", text).commit(to).data(json!({"kept_edits": kept_edits})));
            cx.touch(Change::Landing {
                commit: to.into(),
                outcome: "landed".into(),
                data: json!({"kept_edits": kept_edits}),
            });
            kick(cx);
        }
        LandOutcome::Pending { why, paths, command } => {
            let news = cx.state.head.landing.why != *why || cx.state.head.landing.paths != *paths;
            pending(cx, to, why, paths.clone(), command.clone());
            if news {
                let text = format!("Landing waits: {why} {}", paths.join(", "));
                let data = json!({"paths": paths, "next": command});
                cx.event(draft("landed", &format!("pending:{why}"), text).commit(to).data(data));
            }
        }
        LandOutcome::TargetMoved { tip, .. } if tip.is_empty() => {
            let command = format!("git branch {} {to}", cx.state.head.target_branch);
            pending(cx, to, "target_missing", Vec::new(), command);
            cx.event(draft("landed", "pending:target_missing", "The target branch is gone.").commit(to));
        }
        LandOutcome::TargetMoved { tip, .. } if *tip == cx.state.head.head => {
            landed(cx, &tip.clone(), &LandOutcome::Landed { kept_edits: Vec::new() });
        }
        LandOutcome::TargetMoved { tip, .. } => {
            cx.state.head.landing.moved_to.clone_from(tip);
            let text = format!("`{}` moved; the accepted commits are rebuilt on it.", cx.state.head.target_branch);
            cx.event(draft("landed", "pending:target_moved", text).commit(tip));
            cx.touch(Change::Landing { commit: tip.clone(), outcome: "moved".into(), data: json!(null) });
        }
    }
}

fn pending(cx: &mut Cx<'_>, to: &str, why: &str, paths: Vec<String>, command: String) {
    let at = cx.at;
    let landing = &mut cx.state.head.landing;
    landing.tries += 1;
    let delay = retry_delay(landing.tries);
    let tired = cx.state.head.lifecycle == Lifecycle::Completed && landing.tries > RETRIES_AFTER_THE_RUN;
    landing.retry_at = (!tired).then(|| at.plus(delay));
    landing.why = why.into();
    landing.paths.clone_from(&paths);
    landing.command = command;
    landing.requested = false;
    cx.touch(Change::Landing { commit: to.into(), outcome: format!("pending:{why}"), data: json!({"paths": paths}) });
}

fn restacked(cx: &mut Cx<'_>, onto: &str, outcome: &RestackOutcome) {
    match outcome {
        RestackOutcome::Rebuilt { commits, tip, tree } => {
            cx.state.head.landing.restacked =
                Some(Restacked { onto: onto.into(), commits: commits.clone(), tip: tip.clone(), tree: tree.clone() });
            cx.event(draft("landed", "restacked", format!("{} commits were rebuilt.", commits.len())).commit(tip));
            if checks(cx).is_empty() {
                advance(cx);
            }
        }
        RestackOutcome::Conflicted { commit, paths } => {
            let detail = format!("{commit} does not fit on your new commits: {}", paths.join(", "));
            stuck(cx, "restack_conflict", &detail);
        }
    }
}

/// Every command of the suite and of the tasks that did not land: the rebuilt tip has to pass them all.
fn checks(cx: &Cx<'_>) -> Vec<harness_proto::plan::Check> {
    let unlanded = &cx.state.head.unlanded;
    let tasks = cx.state.tasks.values().filter(|t| unlanded.contains(&t.integrated_commit));
    let mut all = Vec::new();
    for check in tasks.flat_map(|t| &t.plan.verification).chain(&cx.policy.verify) {
        if !all.contains(check) {
            all.push(check.clone());
        }
    }
    all
}

fn prove_restacked(cx: &mut Cx<'_>, restacked: &Restacked) {
    let checks = checks(cx);
    if checks.is_empty() {
        return advance(cx);
    }
    let request = EvidenceRequest {
        purpose: Purpose::Restack,
        task: None,
        attempt: 0,
        commit: restacked.tip.clone(),
        setup: cx.policy.setup.clone(),
        checks,
        timeout_s: cx.policy.evidence_timeout_s,
    };
    let id = cx.effect(EffectKind::CollectEvidence(Box::new(request)));
    cx.state.head.landing.effect = Some(id);
}

fn restack_proved(cx: &mut Cx<'_>, tree: &str, setup: &[CommandRun], runs: &[CommandRun]) {
    let Some(restacked) = cx.state.head.landing.restacked.clone() else { return };
    let records = record_runs(cx, Purpose::Restack, None, &restacked.tip, tree, (setup, runs));
    let failing: Vec<_> = records.iter().filter(|r| r.failure.is_some()).collect();
    if let Some(first) = failing.first()
        && failing.iter().all(|r| is_environment(r))
    {
        let first = (*first).clone();
        return super::implementing::environment_not_ready(cx, &first);
    }
    let blockers = evidence_blockers(cx.policy, &checks(cx), &records, &restacked.tree);
    if blockers.is_empty() {
        advance(cx);
    } else {
        let detail = blockers.iter().map(crate::gate::Blocker::sentence).collect::<Vec<_>>().join("; ");
        stuck(cx, "restack_evidence_failed", &detail);
    }
}

fn advance(cx: &mut Cx<'_>) {
    let Some(restacked) = &cx.state.head.landing.restacked else { return };
    let (from, to) = (cx.state.head.head.clone(), restacked.tip.clone());
    let id = cx.effect(EffectKind::AdvanceIntegration { from, to });
    cx.state.head.landing.effect = Some(id);
}

/// The rebuilt commits take the place of the old ones.
fn adopt(cx: &mut Cx<'_>) {
    let Some(restacked) = cx.state.head.landing.restacked.take() else { return };
    let head = &mut cx.state.head;
    head.head.clone_from(&restacked.tip);
    head.head_tree.clone_from(&restacked.tree);
    head.landed.clone_from(&restacked.onto);
    head.landing.moved_to.clear();
    head.landing.why.clear();
    head.landing.tries = 0;
    head.unlanded = restacked.commits.iter().map(|(_, new)| new.clone()).collect();
    let renamed: Vec<_> = cx
        .state
        .tasks
        .values()
        .filter_map(|t| {
            let new = restacked.commits.iter().find(|(old, _)| *old == t.integrated_commit)?;
            Some((t.plan.id.clone(), new.1.clone()))
        })
        .collect();
    for (task, commit) in renamed {
        cx.edit_task(&task, |t| t.integrated_commit = commit);
    }
    cx.event(draft("integrated", "restacked", "The rebuilt commits passed; the head moved.").commit(&restacked.tip));
    kick(cx);
}

/// Only the user can solve it; the accepted work stays on the integration head.
fn stuck(cx: &mut Cx<'_>, reason: &str, detail: &str) {
    let run = cx.state.head.brief.run.clone();
    let landing = &mut cx.state.head.landing;
    landing.moved_to.clear();
    landing.restacked = None;
    landing.why = reason.into();
    let next = format!("harnessctl recover --run {run} --branch harness/{run}, merge it, then harnessctl start {run}");
    landing.command.clone_from(&next);
    cx.touch(Change::Run);
    cx.hold(HoldKind::NeedsHuman, Owner::User, reason, detail, next);
}
