//! The `command` agent: any program; a turn as JSON on stdin, a report on stdout. `offline` is the same with our own
//! binary.
//!
//! On stdout the program writes its report and nothing else, or `{"failure": {"kind", "message", "until"?}}` with a kind of
//! DESIGN 7 when it cannot do the work. Exit 0 in both cases; any other end is a crash. Sessions are not kept.

use std::ffi::OsString;
use std::time::Duration;

use harness_core::input::{TurnFailure, TurnUsage};
use harness_proto::ids::Millis;
use harness_proto::report::Report;
use harness_proto::vocab::FailureKind;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::answer;
use super::launch::Running;
use super::transcript::Transcript;
use super::turn::{OnProcess, StopSignal, TurnResult, TurnSpec, failure};
use super::watch::{Wake, Watch};
use crate::process::StdinMode;
use crate::redact::Redactor;

/// How long a program may take to end after TERM.
const GRACE: Duration = Duration::from_secs(5);

/// Runs one turn.
///
/// Cancel safety: a dropped future leaves no process.
pub(super) async fn run(
    argv: Vec<OsString>,
    name: &str,
    spec: &TurnSpec,
    stop: StopSignal,
    on_process: OnProcess<'_>,
) -> TurnResult {
    let mut watch = Watch::new(spec.request.limits, stop, false);
    let mut transcript = Transcript::open(&spec.transcript, Redactor::of_environment(&spec.env));
    let text_report = turn(argv, spec, &mut watch, &mut transcript, on_process).await;
    transcript.close();
    TurnResult {
        text_report,
        session: None,
        resumed: false,
        usage: TurnUsage { duration_ms: watch.elapsed_ms(), ..TurnUsage::default() },
        agent: name.to_owned(),
    }
}

async fn turn(
    argv: Vec<OsString>,
    spec: &TurnSpec,
    watch: &mut Watch,
    transcript: &mut Transcript,
    on_process: OnProcess<'_>,
) -> Result<Report, TurnFailure> {
    let asked = frame(spec).to_string().into_bytes();
    transcript.frame(watch.elapsed(), ">", &asked);
    let stdin = StdinMode::Bytes(asked);
    let mut running = Running::start(argv, &spec.cwd, stdin, spec, watch, on_process).await?;
    watch.taken_up();
    let mut text = Vec::new();
    let ended = tokio::select! {
        ended = collect(&mut running, &mut text) => Ok(ended),
        wake = watch.wake() => Err(wake),
    };
    transcript.frame(watch.elapsed(), "<", &text);
    match ended {
        Err(wake) => {
            let grace = if wake == Wake::StopNow { Duration::ZERO } else { GRACE };
            tokio::select! {
                () = running.end(grace) => {}
                () = watch.stop_now(), if wake != Wake::StopNow => running.end(Duration::ZERO).await,
            }
            Err(watch.failure(wake))
        }
        Ok(false) => {
            running.end(GRACE).await;
            Err(answer::too_large(text.len() as u64))
        }
        Ok(true) => match running.child.wait().await {
            Ok(exit) if exit.code == Some(0) => {
                drop(running.seal());
                judge(spec, &text, transcript.redactor())
            }
            Ok(_) | Err(_) => Err(running.post_mortem("without a report").await),
        },
    }
}

/// Reads standard output to its end and waits for the program; false when there is more than a report may be.
async fn collect(running: &mut Running, text: &mut Vec<u8>) -> bool {
    if let Some(stdout) = running.child.take_stdout() {
        // An error while reading a pipe is its end; the exit status says the rest.
        let cap = answer::REPORT_CAP as u64 + 1;
        drop(stdout.take(cap).read_to_end(text).await);
    }
    if text.len() > answer::REPORT_CAP {
        return false;
    }
    // Closing its output is not ending: the deadlines hold until it has.
    drop(running.child.wait().await);
    true
}

fn judge(spec: &TurnSpec, text: &[u8], redactor: &Redactor) -> Result<Report, TurnFailure> {
    let text = String::from_utf8_lossy(text);
    if let Some(told) = told_failure(&text, redactor) {
        return Err(told);
    }
    answer::read(spec.request.role, &text, redactor)
}

/// A failure in the program's own words.
fn told_failure(text: &str, redactor: &Redactor) -> Option<TurnFailure> {
    let value: Value = serde_json::from_str(text).ok()?;
    let told = value.as_object()?.get("failure")?;
    let kind = told.get("kind").and_then(Value::as_str).and_then(|word| word.parse().ok());
    let message = told.get("message").and_then(Value::as_str).unwrap_or("no reason was given");
    Some(TurnFailure {
        until: told.get("until").and_then(Value::as_i64).map(Millis),
        ..failure(kind.unwrap_or(FailureKind::Refused), redactor.text(message).chars().take(4_000).collect::<String>())
    })
}

/// What the program reads: `harness.turn/1`; members are only ever added.
fn frame(spec: &TurnSpec) -> Value {
    let request = &spec.request;
    let context = if request.context.is_object() { request.context.clone() } else { json!({}) };
    json!({
        "schema": "harness.turn/1",
        "run": spec.run,
        "turn": request.turn,
        "role": request.role,
        "kind": request.kind,
        "task_id": request.task.as_ref().map_or("", |task| task.as_str()),
        "attempt": request.attempt,
        "commit": request.commit,
        "base": request.base,
        "cwd": spec.cwd.to_string_lossy(),
        "plan_dir": spec.plan_dir.as_ref().map(|dir| dir.to_string_lossy()),
        "tmp": spec.tmp.to_string_lossy(),
        "prompt": spec.filled(&request.prompt),
        "context": context,
        "repair": request.repair,
        "report_schema": spec.schema,
        "limits": { "max_s": request.limits.max_s },
    })
}
