//! One agent turn: its tree, its wall, the agent, and the facts that the runtime finds afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use harness_core::effect::TurnRequest;
use harness_core::input::{Fault, Outcome, PlanFile, TreeFacts, TurnEnded};
use harness_proto::ids::{EffectId, Millis};
use harness_proto::report::schema::schema_for;
use harness_proto::vocab::{FailureKind, Role};

use super::{Inputs, oid, tree};
use crate::agent::{AgentKind, StopSignal, TurnResult, TurnSpec};
use crate::artifact::write_atomic;
use crate::process::Wall;
use crate::runtime::context::{RunContext, blocking, git_fault, make_dir};
use crate::runtime::processes::processes;

/// Largest `tasks.json` or `plan.md` that comes back from a planner.
const PLAN_MAX: u64 = 16 << 20;

pub(super) async fn run(
    ctx: &Arc<RunContext>,
    request: TurnRequest,
    effect: EffectId,
    at: Millis,
    inputs: Inputs,
    stop: StopSignal,
) -> Result<Outcome, Fault> {
    let role = request.role;
    let kind = ctx.agent(role)?;
    let own_tree = request.tree.clone();
    let name = own_tree.clone().unwrap_or_else(|| format!("{role}-{}", request.turn));
    if own_tree.is_none() {
        tree::prepare(ctx, &name, &request.commit).await?;
    }
    let plan_dir = (role == Role::Planner).then(|| ctx.dirs.plan(&name));
    if let Some(dir) = &plan_dir {
        seed_plan(dir, &inputs)?;
    }
    write_prompt(ctx, &request)?;
    let spec = spec(ctx, &kind, request, &name, plan_dir.clone())?;
    let on_process = processes(ctx, effect);
    let interrupted = stop.clone();
    let result = ctx.agents.run_turn(&kind, &spec, stop, &on_process).await;
    let asked = interrupted.graceful.is_cancelled() || interrupted.now.is_cancelled();
    if asked && matches!(&result.text_report, Err(f) if f.kind == FailureKind::Interrupted) && role != Role::Implementer
    {
        tree_gone(ctx, &name).await;
        return Ok(Outcome::Interrupted);
    }
    let ended = facts(ctx, &spec, result, plan_dir, at).await?;
    if own_tree.is_none() {
        tree_gone(ctx, &name).await;
    }
    let lost = asked && matches!(&ended.result, Err(f) if f.kind == FailureKind::Interrupted);
    Ok(if lost { Outcome::Interrupted } else { Outcome::TurnEnded(Box::new(ended)) })
}

/// Throw-away trees go; one that stays is swept at the end of the run.
async fn tree_gone(ctx: &Arc<RunContext>, name: &str) {
    if let Err(fault) = tree::remove(ctx, name, None, false).await {
        tracing::warn!(run = %ctx.run, tree = name, detail = fault.detail, "a throw-away tree stays");
    }
}

fn seed_plan(dir: &Path, inputs: &Inputs) -> Result<(), Fault> {
    make_dir(&dir.join("inputs"))?;
    let mut files: Vec<(PathBuf, &[u8])> =
        inputs.readable.iter().map(|(name, bytes)| (dir.join("inputs").join(name), bytes.as_slice())).collect();
    if let Some((tasks, prose)) = &inputs.plan {
        files.push((dir.join("tasks.json"), tasks));
        files.push((dir.join("plan.md"), prose.as_bytes()));
    }
    for (path, bytes) in files {
        std::fs::write(&path, bytes).map_err(|error| Fault {
            code: "state_dir_unwritable".into(),
            detail: format!("cannot write {}: {error}", path.display()),
            next: String::new(),
            retryable: true,
        })?;
    }
    Ok(())
}

fn write_prompt(ctx: &RunContext, request: &TurnRequest) -> Result<(), Fault> {
    let folder = ctx.dirs.prompts();
    make_dir(&folder)?;
    let path = folder.join(format!("turn-{:04}-{}.md", request.turn, request.role));
    write_atomic(&path, request.prompt.as_bytes()).map_err(|error| Fault {
        code: "state_dir_unwritable".into(),
        detail: error.to_string(),
        next: String::new(),
        retryable: true,
    })
}

fn spec(
    ctx: &RunContext,
    kind: &AgentKind,
    mut request: TurnRequest,
    name: &str,
    plan_dir: Option<PathBuf>,
) -> Result<TurnSpec, Fault> {
    let (role, cwd) = (request.role, ctx.dirs.tree(name));
    if let Some(dir) = &plan_dir {
        request.context["plan_dir"] = dir.display().to_string().into();
    }
    let git_dir = ctx.mirror.tree_at(&cwd).git_dir;
    let tmp = ctx.dirs.tmp(name);
    make_dir(&ctx.dirs.transcripts())?;
    let network = ctx.network(role.as_str());
    let implementing = role == Role::Implementer;
    let mut roots = vec![tmp.clone()];
    if implementing {
        roots.extend([git_dir.clone(), ctx.mirror.path.join("objects")]);
    }
    roots.extend(plan_dir.clone());
    // Codex confines its own commands (corrections 3, 25) and must reach its home and its service itself.
    let wall = match kind {
        AgentKind::Codex { .. } => Wall::Open,
        AgentKind::Command { .. } | AgentKind::Offline { .. } => {
            walled(ctx, kind, name, implementing.then_some(git_dir), network, plan_dir.as_deref())
        }
    };
    let task = request.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let criteria = request.context["task"]["acceptance_criteria"].as_array().map_or(0, Vec::len);
    let ids: Vec<String> = (1..=criteria).map(|n| format!("C{n}")).collect();
    Ok(TurnSpec {
        run: ctx.run.clone(),
        schema: schema_for(role, &task, request.attempt, &ids),
        session_key: format!("{}/{}/{role}", ctx.run, if task.is_empty() { "-" } else { &task }),
        transcript: ctx.dirs.transcripts().join(format!("turn-{:04}-{role}.jsonl", request.turn)),
        scratch: ctx.dirs.scratch(name),
        request,
        cwd,
        plan_dir,
        tmp,
        writable_roots: roots,
        wall,
        env: ctx.environment(),
        danger: ctx.danger(),
        network,
    })
}

fn walled(
    ctx: &RunContext,
    kind: &AgentKind,
    name: &str,
    git_dir: Option<PathBuf>,
    network: bool,
    plan_dir: Option<&Path>,
) -> Wall {
    let program = match kind {
        AgentKind::Command { argv } => argv.iter().map(PathBuf::from).filter(|p| p.is_absolute()).collect(),
        AgentKind::Offline { .. } | AgentKind::Codex { .. } => vec![ctx.config.own_binary.clone()],
    };
    let mut wall = ctx.wall(name, git_dir, network, program);
    if let (Wall::Confined(confined), Some(dir)) = (&mut wall, plan_dir) {
        confined.read_write.push(dir.to_owned());
    }
    wall
}

/// What the runtime finds itself: the tree after an implementer, the plan files after a planner.
async fn facts(
    ctx: &Arc<RunContext>,
    spec: &TurnSpec,
    result: TurnResult,
    plan_dir: Option<PathBuf>,
    at: Millis,
) -> Result<TurnEnded, Fault> {
    let tree = if spec.request.role == Role::Implementer { Some(inspect(ctx, spec, at).await?) } else { None };
    let (plan, plan_md) = match plan_dir {
        Some(dir) => (Some(read_plan(&dir.join("tasks.json"))), read_prose(&dir.join("plan.md"))),
        None => (None, None),
    };
    Ok(TurnEnded {
        result: result.text_report,
        tree,
        plan,
        plan_md,
        session: result.session,
        resumed: result.resumed,
        usage: result.usage,
        transcript: spec.transcript.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default(),
        agent: result.agent,
    })
}

/// Commits what the agent left, names the trial, and tells what the tree holds.
async fn inspect(ctx: &Arc<RunContext>, spec: &TurnSpec, at: Millis) -> Result<TreeFacts, Fault> {
    let base = oid(&spec.request.base)?;
    let task = spec.request.task.as_ref().map(ToString::to_string).unwrap_or_default();
    let (attempt, cwd, scratch) = (spec.request.attempt, spec.cwd.clone(), spec.scratch.clone());
    let ctx = ctx.clone();
    let guard = ctx.repo_lock.clone().lock_owned().await;
    blocking(move || {
        let _guard = guard;
        let tree = ctx.mirror.tree_at(&cwd);
        let found = ctx.mirror.inspect(&tree, &base, &scratch)?;
        let message = format!("{task}: work of attempt {attempt}\n");
        let leftover = ctx.mirror.commit_leftover(&tree, &base, &message, &ctx.who, at.0 / 1000, &scratch)?;
        let trial = leftover.clone().unwrap_or_else(|| found.head.clone());
        let mut problems: Vec<String> = found.findings.iter().map(|f| f.code().to_owned()).collect();
        if !found.head_descends_from_base {
            problems.push("not_descended".into());
        }
        let empty = found.changed.is_empty();
        let mut commits: Vec<String> = found.commits.iter().map(|c| c.id.to_string()).collect();
        commits.extend(leftover.as_ref().map(ToString::to_string));
        if !empty {
            ctx.mirror.keep(ctx.run.as_str(), &format!("attempts/{task}/{attempt}"), &trial)?;
        }
        Ok(TreeFacts {
            head: found.head.to_string(),
            commits,
            trial: if empty { String::new() } else { trial.to_string() },
            trial_tree: found.files.to_string(),
            changed: found.changed.iter().map(|c| c.path.clone()).collect(),
            leftover: leftover.is_some(),
            problems,
        })
    })
    .await
    .map_err(|error: crate::git::GitError| git_fault(&error))
}

fn read_plan(path: &Path) -> PlanFile {
    match read_capped(path) {
        Ok(None) => PlanFile::Missing,
        Ok(Some(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => PlanFile::Text(text),
            Err(error) => PlanFile::Unusable(format!("it is no UTF-8 at byte {}", error.utf8_error().valid_up_to())),
        },
        Err(why) => PlanFile::Unusable(why),
    }
}

fn read_prose(path: &Path) -> Option<String> {
    let bytes = read_capped(path).ok().flatten()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A regular file of bounded size; links and pipes that an agent left are not followed.
fn read_capped(path: &Path) -> Result<Option<Vec<u8>>, String> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(found) if !found.is_file() => Err("it is no regular file".into()),
        Ok(found) if found.len() > PLAN_MAX => {
            Err(format!("it has {} bytes, at most {PLAN_MAX} are read", found.len()))
        }
        Ok(_) => std::fs::read(path).map(Some).map_err(|error| error.to_string()),
    }
}
