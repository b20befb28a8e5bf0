//! One turn on an app-server, from a kept or new process to its end.

use std::time::Duration;

use harness_core::input::{TurnFailure, TurnUsage};
use harness_proto::report::Report;
use harness_proto::vocab::FailureKind;
use serde_json::json;
use tokio::time::timeout;

use super::connection::Incoming;
use super::message::Message;
use super::outcome;
use super::progress::{End, Progress, Step};
use super::session::Session;
use crate::agent::transcript::Transcript;
use crate::agent::turn::{OnProcess, StopSignal, TurnResult, TurnSpec};
use crate::agent::watch::{Wake, Watch};
use crate::redact::Redactor;

/// How long an interrupted turn may take to say that it ended; measured: 15 ms.
const INTERRUPT_GRACE: Duration = Duration::from_secs(5);

/// How the frames of a turn came to an end.
enum Close {
    /// The agent said so.
    Ended(End),
    /// The agent refused to begin, or its process ended.
    Failed(TurnFailure),
    /// It had to end.
    Woken(Wake),
}

/// Runs one turn; `kept` is the process of an earlier turn of this key. Gives the process back when it can take another.
///
/// Cancel safety: a dropped future kills the process.
pub(in crate::agent) async fn run(
    program: &str,
    spec: &TurnSpec,
    stop: StopSignal,
    kept: Option<Session>,
    on_process: OnProcess<'_>,
) -> (TurnResult, Option<Session>) {
    let mut watch = Watch::new(spec.request.limits, stop, true);
    let mut log = Transcript::open(&spec.transcript, Redactor::of_environment(&spec.env));
    let mut result = TurnResult {
        text_report: Err(watch.failure(Wake::Stop)),
        session: spec.request.session.clone(),
        resumed: false,
        usage: TurnUsage::default(),
        agent: "codex".to_owned(),
    };
    let session = match acquire(program, spec, kept, &mut watch, &mut log, on_process).await {
        Ok(session) => Box::pin(turn(session, spec, &mut watch, &mut log, &mut result)).await,
        Err(failed) => {
            result.text_report = Err(failed);
            None
        }
    };
    result.usage.duration_ms = watch.elapsed_ms();
    log.close();
    (result, session)
}

async fn acquire(
    program: &str,
    spec: &TurnSpec,
    kept: Option<Session>,
    watch: &mut Watch,
    log: &mut Transcript,
    on_process: OnProcess<'_>,
) -> Result<Session, TurnFailure> {
    if let Some(mut session) = kept {
        if session.usable(program, spec, watch, log).await {
            return Ok(session);
        }
        session.close().await;
    }
    Box::pin(Session::start(program, spec, watch, log, on_process)).await
}

/// Opens the thread, runs the turn, and decides what becomes of the process.
async fn turn(
    mut session: Session,
    spec: &TurnSpec,
    watch: &mut Watch,
    log: &mut Transcript,
    result: &mut TurnResult,
) -> Option<Session> {
    result.agent.clone_from(&session.agent);
    match session.open_thread(spec, watch, log).await {
        Ok(resumed) => result.resumed = resumed,
        Err(failed) => {
            let interrupted = failed.kind == FailureKind::Interrupted;
            result.text_report = Err(failed);
            if interrupted {
                session.kill().await
            } else {
                session.close().await
            }
            return None;
        }
    }
    let thread = session.thread.clone().unwrap_or_default();
    result.session = Some(thread.clone());
    let mut progress = Progress::new(thread, session.finished(), session.total);
    let close = follow(&mut session, spec, result.resumed, &mut progress, watch, log).await;
    let (report, fate) = settle(close, &mut session, spec, &mut progress, watch, log, result).await;
    result.usage = progress.meter.turn_usage(watch.elapsed_ms());
    let keep = fate == Fate::Keep
        && report
            .as_ref()
            .err()
            .is_none_or(|failed| matches!(failed.kind, FailureKind::InvalidReport | FailureKind::NoReport));
    result.text_report = report;
    if keep {
        session.finish(progress.id.take(), progress.meter.total());
        return Some(session);
    }
    if fate == Fate::Kill {
        session.kill().await
    } else {
        session.close().await
    }
    None
}

/// What becomes of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Keep,
    Close,
    Kill,
}

async fn settle(
    close: Close,
    session: &mut Session,
    spec: &TurnSpec,
    progress: &mut Progress,
    watch: &mut Watch,
    log: &mut Transcript,
    result: &mut TurnResult,
) -> (Result<Report, TurnFailure>, Fate) {
    let role = spec.request.role;
    match close {
        Close::Ended(end) => {
            if outcome::thread_is_full(&end) {
                result.session = None;
            }
            (outcome::judge(role, &end, progress, log.redactor()), Fate::Keep)
        }
        Close::Failed(failed) => (Err(failed), Fate::Close),
        Close::Woken(wake) => {
            // A command that the turn had started goes on after an interrupt: only the end of the process ends it.
            match interrupt(session, progress, wake, watch, log).await {
                // It was done before the interrupt reached it: work that is finished counts.
                Some(end) if end.status == "completed" => {
                    let judged = outcome::judge(role, &end, progress, log.redactor());
                    (judged.map_err(|_| watch.failure(wake)), Fate::Close)
                }
                Some(_) => (Err(watch.failure(wake)), Fate::Close),
                None => (Err(watch.failure(wake)), Fate::Kill),
            }
        }
    }
}

/// Starts the turn and follows it.
async fn follow(
    session: &mut Session,
    spec: &TurnSpec,
    resumed: bool,
    progress: &mut Progress,
    watch: &mut Watch,
    log: &mut Transcript,
) -> Close {
    let mut prompt = spec.filled(&spec.request.prompt);
    if spec.request.session.is_some() && !resumed && !spec.request.handover.is_empty() {
        prompt = format!("{}\n\n{prompt}", spec.filled(&spec.request.handover));
    }
    let params = json!({
        "threadId": session.thread,
        "input": [{"type": "text", "text": prompt}],
        "outputSchema": spec.schema,
        "cwd": spec.cwd.to_string_lossy(),
        "approvalPolicy": "never",
        "sandboxPolicy": session.sandbox_policy(spec),
    });
    let asked = session.connection.request("turn/start", &params, watch, log);
    loop {
        let incoming = tokio::select! {
            incoming = session.connection.next(watch, log) => incoming,
            wake = watch.wake() => return Close::Woken(wake),
        };
        match incoming {
            Incoming::Message(Message::Response { id, result }) if id == asked => match result {
                Ok(result) => {
                    progress.acknowledged(&result);
                    watch.taken_up();
                }
                Err(error) => {
                    return Close::Failed(outcome::refused("turn/start", &error, log.redactor()));
                }
            },
            other => match absorb(session, progress, other, watch, log).await {
                Ok(Step::Goes) => {}
                Ok(Step::Began) => watch.taken_up(),
                Ok(Step::Ended(end)) => return Close::Ended(end),
                Err(failed) => return Close::Failed(failed),
            },
        }
        let ceiling = watch.token_ceiling();
        if ceiling.is_some_and(|ceiling| progress.meter.used() > ceiling) {
            return Close::Woken(Wake::TooManyTokens);
        }
    }
}

/// Takes in one frame of a running turn.
async fn absorb(
    session: &mut Session,
    progress: &mut Progress,
    incoming: Incoming,
    watch: &mut Watch,
    log: &mut Transcript,
) -> Result<Step, TurnFailure> {
    match incoming {
        Incoming::End => {
            let running = &mut session.connection.running;
            return Err(running.post_mortem("in the middle of the turn").await);
        }
        Incoming::Dropped(bytes) => {
            progress.dropped = progress.dropped.max(bytes);
            watch.sign_of_life();
        }
        Incoming::Message(Message::Notification { method, params }) => {
            watch.sign_of_life();
            return Ok(progress.notification(&method, &params));
        }
        Incoming::Message(Message::Request { id, method }) => {
            watch.sign_of_life();
            session.connection.refuse(&id, &method, watch, log);
        }
        // A late answer to an earlier request; noise is no sign of life.
        Incoming::Message(Message::Response { .. } | Message::Noise) => {}
    }
    Ok(Step::Goes)
}

/// Asks the agent to end its turn; none when it did not say so in time.
async fn interrupt(
    session: &mut Session,
    progress: &mut Progress,
    wake: Wake,
    watch: &mut Watch,
    log: &mut Transcript,
) -> Option<End> {
    if wake == Wake::StopNow {
        return None;
    }
    let turn = progress.id.clone()?;
    let params = json!({"threadId": session.thread, "turnId": turn});
    session.connection.request("turn/interrupt", &params, watch, log);
    let ending = async {
        loop {
            let incoming = tokio::select! {
                incoming = session.connection.next(watch, log) => incoming,
                () = watch.stop_now() => return None,
            };
            match absorb(session, progress, incoming, watch, log).await {
                Ok(Step::Ended(end)) => return Some(end),
                Ok(Step::Goes | Step::Began) => {}
                Err(_) => return None,
            }
        }
    };
    timeout(INTERRUPT_GRACE, ending).await.ok().flatten()
}
