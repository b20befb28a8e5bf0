//! `status`: a run, or all of them; stored facts, marked stale, when the daemon is down (S4-010, ux.md section 5).

use clap::Args;
use harness_proto::api::answer::RunList;
use harness_proto::api::view::RunView;
use harness_proto::error::Problem;
use harness_proto::exit::Exit;
use harness_proto::place::STATUS_FILE;
use jiff::Timestamp;

use crate::cli::RunRef;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::follow::{Follow, Step};
use crate::judge;
use crate::render;
use crate::repo;

/// The predecessor's reason for a run whose process is gone.
const MISSING: &str = "runtime_process_missing";

/// See the module.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    run: RunRef,
    /// Show it again whenever something happens
    #[arg(long, short)]
    pub(crate) watch: bool,
    /// Exit with 8 while it is pending, 7 when it needs you, 5 when it ended without everything accepted
    #[arg(long)]
    exit_code: bool,
}

pub(crate) async fn run(context: &Context<'_>, args: &StatusArgs) -> Result<Exit, Failure> {
    let shown = async {
        if args.watch {
            return watch(context, args).await;
        }
        if args.run.run.is_none() && args.run.repo.is_none() {
            return overview(context, args).await;
        }
        let view: RunView = context.client.get("status", &context.target(&args.run)?).await?;
        show(context, &view)?;
        Ok(if args.exit_code { judge::standing(&view) } else { Exit::Success })
    };
    match shown.await {
        Err(failure) if failure.is("DAEMON_DOWN") => stored(context, args, failure),
        // The predecessor's answer for a repository without a run.
        Err(failure) if failure.is("RUN_UNKNOWN") && args.run.repo.is_some() => idle(context, args),
        other => other,
    }
}

fn idle(context: &Context<'_>, args: &StatusArgs) -> Result<Exit, Failure> {
    let repo = repo::absolute(args.run.repo.as_deref())?;
    let answer = serde_json::json!({
        "schema": "harness.status/1",
        "status": "idle",
        "repo": repo,
        "runtime_path": format!("{repo}/harness-runtime.json"),
        "log_path": format!("{repo}/harness-runtime.log"),
    });
    context
        .out
        .answer(&answer, "", || format!("no run in {repo}\nnext: harnessctl create-launch --repo {repo} --help\n"))?;
    Ok(Exit::Success)
}

fn show(context: &Context<'_>, view: &RunView) -> Result<(), Failure> {
    context.out.answer(view, &view.run_id, || {
        let now = Timestamp::now();
        format!("{}{}", render::daemon_line(&view.daemon, now), render::run(view, context.out.style, now))
    })
}

/// Without a run: the daemon, the run of this folder's repository in full, the others in a line each.
async fn overview(context: &Context<'_>, args: &StatusArgs) -> Result<Exit, Failure> {
    let list: RunList = context.client.get("list", &Target::default().with("all", "true").with("limit", "20")).await?;
    let here = match context.target(&args.run) {
        Ok(target) if !context.out.json => context.client.get::<RunView>("status", &target).await.ok(),
        _ => None,
    };
    let ids: Vec<&str> = list.runs.iter().map(|r| r.run_id.as_str()).collect();
    context.out.answer(&list, &ids.join("\n"), || {
        let now = Timestamp::now();
        let mut text = render::daemon_line(&list.daemon, now);
        if let Some(run) = &here {
            text.push_str(&render::run(run, context.out.style, now));
        }
        let others: Vec<RunView> =
            list.runs.iter().filter(|r| here.as_ref().is_none_or(|h| h.run_id != r.run_id)).cloned().collect();
        if !others.is_empty() {
            text.push_str(&render::runs(&others, context.out.style, now));
        }
        if list.runs.is_empty() {
            text.push_str("no runs yet; next: harnessctl create-launch --help\n");
        }
        text
    })?;
    let codes = list.runs.iter().map(judge::standing);
    Ok(if args.exit_code { Exit::strongest(codes) } else { Exit::Success })
}

async fn watch(context: &Context<'_>, args: &StatusArgs) -> Result<Exit, Failure> {
    let target = context.target(&args.run)?;
    let mut view: RunView = context.client.get("status", &target).await?;
    let pinned = Target { run: view.run_id.clone(), ..Target::default() };
    let mut follow = Follow::new(&context.client, "events_stream", pinned.clone().with("since", view.seq.to_string()));
    loop {
        if context.out.json {
            context.out.line(&view)?;
        } else {
            if context.out.terminal {
                context.out.data("\x1b[H\x1b[2J")?;
            }
            show(context, &view)?;
        }
        if let Step::Ended = follow.next().await? {
            return Ok(if args.exit_code { judge::standing(&view) } else { Exit::Success });
        }
        view = context.client.get("status", &pinned).await?;
    }
}

/// The last facts that a daemon left in `status.json`; exit 3.
fn stored(context: &Context<'_>, args: &StatusArgs, down: Failure) -> Result<Exit, Failure> {
    let text = std::fs::read(context.state_dir.join(STATUS_FILE)).ok();
    let Some(mut list) = text.and_then(|bytes| serde_json::from_slice::<RunList>(&bytes).ok()) else {
        return Err(down);
    };
    list.daemon.alive = false;
    for run in &mut list.runs {
        run.daemon = list.daemon.clone();
        run.runtime_running = false;
        run.pid = None;
        run.pgid = None;
        process_missing(run);
    }
    let repo = args.run.repo.as_deref().map(|path| repo::absolute(Some(path))).transpose()?;
    let wanted = |run: &&RunView| match (&args.run.run, &repo) {
        (Some(id), _) => matches(&run.run_id, id),
        (None, Some(repo)) => run.repo == *repo || repo.starts_with(&format!("{}/", run.repo)),
        (None, None) => true,
    };
    let named = args.run.run.is_some() || repo.is_some();
    let found: Vec<RunView> = match args.run.run.as_deref() {
        Some("@last") => list.runs.first().cloned().into_iter().collect(),
        _ => list.runs.iter().filter(wanted).cloned().collect(),
    };
    let seen = list.runs.iter().map(|r| r.updated_at.clone()).max().unwrap_or_default();
    if named && found.is_empty() {
        return Err(down);
    }
    if context.out.json {
        let value = if named { serde_json::to_value(&found[0]) } else { serde_json::to_value(&list) };
        let mut value =
            value.map_err(|e| Problem::new("INTERNAL", "the answer cannot be written").why(e.to_string()))?;
        value["stale"] = true.into();
        context.out.object(&value)?;
        return Ok(Exit::Unreachable);
    }
    let now = Timestamp::now();
    let mut text = render::stale(&list.daemon, list.runs.len(), &seen, now);
    for run in &found {
        text.push_str(&if named { render::run(run, context.out.style, now) } else { render::brief_line(run) });
    }
    context.out.data(&text)?;
    context.out.note("next: harnessctl daemon start");
    Ok(Exit::Unreachable)
}

/// A record that says running without a process is the runtime's to recover, in the predecessor's words (S4-064).
fn process_missing(run: &mut RunView) {
    if run.status != "running" {
        return;
    }
    run.status = "recovery".into();
    run.terminal_reason = MISSING.into();
    if !run.recovery.is_object() {
        run.recovery = serde_json::json!({});
    }
    for (member, word) in [("status", "pending"), ("owner", "runtime"), ("reason", MISSING)] {
        run.recovery[member] = word.into();
    }
}

fn matches(id: &str, asked: &str) -> bool {
    id.starts_with(asked) || id.strip_prefix("run_").is_some_and(|tail| tail.starts_with(asked))
}
