//! The files of a run, written from its state: debounced by the driver, flushed before a verb answers.
//!
//! A file that cannot be written is a warning and tried again; it never stops a run.

use std::path::PathBuf;

use harness_core::state::RunState;
use harness_core::step::{Change, Lesson, Step};
use harness_proto::doc::LaunchDoc;
use harness_proto::event::Event;
use harness_proto::ids::{Millis, RunId};
use harness_proto::report::Report;
use harness_proto::vocab::Lifecycle;

use super::context::blocking;
use crate::artifact::{
    ArtifactWriter, DaemonIdentity, Edits, FileName, Layout, LineLog, ProjectContext, ReportName, append_lessons,
    project, remove_leftovers, tasks_value,
};
use crate::store::Store;

/// The writer of one run's files.
pub(super) struct Projector {
    /// None while a flush has the files in another thread, or when they could not be opened.
    files: Option<Files>,
    context: ProjectContext,
    run: RunId,
    run_dir: PathBuf,
    store: Store,
    events: Vec<Event>,
    lessons: Vec<Lesson>,
    /// A refused edit of a human: the file stays until it changes again.
    refused: Option<Vec<u8>>,
}

struct Files {
    writer: ArtifactWriter,
    tsv: LineLog,
    jsonl: LineLog,
}

/// What a projector needs.
pub(super) struct Parts {
    pub(super) run: RunId,
    pub(super) run_dir: PathBuf,
    pub(super) trees: PathBuf,
    pub(super) layout: Layout,
    pub(super) launch: LaunchDoc,
    pub(super) daemon: Option<DaemonIdentity>,
    pub(super) created_at: Millis,
    pub(super) prose: Option<String>,
    pub(super) store: Store,
}

impl Projector {
    pub(super) fn new(parts: Parts) -> Self {
        let context = ProjectContext {
            layout: parts.layout,
            launch: parts.launch,
            daemon: parts.daemon,
            created_at: parts.created_at,
            trees: parts.trees,
            prose: parts.prose,
            servers: Vec::new(),
            reports: Vec::new(),
        };
        let mut projector = Self {
            files: None,
            context,
            run: parts.run,
            run_dir: parts.run_dir,
            store: parts.store,
            events: Vec::new(),
            lessons: Vec::new(),
            refused: None,
        };
        projector.open();
        projector
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.context.layout
    }

    fn open(&mut self) {
        let layout = self.context.layout.clone();
        let opened = (|| {
            // A killed daemon's; nobody else writes here while this projector stands.
            for folder in [layout.folder(), layout.reports()] {
                remove_leftovers(&folder)?;
            }
            let writer = ArtifactWriter::open(layout.clone(), &self.run_dir)?;
            let tsv = LineLog::open_tsv(&layout.path(&FileName::Events))?;
            let jsonl = LineLog::open_jsonl(&self.run_dir.join("events.log"), &self.run)?;
            Ok::<_, crate::artifact::FileError>(Files { writer, tsv, jsonl })
        })();
        match opened {
            Ok(files) => self.files = Some(files),
            Err(error) => tracing::warn!(run = %self.run, %error, "the run's files cannot be written; trying again"),
        }
    }

    /// Remembers what a stored step shows.
    pub(super) fn take(&mut self, step: &Step) {
        self.events.extend(step.events.iter().cloned());
        for change in &step.changes {
            match change {
                Change::Lesson(lesson) => self.lessons.push(lesson.clone()),
                Change::TurnEnded(row) => self.take_report(&row.report_file, row.report.as_ref()),
                Change::Plan(row) => {
                    if let Some(prose) = &row.prose {
                        self.context.prose = Some(prose.clone());
                    }
                }
                _ => {}
            }
        }
    }

    fn take_report(&mut self, name: &str, report: Option<&Report>) {
        if let (Some(name), Some(report)) = (ReportName::parse(name), report) {
            self.context.reports.push((name, report.clone()));
        }
    }

    /// `tasks.json` and `plan.md` as a planner gets them.
    pub(super) fn plan_files(&self, state: &RunState) -> (Vec<u8>, String) {
        let tasks = harness_proto::doc::render_value(&tasks_value(state, self.context.created_at)).into_bytes();
        (tasks, self.context.prose.clone().unwrap_or_else(|| format!("# Plan\n\nGoal: {}\n", state.head.brief.goal)))
    }

    /// Files that a planner may read beside the plan: lessons and the newest reports.
    pub(super) fn readable(&self) -> Vec<(String, Vec<u8>)> {
        let layout = &self.context.layout;
        let mut found = Vec::new();
        if let Ok(bytes) = std::fs::read(layout.path(&FileName::Lessons)) {
            found.push(("harness-lessons.md".to_owned(), bytes));
        }
        let Ok(folder) = std::fs::read_dir(layout.reports()) else { return found };
        let mut names: Vec<_> = folder
            .filter_map(Result::ok)
            .filter(|entry| ReportName::parse(&entry.file_name().to_string_lossy()).is_some())
            .map(|entry| (entry.metadata().and_then(|m| m.modified()).ok(), entry.path()))
            .collect();
        names.sort();
        for (_, path) in names.iter().rev().take(20) {
            if let (Some(name), Ok(bytes)) = (path.file_name(), std::fs::read(path)) {
                found.push((name.to_string_lossy().into_owned(), bytes));
            }
        }
        found
    }

    /// Writes what changed; returns a human's `tasks.json` that must be taken in first.
    pub(super) async fn flush(&mut self, state: &RunState) -> Option<Vec<u8>> {
        if self.files.is_none() {
            self.open();
        }
        let mut files = self.files.take()?;
        let whole = project(state, &self.context);
        let (mut events, lessons) = (std::mem::take(&mut self.events), std::mem::take(&mut self.lessons));
        self.catch_up(&files, state, &mut events).await;
        let brief = state.head.brief.clone();
        let lessons_path = self.context.layout.path(&FileName::Lessons);
        let refused = self.refused.clone();
        let (files, summary, failed, events, lessons) = blocking(move || {
            let mut failed = Vec::new();
            let rows = files.tsv.append(&events).map_err(|e| e.to_string());
            let lines = files.jsonl.append(&events).map_err(|e| e.to_string());
            failed.extend(rows.err());
            failed.extend(lines.err());
            let events = if failed.is_empty() { Vec::new() } else { events };
            let noted = if lessons.is_empty() { Ok(0) } else { append_lessons(&lessons_path, &brief, &lessons) };
            let lessons = if noted.is_ok() { Vec::new() } else { lessons };
            failed.extend(noted.err().map(|e| e.to_string()));
            let summary = files.writer.write(&whole);
            (files, summary, failed, events, lessons)
        })
        .await;
        self.files = Some(files);
        self.events.splice(0..0, events);
        self.lessons.splice(0..0, lessons);
        if summary.failures.is_empty() && failed.is_empty() {
            self.context.reports.clear();
        }
        for failure in summary.failures.iter().map(ToString::to_string).chain(failed) {
            tracing::warn!(run = %self.run, failure, "a file of the run could not be written; trying again");
        }
        summary.edited_plan.filter(|edited| refused.as_ref() != Some(edited))
    }

    /// Events that the files do not have yet, from the store: after a crash, or when an earlier append failed.
    async fn catch_up(&self, files: &Files, state: &RunState, events: &mut Vec<Event>) {
        let have = files.tsv.last_seq().min(files.jsonl.last_seq());
        let first = events.first().map_or(state.head.seq.0 + 1, |e| e.seq.0);
        if have.0 + 1 >= first {
            return;
        }
        let mut since = have;
        let mut missing = Vec::new();
        while let Ok(page) = self.store.events(&self.run, since, 1000).await {
            let Some(last) = page.last() else { break };
            since = last.seq;
            missing.extend(page.into_iter().filter(|e| e.seq.0 < first));
            if since.0 >= first {
                break;
            }
        }
        events.splice(0..0, missing);
    }

    /// `tasks.json` as it was written last; empty when that is not known.
    pub(super) fn last_plan(&self) -> String {
        std::fs::read_to_string(self.run_dir.join("projected").join("tasks.json")).unwrap_or_default()
    }

    pub(super) fn edits(&self) -> Edits {
        let found = self.files.as_ref().and_then(|files| files.writer.edits().ok()).unwrap_or_default();
        Edits { plan: found.plan.filter(|plan| self.refused.as_ref() != Some(plan)), launch: found.launch }
    }

    /// The edit was imported or refused. A refused one stays where it is, so that nothing of the human's is lost.
    pub(super) fn edit_taken(&mut self, bytes: &[u8], imported: bool) {
        if !imported {
            self.refused = Some(bytes.to_vec());
            return;
        }
        self.refused = None;
        if let Some(files) = &mut self.files
            && let Err(error) = files.writer.accept_plan(bytes)
        {
            tracing::warn!(run = %self.run, %error, "an imported edit could not be recorded");
        }
    }

    /// The last write of a driver: nobody drives the run any more.
    pub(super) async fn rest(&mut self, state: &RunState) {
        if state.head.lifecycle != Lifecycle::Running {
            self.context.daemon = None;
            self.context.servers.clear();
        }
        self.flush(state).await;
    }

    /// Writes every file anew, whatever stands there (`rebuild`).
    pub(super) async fn rebuild(&mut self, state: &RunState) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        let mut since = harness_proto::ids::Seq(0);
        loop {
            let page = self.store.events(&self.run, since, 1000).await.map_err(|e| e.to_string())?;
            let Some(last) = page.last() else { break };
            since = last.seq;
            all.extend(page);
        }
        let files = self.files.as_mut().ok_or("the run's files cannot be opened")?;
        files.tsv.rewrite(&all).map_err(|e| e.to_string())?;
        files.jsonl.rewrite(&all).map_err(|e| e.to_string())?;
        let launch = harness_proto::doc::render(&self.context.launch).into_bytes();
        files.writer.write_launch(&launch).map_err(|e| e.to_string())?;
        self.events.clear();
        if let Some(edited) = self.flush(state).await {
            let files = self.files.as_mut().ok_or("the run's files cannot be opened")?;
            files.writer.accept_plan(&edited).map_err(|e| e.to_string())?;
            self.flush(state).await;
        }
        let layout = &self.context.layout;
        let names =
            [FileName::Launch, FileName::Runtime, FileName::State, FileName::Events, FileName::Tasks, FileName::Plan];
        Ok(names.iter().map(|name| layout.path(name).display().to_string()).collect())
    }
}
