//! `stop`: turns end, work is kept, nothing of the run lives afterwards (S4-011, ux.md section 5).

use clap::Args;
use harness_proto::api::answer::StopAnswer;
use harness_proto::api::request::Stop;
use harness_proto::exit::Exit;

use crate::cli::RunRef;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::clean;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    run: RunRef,
    /// Interrupt turns at once, without grace
    #[arg(long)]
    now: bool,
}

pub(crate) async fn run(context: &Context<'_>, args: &StopArgs) -> Result<Exit, Failure> {
    let target = context.target(&args.run)?;
    let answer: StopAnswer = context.client.post("stop", &target, &Stop { now: args.now }).await?;
    context.out.answer(&answer, &answer.run_id, || words(&answer))?;
    // Success is a promise: no process with our mark lives.
    Ok(if answer.living.is_empty() { Exit::Success } else { Exit::Unexpected })
}

fn words(answer: &StopAnswer) -> String {
    let mut text = format!(
        "run {} {} ({}): turns ended {}, killed {}",
        answer.run_id, answer.lifecycle, answer.terminal_reason, answer.ended, answer.killed
    );
    match answer.kept.as_slice() {
        [] => {}
        [one] => text.push_str(&format!("; work kept at {}", clean(one))),
        several => text.push_str(&format!(
            "; work kept at {} names: harnessctl recover --run {}",
            several.len(),
            answer.run_id
        )),
    }
    if answer.living.is_empty() {
        text.push_str("; nothing left running.\n");
    } else {
        let pids: Vec<String> = answer.living.iter().map(ToString::to_string).collect();
        text.push_str(&format!("; STILL RUNNING: {}\n", pids.join(" ")));
    }
    if answer.lifecycle == "stopped" {
        text.push_str(&format!("continue: harnessctl start {}\n", answer.run_id));
    }
    text
}
