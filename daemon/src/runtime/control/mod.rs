//! The runtime behind the API: every verb, each in a module of its own; here only the table.

mod doctor;
mod kept;
mod launch;
mod logs;
mod problem;
mod start;

use harness_core::input::{Command, InputKind};
use harness_proto::api::answer::{
    ControlAnswer, CreateLaunchAnswer, DaemonStopAnswer, DaemonView, DbCheckAnswer, DoctorAnswer, EventPage, LogPage,
    PlanCheckAnswer, RebuildAnswer, RecoverAnswer, RunList, StartAnswer, StopAnswer, TaskAnswer,
};
use harness_proto::api::request::{CreateLaunch, ListQuery, LogsQuery, Recover, Start};
use harness_proto::api::view::{EventView, RunView};
use harness_proto::error::Problem;
use harness_proto::ids::{RunId, Seq, TaskId};
use harness_proto::vocab::{Lifecycle, TaskStatus};
use tokio::sync::broadcast;

pub(super) use self::problem::{git_problem, store_problem};
use super::registry::Runtime;
use crate::api::{Answer, Control, Notice, Recorded, Selector, TaskVerb};
use crate::process;

impl Control for Runtime {
    fn daemon_status(&self) -> Answer<'_, DaemonView> {
        Box::pin(async { Ok(self.daemon_view()) })
    }

    fn daemon_stop(&self) -> Answer<'_, DaemonStopAnswer> {
        Box::pin(async {
            let continues = self.driven().iter().map(ToString::to_string).collect();
            self.inner.going_down.notify_one();
            Ok(DaemonStopAnswer { schema: "harness.daemon-stop/1".into(), pid: self.inner.daemon.pid, continues })
        })
    }

    fn doctor(&self, repo: Option<String>) -> Answer<'_, DoctorAnswer> {
        Box::pin(self.examine(repo))
    }

    fn db_check(&self) -> Answer<'_, DbCheckAnswer> {
        Box::pin(async {
            let report = self.inner.store.check().await.map_err(|e| store_problem(&e))?;
            let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
            Ok(DbCheckAnswer { schema: "harness.db-check/1".into(), ok: problems.is_empty(), problems })
        })
    }

    fn tasks_validate(&self, bytes: Vec<u8>) -> Answer<'_, PlanCheckAnswer> {
        Box::pin(async move { Ok(launch::check_plan(&bytes)) })
    }

    fn create_launch(&self, body: CreateLaunch, request: Option<String>) -> Answer<'_, CreateLaunchAnswer> {
        Box::pin(self.register_run(body, request))
    }

    fn list(&self, query: ListQuery) -> Answer<'_, RunList> {
        Box::pin(self.list_runs(query))
    }

    fn resolve(&self, selector: Selector) -> Answer<'_, RunId> {
        Box::pin(self.find(selector))
    }

    fn status(&self, run: RunId) -> Answer<'_, RunView> {
        Box::pin(async move { self.view(&run).await })
    }

    fn show_task(&self, run: RunId, task: String) -> Answer<'_, TaskAnswer> {
        Box::pin(self.task_in_full(run, task))
    }

    fn events_since(&self, run: RunId, since: i64, limit: u32) -> Answer<'_, EventPage> {
        Box::pin(async move {
            // The end is looked up first: an event that comes in between is in the page, or the stream reads on.
            let row = self.row(&run).await?;
            let limit = if limit == 0 { 1000 } else { limit };
            let events = self.inner.store.events(&run, Seq(since), limit).await.map_err(|e| store_problem(&e))?;
            let last = events.last().map_or(since, |e| e.seq.0);
            let over = matches!(
                row.lifecycle,
                Lifecycle::Completed | Lifecycle::Failed | Lifecycle::Cancelled | Lifecycle::Stopped
            );
            Ok(EventPage {
                schema: "harness.events/1".into(),
                run_id: run.to_string(),
                events: events.iter().map(|event| EventView::of(&run, event)).collect(),
                last,
                ended: over && last >= row.seq.0,
            })
        })
    }

    fn logs(&self, run: RunId, query: LogsQuery) -> Answer<'_, LogPage> {
        Box::pin(self.read_logs(run, query))
    }

    fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.inner.notices.subscribe()
    }

    fn start(&self, run: RunId, body: Start) -> Answer<'_, StartAnswer> {
        Box::pin(self.start_run(run, body))
    }

    fn stop(&self, run: RunId, now: bool) -> Answer<'_, StopAnswer> {
        Box::pin(self.stop_run(run, now))
    }

    fn pause(&self, run: RunId) -> Answer<'_, ControlAnswer> {
        Box::pin(async move {
            let row = self.row(&run).await?;
            if !matches!(row.lifecycle, Lifecycle::Running | Lifecycle::Queued) {
                return Err(refused(&run, row.lifecycle, "paused"));
            }
            self.control(&run, InputKind::Command(Command::Pause), false).await?;
            self.answer("pause", "no new turn begins; live turns end", &run).await
        })
    }

    fn cancel(&self, run: RunId) -> Answer<'_, ControlAnswer> {
        Box::pin(async move {
            let row = self.row(&run).await?;
            if row.lifecycle == Lifecycle::Completed {
                return Err(refused(&run, row.lifecycle, "cancelled"));
            }
            self.control(&run, InputKind::Command(Command::Cancel), true).await?;
            self.answer("cancel", "cancelled; kept work stays under refs/harness", &run).await
        })
    }

    fn land(&self, run: RunId) -> Answer<'_, ControlAnswer> {
        Box::pin(async move {
            let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
            if loaded.state.head.unlanded.is_empty() {
                return self.answer("land", "nothing is waiting to be landed", &run).await;
            }
            self.control(&run, InputKind::Command(Command::Land), false).await?;
            self.answer("land", "a landing was asked for", &run).await
        })
    }

    fn task(&self, run: RunId, task: String, verb: TaskVerb) -> Answer<'_, ControlAnswer> {
        Box::pin(self.task_verb(run, task, verb))
    }

    fn recover(&self, run: RunId, body: Recover) -> Answer<'_, RecoverAnswer> {
        Box::pin(self.recover_work(run, body))
    }

    fn rebuild(&self, run: RunId) -> Answer<'_, RebuildAnswer> {
        Box::pin(self.rebuild_files(run))
    }

    fn recall(&self, request: String) -> Answer<'_, Option<Recorded>> {
        Box::pin(self.recall_answer(request))
    }

    fn remember(&self, request: String, recorded: Recorded) -> Answer<'_, ()> {
        Box::pin(self.remember_answer(request, recorded))
    }
}

/// A run that is not in a state where this can be done.
fn refused(run: &RunId, lifecycle: Lifecycle, verb: &str) -> Problem {
    Problem::new("STATE_REFUSED", format!("{run} cannot be {verb}: it is {lifecycle}"))
        .why("only a run that is not over can be controlled")
        .next(format!("harnessctl status {run}"))
}

impl Runtime {
    async fn answer(&self, verb: &str, note: &str, run: &RunId) -> Result<ControlAnswer, Problem> {
        Ok(ControlAnswer { schema: format!("harness.{verb}/1"), note: note.into(), run: self.view(run).await? })
    }

    async fn stop_run(&self, run: RunId, now: bool) -> Result<StopAnswer, Problem> {
        let before = self.row(&run).await?;
        let turns = process::processes_of_run(run.as_str()).len();
        if before.lifecycle != Lifecycle::Stopped {
            self.control(&run, InputKind::Command(Command::Stop { now }), true).await?;
        }
        self.inner.agents.close_run(&run).await;
        let view = self.view(&run).await?;
        let living: Vec<i64> = process::processes_of_run(run.as_str()).iter().map(|p| i64::from(p.pid)).collect();
        let kept = self.kept_names(&run).await.unwrap_or_default();
        let asked = u32::try_from(turns).unwrap_or(u32::MAX);
        Ok(StopAnswer {
            schema: "harness.stop/1".into(),
            status: "terminal".into(),
            runtime_path: view.runtime_path,
            pid: self.inner.daemon.pid,
            pgid: self.inner.daemon.pid,
            run_id: run.to_string(),
            lifecycle: view.lifecycle,
            terminal_reason: view.terminal_reason,
            ended: if now { 0 } else { asked },
            killed: if now { asked } else { 0 },
            kept,
            living,
        })
    }

    async fn task_verb(&self, run: RunId, task: String, verb: TaskVerb) -> Result<ControlAnswer, Problem> {
        let unknown = || {
            Problem::new("TASK_UNKNOWN", format!("{run} has no task `{}`", task.chars().take(80).collect::<String>()))
                .why("the plan names the tasks")
                .next(format!("harnessctl status {run}"))
        };
        let id = TaskId::parse(&task).map_err(|_| unknown())?;
        let found = self.inner.store.task(&run, &id).await.map_err(|e| store_problem(&e))?.ok_or_else(unknown)?;
        let wrong = |wanted: &str| {
            Problem::new("STATE_REFUSED", format!("{id} is {}, {wanted}", found.status))
                .next(format!("harnessctl show {id} --run {run}"))
        };
        let (command, name, note) = match verb {
            TaskVerb::Retry(note) => {
                if !matches!(found.status, TaskStatus::Failed | TaskStatus::Blocked | TaskStatus::TimedOut) {
                    return Err(wrong("only a failed, blocked or timed-out task can be tried again"));
                }
                (Command::Retry { task: id.clone(), note }, "retry", format!("{id} is tried again"))
            }
            TaskVerb::Skip(reason) if !found.status.is_closed() => {
                (Command::Skip { task: id.clone(), reason }, "skip", format!("{id} is left out"))
            }
            TaskVerb::Cancel if !found.status.is_closed() => {
                (Command::CancelTask { task: id.clone() }, "cancel", format!("{id} is given up"))
            }
            TaskVerb::Skip(_) | TaskVerb::Cancel => return Err(wrong("there is nothing left to do for it")),
        };
        self.control(&run, InputKind::Command(command), false).await?;
        self.answer(name, &note, &run).await
    }
}
