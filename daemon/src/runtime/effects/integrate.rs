//! Candidate, advance and restack: git work in the mirror, serial per repository.

use std::sync::Arc;

use harness_core::effect::CandidateRequest;
use harness_core::input::{CandidateOutcome, Fault, Outcome, RestackOutcome};
use harness_proto::ids::Millis;

use super::oid;
use crate::git::{self, Advance, Candidate, Pin, Restack, RestackRequest};
use crate::runtime::context::{RunContext, blocking, git_fault};

pub(super) async fn candidate(ctx: &Arc<RunContext>, request: CandidateRequest, at: Millis) -> Result<Outcome, Fault> {
    let ask = git::CandidateRequest {
        head: oid(&request.head)?,
        base: oid(&request.base)?,
        trial: oid(&request.trial)?,
        committer: ctx.who.clone(),
        message: request.message,
        at_unix: at.0 / 1000,
    };
    let ctx = ctx.clone();
    let guard = ctx.repo_lock.clone().lock_owned().await;
    let built = blocking(move || {
        let _guard = guard;
        ctx.mirror.build_candidate(&ask)
    })
    .await
    .map_err(|error| git_fault(&error))?;
    Ok(Outcome::Candidate(match built {
        Candidate::Built { commit, tree, .. } => {
            CandidateOutcome::Built { commit: commit.to_string(), tree: tree.to_string() }
        }
        Candidate::Conflicted { paths, submodule } => CandidateOutcome::Conflicted { paths, submodule },
        Candidate::NoChange => CandidateOutcome::NoChange,
        Candidate::AlreadyApplied { .. } => CandidateOutcome::AlreadyApplied,
    }))
}

pub(super) async fn advance(ctx: &Arc<RunContext>, from: &str, to: &str) -> Result<Outcome, Fault> {
    let (from, to) = (oid(from)?, oid(to)?);
    let ctx = ctx.clone();
    let guard = ctx.repo_lock.clone().lock_owned().await;
    let (head, moved) = blocking(move || {
        let _guard = guard;
        let run = ctx.run.as_str();
        // The first advance of a run finds no ref; what it expects then is the base it pinned.
        let expected = ctx.mirror.integration_head(run)?.is_some().then_some(&from);
        let answer = match ctx.mirror.advance(run, expected, &to)? {
            Advance::Moved | Advance::AlreadyThere => (to.to_string(), true),
            Advance::Stale { actual } => (actual.map(|a| a.to_string()).unwrap_or_default(), false),
        };
        Ok((answer.0, answer.1))
    })
    .await
    .map_err(|error: git::GitError| git_fault(&error))?;
    Ok(Outcome::Advanced { head, moved })
}

pub(super) async fn restack(
    ctx: &Arc<RunContext>,
    from: &str,
    commits: &[String],
    onto: &str,
    at: Millis,
) -> Result<Outcome, Fault> {
    let old: Vec<git::Oid> = commits.iter().map(|c| oid(c)).collect::<Result<_, _>>()?;
    let request = RestackRequest {
        old_base: oid(from)?,
        commits: old,
        onto: oid(onto)?,
        committer: ctx.who.clone(),
        at_unix: at.0 / 1000,
    };
    let (ctx, onto) = (ctx.clone(), request.onto.clone());
    let guard = ctx.repo_lock.clone().lock_owned().await;
    let (result, request) = blocking(move || {
        let _guard = guard;
        ctx.mirror.pin(ctx.run.as_str(), Pin::Head, &request.onto)?;
        ctx.mirror.restack(&request).map(|result| (result, request))
    })
    .await
    .map_err(|error| git_fault(&error))?;
    Ok(Outcome::Restack(match result {
        Restack::Rebuilt { commits: new, tree } => RestackOutcome::Rebuilt {
            tip: new.last().unwrap_or(&onto).to_string(),
            commits: request.commits.iter().zip(&new).map(|(a, b)| (a.to_string(), b.to_string())).collect(),
            tree: tree.to_string(),
        },
        Restack::Conflicted { at_index, paths, .. } => {
            RestackOutcome::Conflicted { commit: commits.get(at_index).cloned().unwrap_or_default(), paths }
        }
    }))
}
