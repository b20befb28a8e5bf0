//! Setup commands and evidence, in trees that nobody else works in.

use std::path::PathBuf;
use std::sync::Arc;

use harness_core::effect::EvidenceRequest;
use harness_core::input::{Fault, Outcome};
use harness_proto::ids::{EffectId, TaskId};
use harness_proto::plan::Check;
use tokio_util::sync::CancellationToken;

use super::{oid, tree};
use crate::evidence::{Collected, EvidenceError, EvidenceSpec, ProcessNote, Restore, collect as run_commands};
use crate::git::{Oid, Tree};
use crate::redact::Redactor;
use crate::runtime::context::{RunContext, blocking, git_fault};
use crate::runtime::processes::processes;

struct Where {
    name: String,
    tree_path: PathBuf,
    tree_id: String,
    task: Option<TaskId>,
    attempt: u32,
    git_dir: Option<PathBuf>,
    restore: Option<Restore>,
}

/// Runs setup commands in an attempt's tree.
pub(super) async fn setup(
    ctx: &Arc<RunContext>,
    name: &str,
    commands: Vec<Check>,
    timeout_s: u32,
    effect: EffectId,
    stop: &CancellationToken,
) -> Result<Outcome, Fault> {
    let tree_path = ctx.dirs.tree(name);
    let git_dir = Some(ctx.mirror.tree_at(&tree_path).git_dir);
    let place =
        Where { name: name.into(), tree_path, tree_id: name.into(), task: None, attempt: 0, git_dir, restore: None };
    let collected = run(ctx, place, commands, Vec::new(), timeout_s, effect, stop).await?;
    Ok(collected.map_or(Outcome::Interrupted, |c| Outcome::SetupDone(c.setup)))
}

/// Runs setup and checks in a clean tree of the exact commit, then removes the tree.
pub(super) async fn collect(
    ctx: &Arc<RunContext>,
    request: EvidenceRequest,
    effect: EffectId,
    stop: &CancellationToken,
) -> Result<Outcome, Fault> {
    let name = format!("e{effect}");
    let commit = oid(&request.commit)?;
    let made = tree::prepare(ctx, &name, &request.commit).await?;
    let restore = Some(restoring(ctx, made, commit.clone()));
    let id = {
        let ctx = ctx.clone();
        blocking(move || ctx.mirror.tree_of(&commit)).await.map_err(|error| git_fault(&error))?
    };
    let place = Where {
        tree_path: ctx.dirs.tree(&name),
        name: name.clone(),
        tree_id: id.to_string(),
        task: request.task,
        attempt: request.attempt,
        git_dir: None,
        restore,
    };
    let collected = run(ctx, place, request.setup, request.checks, request.timeout_s, effect, stop).await;
    // The tree goes whatever happened; a failure to remove it is no reason to lose the result.
    if let Err(fault) = tree::remove(ctx, &name, None, false).await {
        tracing::warn!(run = %ctx.run, tree = name, detail = fault.detail, "a tree of evidence stays");
    }
    Ok(match collected? {
        None => Outcome::Interrupted,
        Some(c) => Outcome::EvidenceCollected { tree: id.to_string(), setup: c.setup, runs: c.runs },
    })
}

/// Puts the tree back to its commit before each further check, so that no check prepares it for the next one.
fn restoring(ctx: &Arc<RunContext>, made: Tree, commit: Oid) -> Restore {
    let ctx = ctx.clone();
    Arc::new(move || {
        let (ctx, made, commit) = (ctx.clone(), made.clone(), commit.clone());
        let reset = move || ctx.mirror.reset_tree(&made, &commit).map_err(|error| git_fault(&error).detail);
        Box::pin(blocking(reset))
    })
}

async fn run(
    ctx: &Arc<RunContext>,
    place: Where,
    setup: Vec<Check>,
    checks: Vec<Check>,
    timeout_s: u32,
    effect: EffectId,
    stop: &CancellationToken,
) -> Result<Option<Collected>, Fault> {
    let network = ctx.network("evidence");
    let spec = EvidenceSpec {
        run: ctx.run.to_string(),
        task: place.task.map(|t| t.to_string()).unwrap_or_default(),
        attempt: place.attempt,
        wall: ctx.wall(&place.name, place.git_dir, network, Vec::new()),
        tree_path: place.tree_path,
        tree_id: place.tree_id,
        tmp: ctx.dirs.tmp(&place.name),
        scratch: ctx.dirs.scratch(&place.name),
        output_dir: ctx.dirs.evidence(),
        env: ctx.environment(),
        setup,
        checks,
        timeout_s,
        network_default: network,
        redactor: Redactor::of_environment(&ctx.environment()),
        restore: place.restore,
    };
    let (notes, mut noted) = tokio::sync::mpsc::unbounded_channel();
    let on_process = processes(ctx, effect);
    let record = async move {
        while let Some(identity) = noted.recv().await {
            on_process(identity).await;
        }
    };
    let tell = move |note| {
        if let ProcessNote::Started(identity) = note {
            // The receiver lives as long as the commands run.
            drop(notes.send(identity));
        }
    };
    let (collected, ()) = tokio::join!(run_commands(spec, stop.clone(), tell), record);
    match collected {
        Ok(collected) => Ok(Some(collected)),
        Err(EvidenceError::Interrupted) => Ok(None),
        Err(error) => Err(Fault {
            code: "evidence_not_collected".into(),
            detail: std::error::Error::source(&error).map_or(error.to_string(), |why| format!("{error}: {why}")),
            next: "harnessctl doctor".into(),
            retryable: true,
        }),
    }
}
