//! The loop of one run: one input at a time, stored before anything is done.
//!
//! Invariant: an effect runs only while its row is pending in the store. Invariant: a result is fed back exactly once; a commit that
//! fails is tried again with the state as the store has it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use harness_core::effect::{Class, EffectKind};
use harness_core::input::{Command, Input, InputKind, Outcome, PlanFile};
use harness_core::state::RunState;
use harness_core::step::Step;
use harness_core::supervisor::step;
use harness_proto::ids::{EffectId, Fence, RunId};
use harness_proto::vocab::{Lifecycle, Role};
use tokio::sync::{mpsc, oneshot};

use super::context::RunContext;
use super::effects::{self, Inputs};
use super::projector::Projector;
use crate::agent::StopSignal;
use crate::clock;
use crate::store::{CommitError, Queue as _, Store};
use crate::tasks::Tasks;

/// How often files that a human may edit are looked at.
const EDITS_EVERY: Duration = Duration::from_secs(2);
/// Longest delay of a projection after a step.
const PROJECT_AFTER: Duration = Duration::from_millis(200);
/// Longest sleep before the wall clock is looked at again, so that a jump or a sleep of the machine delays nothing for long.
const RECHECK: Duration = Duration::from_secs(20);

/// A message to a driver.
pub(super) enum Message {
    /// Something happened or is asked for; answered when it is stored and projected.
    Input(InputKind, oneshot::Sender<()>),
    /// A stop or cancel: answered when nothing of the run is in flight.
    Halt(InputKind, oneshot::Sender<()>),
}

/// Why a driver ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing is left to do; the lease was given back.
    AtRest,
    /// Another driver holds the run.
    Fenced,
    /// The daemon ends; the lease stays and the next daemon goes on.
    ShutDown,
    /// The store contradicts the state: a bug; this run is left alone until `doctor` looked at it.
    Broken,
}

struct Running {
    stop: StopSignal,
}

/// Both ends of the channel on which effects answer.
type Results = (mpsc::UnboundedSender<(EffectId, Outcome)>, mpsc::UnboundedReceiver<(EffectId, Outcome)>);

pub(super) struct Driver {
    pub(super) ctx: Arc<RunContext>,
    pub(super) store: Store,
    pub(super) tasks: Tasks,
    pub(super) state: RunState,
    pub(super) fence: Fence,
    pub(super) inputs: i64,
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) projector: Projector,
    results: Results,
    running: HashMap<EffectId, Running>,
    halted: Vec<oneshot::Sender<()>>,
    project_at: Option<tokio::time::Instant>,
}

impl Driver {
    #[expect(clippy::too_many_arguments, reason = "the parts of one driver, named by the one caller")]
    pub(super) fn new(
        ctx: Arc<RunContext>,
        store: Store,
        tasks: Tasks,
        state: RunState,
        fence: Fence,
        inputs: i64,
        inbox: mpsc::Receiver<Message>,
        projector: Projector,
    ) -> Self {
        Self {
            ctx,
            store,
            tasks,
            state,
            fence,
            inputs,
            inbox,
            projector,
            results: mpsc::unbounded_channel(),
            running: HashMap::new(),
            halted: Vec::new(),
            project_at: None,
        }
    }

    fn run(&self) -> &RunId {
        &self.ctx.run
    }

    /// Drives the run until nothing is left to do, the lease is lost, or the daemon ends.
    pub(super) async fn drive(mut self) -> End {
        let end = match self.begin().await {
            Ok(()) => self.turn_over().await,
            Err(end) => end,
        };
        self.end(end).await;
        end
    }

    /// Takes the run over: what a dead driver left is repeated or reported lost.
    async fn begin(&mut self) -> Result<(), End> {
        // What is pending before this driver did anything was in a dead driver's hands.
        let left = self.state.pending.values().filter(|effect| effect.kind.class() == Class::Lost);
        let lost: Vec<EffectId> = left.map(|effect| effect.id).collect();
        // An edit that was made while nobody drove comes first: what is asked for next follows it.
        if let Some(bytes) = self.projector.edits().plan {
            self.take_edit(bytes).await?;
        }
        self.apply(InputKind::Claimed).await?;
        for id in lost {
            self.apply(InputKind::EffectLost { id }).await?;
        }
        self.launch_pending();
        Ok(())
    }

    async fn turn_over(&mut self) -> End {
        let stop = self.tasks.stop().clone();
        let mut edits = tokio::time::interval(EDITS_EVERY);
        edits.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.at_rest() {
                return End::AtRest;
            }
            let deadline = self.sleep_until_deadline();
            let project = self.project_at;
            // Every branch is cancel safe: channels, timers and a token; nothing is half done when another branch wins.
            let done = tokio::select! {
                biased;
                () = stop.cancelled() => return End::ShutDown,
                Some((id, outcome)) = self.results.1.recv() => self.result(id, outcome).await,
                message = self.inbox.recv() => match message {
                    Some(message) => self.message(message).await,
                    None => return End::ShutDown,
                },
                () = tokio::time::sleep_until(project.unwrap_or_else(tokio::time::Instant::now)), if project.is_some() => {
                    self.project().await
                }
                due = deadline => if due { self.apply_and_launch(InputKind::Tick).await } else { Ok(()) },
                _ = edits.tick() => self.look_for_edits().await,
            };
            if let Err(end) = done {
                return end;
            }
        }
    }

    /// Sleeps to the next deadline of the state, at most [`RECHECK`]; true when it passed.
    fn sleep_until_deadline(&self) -> impl Future<Output = bool> + use<> {
        let deadline = self.state.next_deadline();
        async move {
            let Some(deadline) = deadline else { return std::future::pending().await };
            let left = deadline.0.saturating_sub(clock::now().0).max(0);
            let left = Duration::from_millis(left.unsigned_abs());
            tokio::time::sleep(left.min(RECHECK)).await;
            deadline <= clock::now()
        }
    }

    fn at_rest(&self) -> bool {
        let head = &self.state.head;
        let over = match head.lifecycle {
            Lifecycle::Running | Lifecycle::Queued => false,
            // A landing that waits for its time waits in the queue, so that the next run of the repository gets its turn.
            Lifecycle::Completed => head.landing.retry_at.is_none_or(|at| at > clock::now()),
            Lifecycle::Registered | Lifecycle::Stopped | Lifecycle::Failed | Lifecycle::Cancelled => true,
        };
        over && self.state.pending.is_empty() && self.running.is_empty()
    }

    async fn result(&mut self, id: EffectId, outcome: Outcome) -> Result<(), End> {
        self.running.remove(&id);
        let turn = matches!(outcome, Outcome::TurnEnded(_));
        self.apply_and_launch(InputKind::Effect { id, outcome: Box::new(outcome) }).await?;
        if turn { self.project().await } else { Ok(()) }
    }

    async fn message(&mut self, message: Message) -> Result<(), End> {
        match message {
            Message::Input(kind, reply) => {
                if matches!(kind, InputKind::Command(Command::Start(_))) {
                    // Who mends the plan and starts means the mended plan.
                    self.look_for_edits().await?;
                }
                self.apply_and_launch(kind).await?;
                self.project().await?;
                // The asker may be gone; what it asked for is stored all the same.
                reply.send(()).ok();
            }
            Message::Halt(kind, reply) => {
                self.apply_and_launch(kind).await?;
                self.halted.push(reply);
            }
        }
        Ok(())
    }

    async fn apply_and_launch(&mut self, kind: InputKind) -> Result<(), End> {
        self.apply(kind).await?;
        self.launch_pending();
        Ok(())
    }

    /// Applies one input and stores the step. A store that cannot write is waited for: the input is not lost.
    async fn apply(&mut self, kind: InputKind) -> Result<(), End> {
        let input = Input { at: clock::now(), kind };
        let mut wait = Duration::from_millis(100);
        loop {
            let result = step(&mut self.state, &input, &self.ctx.policy);
            if result == Step::default() {
                return Ok(());
            }
            self.check(&result);
            match self.store.commit_step(self.run(), self.fence, Some(&input), &result, &self.state).await {
                Ok(_) => {
                    self.inputs += 1;
                    self.stored(&result);
                    return Ok(());
                }
                Err(CommitError::Fenced { .. }) => return Err(End::Fenced),
                Err(error @ (CommitError::SeqGap { .. } | CommitError::Misfit(_) | CommitError::Driven)) => {
                    tracing::error!(run = %self.run(), %error, "BUG: a step does not fit the store");
                    return Err(End::Broken);
                }
                Err(CommitError::Store(error)) => {
                    tracing::warn!(run = %self.run(), code = error.code(), %error, "a step could not be stored; trying again");
                }
            }
            let known = self.inputs;
            self.reload(&mut wait).await?;
            if self.inputs > known {
                // The write that reported a failure was stored after all.
                self.project_at = Some(tokio::time::Instant::now());
                return Ok(());
            }
        }
    }

    /// Loads the state as the store has it, waiting until it can be read.
    async fn reload(&mut self, wait: &mut Duration) -> Result<(), End> {
        let stop = self.tasks.stop().clone();
        loop {
            // Cancel safe: a timer and a token.
            tokio::select! {
                () = stop.cancelled() => return Err(End::ShutDown),
                () = tokio::time::sleep(*wait) => {}
            }
            *wait = (*wait * 2).min(Duration::from_secs(30));
            match self.store.load(self.run()).await {
                Ok(loaded) if loaded.fence == self.fence => {
                    self.state = loaded.state;
                    self.inputs = loaded.inputs;
                    return Ok(());
                }
                Ok(_) => return Err(End::Fenced),
                Err(error) => tracing::warn!(run = %self.run(), %error, "the run cannot be read; trying again"),
            }
        }
    }

    /// The independent checker, after every step of a debug build (corrections 42).
    fn check(&self, result: &Step) {
        if cfg!(debug_assertions) {
            let findings = harness_core::audit::audit(&self.state, &self.ctx.policy);
            if !findings.is_empty() {
                tracing::error!(run = %self.run(), ?findings, events = ?result.events, "BUG: the state contradicts itself");
            }
        }
    }

    /// After a commit: interrupts, and the files that show it.
    fn stored(&mut self, result: &Step) {
        for cancel in &result.cancel {
            if let Some(running) = self.running.get(&cancel.effect) {
                running.stop.graceful.cancel();
                if cancel.now {
                    running.stop.now.cancel();
                }
            }
        }
        self.projector.take(result);
        let due = tokio::time::Instant::now() + PROJECT_AFTER;
        self.project_at = Some(self.project_at.map_or(due, |at| at.min(due)));
    }

    /// Starts every pending effect that is not running.
    fn launch_pending(&mut self) {
        let waiting: Vec<_> =
            self.state.pending.values().filter(|effect| !self.running.contains_key(&effect.id)).cloned().collect();
        for effect in waiting {
            let stop = StopSignal::default();
            let inputs = self.inputs_of(&effect.kind);
            let (ctx, results, id) = (self.ctx.clone(), self.results.0.clone(), effect.id);
            self.running.insert(id, Running { stop: stop.clone() });
            crate::failpoint::hit("runtime.effect.before");
            self.tasks.spawn("effect", async move {
                let outcome = effects::carry_out(ctx, effect, inputs, stop).await;
                crate::failpoint::hit("runtime.effect.after");
                // The driver is gone when the daemon ends; the next one looks for itself.
                drop(results.send((id, outcome)));
            });
        }
    }

    fn inputs_of(&self, kind: &EffectKind) -> Inputs {
        let mut inputs = Inputs { target_branch: self.state.head.target_branch.clone(), ..Inputs::default() };
        if let EffectKind::RunTurn(request) = kind
            && request.role == Role::Planner
        {
            inputs.plan = Some(self.projector.plan_files(&self.state));
            inputs.readable = self.projector.readable();
        }
        inputs
    }

    /// Writes the files; what a human edited meanwhile is taken in first.
    async fn project(&mut self) -> Result<(), End> {
        self.project_at = None;
        let edited = self.projector.flush(&self.state).await;
        if let Some(bytes) = edited {
            self.take_edit(bytes).await?;
            self.launch_pending();
            self.projector.flush(&self.state).await;
        }
        Ok(())
    }

    async fn look_for_edits(&mut self) -> Result<(), End> {
        let edits = self.projector.edits();
        if edits.launch {
            self.apply_and_launch(InputKind::LaunchEdited).await?;
        }
        if let Some(bytes) = edits.plan {
            self.take_edit(bytes).await?;
            self.launch_pending();
            return self.project().await;
        }
        Ok(())
    }

    async fn take_edit(&mut self, bytes: Vec<u8>) -> Result<(), End> {
        let plan = match String::from_utf8(bytes.clone()) {
            Ok(text) => PlanFile::Text(text),
            Err(_) => PlanFile::Unusable("it is no UTF-8".into()),
        };
        let revision = self.state.head.plan_revision;
        let base = self.projector.last_plan();
        self.apply(InputKind::PlanEdited { plan, base }).await?;
        self.projector.edit_taken(&bytes, self.state.head.plan_revision > revision);
        Ok(())
    }

    async fn end(mut self, end: End) {
        if end == End::AtRest {
            self.projector.rest(&self.state).await;
            if let Err(error) = self.store.release(&self.ctx.run, self.fence, clock::now()).await {
                tracing::warn!(run = %self.ctx.run, %error, "the lease could not be given back");
            }
        } else {
            for running in self.running.values() {
                running.stop.graceful.cancel();
                running.stop.now.cancel();
            }
            self.ctx.agents.close_run(&self.ctx.run).await;
        }
        for reply in self.halted.drain(..) {
            reply.send(()).ok();
        }
        tracing::info!(run = %self.ctx.run, ?end, "the driver ended");
    }
}
