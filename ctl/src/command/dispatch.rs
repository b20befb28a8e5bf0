//! From what was typed to the verb.

use harness_proto::api::answer::ControlAnswer;
use harness_proto::exit::Exit;

use super::{
    cancel, completions, config, create_launch, daemon, db, doctor, events, explain, land, launch, list, logs, pause,
    rebuild, recover, resume, retry, run, show, skip, start, status, stop, tasks, version, wait, welcome,
};
use crate::cli::{Cli, Verb};
use crate::context::Context;
use crate::failure::Failure;
use crate::render::Out;

/// Does what was typed.
pub(crate) async fn dispatch(cli: Cli, out: &Out) -> Result<Exit, Failure> {
    let Some(verb) = cli.verb else {
        return welcome::run(&Context::new(cli.global, out)?).await;
    };
    match verb {
        // These need no place and no daemon.
        Verb::Explain(args) => return explain::run(&args, out),
        Verb::Completions(args) => return completions::run(&args, out),
        _ => {}
    }
    let context = &Context::new(cli.global, out)?;
    match verb {
        Verb::CreateLaunch(args) => create_launch::run(context, args).await,
        Verb::Launch(args) => launch::run(context, args).await,
        Verb::Start(args) => start::run(context, &args).await,
        Verb::Run(args) => run::run(context, &args).await,
        Verb::Status(args) => status::run(context, &args).await,
        Verb::Stop(args) => stop::run(context, &args).await,
        Verb::List(args) => list::run(context, &args).await,
        Verb::Show(args) => show::run(context, &args).await,
        Verb::Events(args) => events::run(context, &args).await,
        Verb::Logs(args) => logs::run(context, &args).await,
        Verb::Wait(args) => wait::run(context, &args).await,
        Verb::Pause(args) => pause::run(context, &args).await,
        Verb::Resume(args) => resume::run(context, &args).await,
        Verb::Retry(args) => retry::run(context, &args).await,
        Verb::Skip(args) => skip::run(context, &args).await,
        Verb::Cancel(args) => cancel::run(context, &args).await,
        Verb::Land(args) => land::run(context, &args).await,
        Verb::Recover(args) => recover::run(context, &args).await,
        Verb::Rebuild(args) => rebuild::run(context, &args).await,
        Verb::Doctor(args) => doctor::run(context, &args).await,
        Verb::Tasks(verb) => tasks::run(context, &verb).await,
        Verb::Daemon(verb) => daemon::run(context, &verb).await,
        Verb::Db(verb) => db::run(context, &verb).await,
        Verb::Config(verb) => config::run(context, &verb),
        Verb::Version(_) => version::run(context).await,
        Verb::Explain(args) => explain::run(&args, out),
        Verb::Completions(args) => completions::run(&args, out),
    }
}

/// What a control verb prints: what happened, and the command that helps.
pub(crate) fn controlled(context: &Context<'_>, answer: &ControlAnswer) -> Result<Exit, Failure> {
    context.out.answer(answer, &answer.run.run_id, || {
        let next = if answer.run.next.is_empty() { String::new() } else { format!("\nnext: {}", answer.run.next) };
        format!("{}{next}", answer.note)
    })?;
    Ok(Exit::Success)
}
