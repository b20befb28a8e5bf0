//! The order of a landing's steps.

use super::apply::apply;
use super::compare::compare;
use super::finish::{fast_forward, move_branch, replace_index};
use super::journal::Stage;
use super::lock::IndexLock;
use super::outcome::{LandOutcome, LandRequest, Stop};
use super::place::{self, Checkout};
use crate::failpoint;
use crate::git::error::GitError;

/// Lands one accepted commit on the user's branch, or says what it waits for.
///
/// Repeatable from the top after a kill at any instruction, with `started` as `mark_started` recorded it.
/// Not for two callers at once on the same repository.
///
/// Errors: [`GitError::MissingTarget`], [`GitError::Record`], and failures of git or the file system; after an error
/// the lock is given back and the same call may be made again.
pub fn land(mut req: LandRequest<'_>) -> Result<LandOutcome, GitError> {
    match steps(&mut req) {
        Ok(outcome) | Err(Stop::Answer(outcome)) => Ok(outcome),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn steps(req: &mut LandRequest<'_>) -> Result<LandOutcome, Stop> {
    if arrived(req)? {
        if let Some(checkout) = place::find(req.repo, req.target_branch)? {
            Stage::discard(&checkout)?;
            IndexLock::release_leftover(&checkout, req.run)?;
        }
        return Ok(LandOutcome::Landed { kept_edits: Vec::new() });
    }
    req.mirror.export(req.repo, &req.new)?;
    let Some(checkout) = place::find(req.repo, req.target_branch)? else {
        start(req)?;
        fast_forward(req)?;
        return Ok(LandOutcome::Landed { kept_edits: Vec::new() });
    };
    let in_progress = place::refuse_operation(&checkout);
    if in_progress.is_err() {
        IndexLock::release_leftover(&checkout, req.run)?;
    }
    in_progress?;
    let lock = IndexLock::take(&checkout, req.run, &req.new)?;
    let result = locked_steps(req, &checkout);
    lock.release()?;
    result
}

/// Whether the branch has the commit; stops when it is where it should not be.
fn arrived(req: &LandRequest<'_>) -> Result<bool, Stop> {
    let missing = || GitError::MissingTarget { branch: req.target_branch.to_owned() };
    let tip = req.repo.branch_tip(req.target_branch)?.ok_or_else(missing)?;
    if tip == req.old {
        return Ok(false);
    }
    // Also when the user has committed on top of it already.
    if tip == req.new || req.mirror.is_ancestor(&req.new, &tip)? {
        return Ok(true);
    }
    if let Some(checkout) = place::find(req.repo, req.target_branch)? {
        Stage::restore(&checkout)?;
        IndexLock::release_leftover(&checkout, req.run)?;
    }
    Err(Stop::Answer(LandOutcome::TargetMoved { tip }))
}

fn start(req: &mut LandRequest<'_>) -> Result<(), Stop> {
    failpoint::hit("git.land.start.before");
    if !req.started {
        (req.mark_started)().map_err(|source| GitError::Record { source })?;
        req.started = true;
    }
    failpoint::hit("git.land.start.after");
    Ok(())
}

fn locked_steps(req: &mut LandRequest<'_>, checkout: &Checkout) -> Result<LandOutcome, Stop> {
    let mut kept_edits = Stage::restore(checkout)?;
    // Under the lock the branch cannot be switched away or committed to by the user's git.
    if arrived(req)? {
        return Ok(LandOutcome::Landed { kept_edits });
    }
    let changes = req.mirror.changes(&req.old, &req.new)?;
    let todo = compare(req, checkout, &changes)?;
    start(req)?;
    kept_edits.extend(apply(req, checkout, &todo)?);
    replace_index(req, checkout, &changes)?;
    move_branch(req, &checkout.git_dir)?;
    Ok(LandOutcome::Landed { kept_edits })
}
