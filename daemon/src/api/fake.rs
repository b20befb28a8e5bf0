//! A runtime for tests: answers from memory, counts what it is asked.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_proto::api::answer::{
    ControlAnswer, CreateLaunchAnswer, DaemonStopAnswer, DaemonView, DbCheckAnswer, DoctorAnswer, EventPage, LogLine,
    LogPage, PlanCheckAnswer, RebuildAnswer, RecoverAnswer, RunList, StartAnswer, StopAnswer, TaskAnswer,
};
use harness_proto::api::request::{CreateLaunch, ListQuery, LogsQuery, Recover, Start};
use harness_proto::api::view::{EventView, RunView};
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use tokio::sync::{Notify, broadcast};

use super::seam::{Answer, Control, Notice, Recorded, Selector, TaskVerb};

/// The only run that it knows.
pub(super) const RUN: &str = "run_aaaaaaaa";

/// See the module.
pub(super) struct Fake {
    /// How often a run was registered.
    pub(super) created: AtomicU32,
    /// How often a stop went through.
    pub(super) stopped: AtomicU32,
    /// A stop has begun.
    pub(super) stop_begun: Notify,
    /// Lets a stop go through.
    pub(super) stop_may_end: Notify,
    /// History.
    pub(super) events: Mutex<Vec<EventView>>,
    /// Whether the run has ended.
    pub(super) ended: Mutex<bool>,
    /// Tells streams.
    pub(super) notices: broadcast::Sender<Notice>,
    /// Stored answers.
    pub(super) stored: Mutex<HashMap<String, Recorded>>,
}

impl Fake {
    pub(super) fn new() -> Self {
        Self {
            created: AtomicU32::new(0),
            stopped: AtomicU32::new(0),
            stop_begun: Notify::new(),
            stop_may_end: Notify::new(),
            events: Mutex::default(),
            ended: Mutex::new(false),
            notices: broadcast::channel(64).0,
            stored: Mutex::default(),
        }
    }

    /// Something happens.
    pub(super) fn happen(&self, text: &str) {
        let seq = {
            let mut events = self.events.lock().unwrap();
            let seq = i64::try_from(events.len()).unwrap() + 1;
            events.push(EventView { seq, description: text.into(), ..EventView::default() });
            seq
        };
        // Without a stream nobody listens.
        self.notices.send(Notice { run: run(), seq }).ok();
    }
}

/// The id of [`RUN`].
pub(super) fn run() -> RunId {
    RunId::parse(RUN).unwrap()
}

fn ready<'a, T: Send + 'a>(answer: Result<T, Problem>) -> Answer<'a, T> {
    Box::pin(std::future::ready(answer))
}

fn done<'a>(verb: &str, note: impl Into<String>) -> Answer<'a, ControlAnswer> {
    ready(Ok(ControlAnswer { schema: format!("harness.{verb}/1"), note: note.into(), run: RunView::default() }))
}

impl Control for Fake {
    fn daemon_status(&self) -> Answer<'_, DaemonView> {
        ready(Ok(DaemonView { pid: 7, alive: true, ..DaemonView::default() }))
    }
    fn daemon_stop(&self) -> Answer<'_, DaemonStopAnswer> {
        ready(Ok(DaemonStopAnswer::default()))
    }
    fn doctor(&self, _repo: Option<String>) -> Answer<'_, DoctorAnswer> {
        panic!("the doctor is ill")
    }
    fn db_check(&self) -> Answer<'_, DbCheckAnswer> {
        ready(Ok(DbCheckAnswer { ok: true, ..DbCheckAnswer::default() }))
    }
    fn tasks_validate(&self, bytes: Vec<u8>) -> Answer<'_, PlanCheckAnswer> {
        ready(Ok(PlanCheckAnswer { ok: !bytes.is_empty(), ..PlanCheckAnswer::default() }))
    }
    fn create_launch(&self, body: CreateLaunch, _request: Option<String>) -> Answer<'_, CreateLaunchAnswer> {
        let n = self.created.fetch_add(1, Ordering::SeqCst) + 1;
        if body.goal == "panic" {
            return Box::pin(async { panic!("on purpose") });
        }
        if body.goal.is_empty() {
            return ready(Err(Problem::new("USAGE", format!("no goal, try {n}"))));
        }
        ready(Ok(CreateLaunchAnswer { goal: body.goal, run_id: format!("run {n}"), ..CreateLaunchAnswer::default() }))
    }
    fn list(&self, query: ListQuery) -> Answer<'_, RunList> {
        ready(Ok(RunList { schema: format!("{}", query.limit), ..RunList::default() }))
    }
    fn resolve(&self, selector: Selector) -> Answer<'_, RunId> {
        let known = match &selector {
            Selector::Id(id) => RUN.starts_with(id.as_str()),
            Selector::Last => true,
            Selector::Repo(path) => path == "/repo",
        };
        ready(if known { Ok(run()) } else { Err(Problem::new("RUN_UNKNOWN", format!("{selector:?}"))) })
    }
    fn status(&self, run: RunId) -> Answer<'_, RunView> {
        ready(Ok(RunView { run_id: run.to_string(), ..RunView::default() }))
    }
    fn show_task(&self, _run: RunId, task: String) -> Answer<'_, TaskAnswer> {
        ready(Err(Problem::new("TASK_UNKNOWN", task)))
    }
    fn events_since(&self, _run: RunId, since: i64, limit: u32) -> Answer<'_, EventPage> {
        let events: Vec<EventView> =
            self.events.lock().unwrap().iter().filter(|e| e.seq > since).take(limit as usize).cloned().collect();
        let last = events.last().map_or(since, |e| e.seq);
        ready(Ok(EventPage { events, last, ended: *self.ended.lock().unwrap(), ..EventPage::default() }))
    }
    fn logs(&self, _run: RunId, query: LogsQuery) -> Answer<'_, LogPage> {
        let lines = if query.cursor.is_none() {
            vec![LogLine { text: "hello".into(), ..LogLine::default() }]
        } else {
            Vec::new()
        };
        ready(Ok(LogPage { lines, cursor: "c1".into(), ended: true, ..LogPage::default() }))
    }
    fn subscribe(&self) -> broadcast::Receiver<Notice> {
        self.notices.subscribe()
    }
    fn start(&self, run: RunId, body: Start) -> Answer<'_, StartAnswer> {
        ready(Ok(StartAnswer {
            run_id: run.to_string(),
            note: body.codex_bin.unwrap_or_default(),
            ..StartAnswer::default()
        }))
    }
    fn stop(&self, _run: RunId, _now: bool) -> Answer<'_, StopAnswer> {
        Box::pin(async {
            self.stop_begun.notify_one();
            self.stop_may_end.notified().await;
            self.stopped.fetch_add(1, Ordering::SeqCst);
            Ok(StopAnswer::default())
        })
    }
    fn pause(&self, _run: RunId) -> Answer<'_, ControlAnswer> {
        done("pause", "")
    }
    fn cancel(&self, _run: RunId) -> Answer<'_, ControlAnswer> {
        done("cancel", "")
    }
    fn land(&self, _run: RunId) -> Answer<'_, ControlAnswer> {
        done("land", "")
    }
    fn task(&self, _run: RunId, task: String, verb: TaskVerb) -> Answer<'_, ControlAnswer> {
        done("task", format!("{task} {verb:?}"))
    }
    fn recover(&self, _run: RunId, body: Recover) -> Answer<'_, RecoverAnswer> {
        ready(Ok(RecoverAnswer { branch: body.branch.unwrap_or_default(), ..RecoverAnswer::default() }))
    }
    fn rebuild(&self, _run: RunId) -> Answer<'_, RebuildAnswer> {
        ready(Ok(RebuildAnswer::default()))
    }
    fn recall(&self, request: String) -> Answer<'_, Option<Recorded>> {
        ready(Ok(self.stored.lock().unwrap().get(&request).cloned()))
    }
    fn remember(&self, request: String, recorded: Recorded) -> Answer<'_, ()> {
        self.stored.lock().unwrap().insert(request, recorded);
        ready(Ok(()))
    }
}
