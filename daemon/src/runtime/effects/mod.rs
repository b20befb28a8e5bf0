//! Carrying effects out: each function takes facts and returns an outcome, nothing is decided here.

mod evidence;
mod integrate;
mod land;
mod tree;
mod turn;

use std::sync::Arc;

use harness_core::effect::{Effect, EffectKind};
use harness_core::input::{Fault, Outcome};
use tokio_util::sync::CancellationToken;

use super::context::RunContext;
use crate::agent::StopSignal;

/// What an effect needs of the state, taken when it began.
#[derive(Debug, Clone, Default)]
pub(super) struct Inputs {
    /// `tasks.json` and `plan.md` for a planner.
    pub(super) plan: Option<(Vec<u8>, String)>,
    /// Branch that the run lands on.
    pub(super) target_branch: String,
    /// Reports and lessons that a planner may read: `(name, bytes)`.
    pub(super) readable: Vec<(String, Vec<u8>)>,
}

/// Carries one effect out.
///
/// Cancel safety: a dropped future leaves processes to the launcher, which kills them; the effect is then unfinished and the
/// next driver treats it by its class.
pub(super) async fn carry_out(ctx: Arc<RunContext>, effect: Effect, inputs: Inputs, stop: StopSignal) -> Outcome {
    let at = effect.at;
    let result = match effect.kind {
        EffectKind::PrepareTree { tree, commit } => tree::prepare(&ctx, &tree, &commit).await.map(|_| Outcome::Done),
        EffectKind::RunSetup { tree, commands, timeout_s } => {
            evidence::setup(&ctx, &tree, commands, timeout_s, effect.id, &either(&stop)).await
        }
        EffectKind::RunTurn(request) => turn::run(&ctx, *request, effect.id, at, inputs, stop).await,
        EffectKind::CollectEvidence(request) => evidence::collect(&ctx, *request, effect.id, &either(&stop)).await,
        EffectKind::BuildCandidate(request) => integrate::candidate(&ctx, *request, at).await,
        EffectKind::AdvanceIntegration { from, to } => integrate::advance(&ctx, &from, &to).await,
        EffectKind::Restack { from, commits, onto } => integrate::restack(&ctx, &from, &commits, &onto, at).await,
        EffectKind::Land { from, to } => land::land(&ctx, &from, &to, effect.id, inputs).await,
        EffectKind::RemoveTree { tree, keep, close_session } => tree::remove(&ctx, &tree, keep, close_session).await,
        EffectKind::Finish => tree::finish(&ctx).await,
    };
    result.unwrap_or_else(Outcome::Fault)
}

/// One token for programs that know no grace.
fn either(stop: &StopSignal) -> CancellationToken {
    // Setup and evidence have nothing to save: asked to end, they end.
    stop.graceful.clone()
}

/// A stored id that is no commit id: a bug or a damaged row.
fn oid(text: &str) -> Result<crate::git::Oid, Fault> {
    crate::git::Oid::parse(text).ok_or_else(|| Fault {
        code: "internal".into(),
        detail: format!("BUG: `{text}` is no commit id"),
        next: "harnessctl doctor".into(),
        retryable: false,
    })
}
