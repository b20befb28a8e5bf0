//! Trees of attempts, planners, verifiers and evidence: made new, removed, kept by name.

use std::path::Path;
use std::sync::Arc;

use harness_core::input::{Fault, Outcome};

use super::oid;
use crate::git::Tree;
use crate::runtime::context::{RunContext, blocking, git_fault, make_dir};

/// Makes a tree at a commit, with its TMPDIR and scratch folder.
pub(super) async fn prepare(ctx: &Arc<RunContext>, name: &str, commit: &str) -> Result<Tree, Fault> {
    let commit = oid(commit)?;
    for folder in [ctx.dirs.tmp(name), ctx.dirs.scratch(name)] {
        make_dir(&folder)?;
    }
    let (ctx, dest) = (ctx.clone(), ctx.dirs.tree(name));
    let guard = ctx.repo_lock.clone().lock_owned().await;
    blocking(move || {
        let _guard = guard;
        ctx.mirror.add_tree(&dest, &commit).map_err(|error| git_fault(&error))
    })
    .await
}

/// Removes a tree and everything beside it, after naming what is to be kept.
pub(super) async fn remove(
    ctx: &Arc<RunContext>,
    name: &str,
    keep: Option<(String, String)>,
    close_session: bool,
) -> Result<Outcome, Fault> {
    if close_session && let Some((task, _)) = name.rsplit_once("-a") {
        ctx.agents.close_session(&session_key(ctx, task)).await;
    }
    let keep = keep.map(|(suffix, commit)| oid(&commit).map(|commit| (suffix, commit))).transpose()?;
    let (ctx, name) = (ctx.clone(), name.to_owned());
    let guard = ctx.repo_lock.clone().lock_owned().await;
    blocking(move || {
        let _guard = guard;
        if let Some((suffix, commit)) = keep {
            ctx.mirror.keep(ctx.run.as_str(), &suffix, &commit).map_err(|error| git_fault(&error))?;
        }
        let dest = ctx.dirs.tree(&name);
        ctx.mirror.remove_tree(&dest).map_err(|error| git_fault(&error))?;
        remove_folder(dest.parent().unwrap_or(&dest))?;
        Ok(Outcome::Done)
    })
    .await
}

/// Key of the implementer's session of a task.
pub(super) fn session_key(ctx: &RunContext, task: &str) -> String {
    format!("{}/{task}/implementer", ctx.run)
}

/// Removes what only a live run needs.
pub(super) async fn finish(ctx: &Arc<RunContext>) -> Result<Outcome, Fault> {
    ctx.agents.close_run(&ctx.run).await;
    let ctx = ctx.clone();
    let guard = ctx.repo_lock.clone().lock_owned().await;
    blocking(move || {
        let _guard = guard;
        let ours = ctx.mirror.trees().map_err(|error| git_fault(&error))?;
        for tree in ours.iter().filter(|tree| tree.starts_with(&ctx.dirs.work)) {
            ctx.mirror.remove_tree(tree).map_err(|error| git_fault(&error))?;
        }
        remove_folder(&ctx.dirs.work)?;
        Ok(Outcome::Done)
    })
    .await
}

fn remove_folder(path: &Path) -> Result<(), Fault> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Fault {
            code: "tree_not_removed".into(),
            detail: format!("cannot remove {}: {error}", path.display()),
            next: format!("remove {} by hand", path.display()),
            retryable: true,
        }),
        _ => Ok(()),
    }
}
