//! Landing: the only effect that changes the user's branch and checkout.

use std::sync::Arc;

use harness_core::input::{Fault, LandOutcome, Outcome};
use harness_proto::ids::EffectId;

use super::{Inputs, oid};
use crate::artifact::write_atomic;
use crate::git::{self, LandRequest, Pin};
use crate::runtime::context::{RunContext, blocking, git_fault, make_dir};

pub(super) async fn land(
    ctx: &Arc<RunContext>,
    from: &str,
    to: &str,
    effect: EffectId,
    inputs: Inputs,
) -> Result<Outcome, Fault> {
    let (old, new) = (oid(from)?, oid(to)?);
    let scratch = ctx.dirs.land();
    make_dir(&scratch)?;
    let ctx = ctx.clone();
    let guard = ctx.repo_lock.clone().lock_owned().await;
    let marker = scratch.join(format!("started-{effect}"));
    let outcome = blocking(move || {
        let _guard = guard;
        // The repository is looked at anew: worktrees and operations come and go.
        let repo = git::discover(&ctx.repo.top_level)?;
        // Durable before the first change: a repeat after a crash must know that it is one.
        let mut mark = || write_atomic(&marker, b"started\n").map_err(Into::into);
        let answer = git::land(LandRequest {
            repo: &repo,
            mirror: &ctx.mirror,
            run: ctx.run.as_str(),
            target_branch: &inputs.target_branch,
            old: old.clone(),
            new: new.clone(),
            started: marker.exists(),
            scratch: &scratch,
            mark_started: &mut mark,
        })?;
        if matches!(answer, git::LandOutcome::Landed { .. }) {
            ctx.mirror.pin(ctx.run.as_str(), Pin::Head, &new)?;
        }
        let descends = match &answer {
            git::LandOutcome::TargetMoved { tip } => ctx.mirror.is_ancestor(&old, tip).unwrap_or(false),
            git::LandOutcome::Landed { .. } | git::LandOutcome::Pending { .. } => true,
        };
        Ok((answer, descends))
    })
    .await
    .map_err(|error: git::GitError| git_fault(&error))?;
    Ok(Outcome::Land(match outcome {
        (git::LandOutcome::Landed { kept_edits }, _) => LandOutcome::Landed { kept_edits },
        (git::LandOutcome::Pending { why, paths, command }, _) => {
            LandOutcome::Pending { why: why.code().to_owned(), paths, command }
        }
        (git::LandOutcome::TargetMoved { tip }, descends) => {
            let tip = if tip.is_zero() { String::new() } else { tip.to_string() };
            LandOutcome::TargetMoved { tip, descends }
        }
    }))
}
