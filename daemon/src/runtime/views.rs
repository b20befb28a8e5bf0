//! Reads: runs, tasks and the daemon as the API shows them.

use std::collections::BTreeMap;
use std::path::Path;

use harness_core::policy::Policy;
use harness_proto::api::answer::{DaemonView, RunList, TaskAnswer};
use harness_proto::api::request::ListQuery;
use harness_proto::api::view::{AttemptView, EvidenceView, RunView, TurnView, WallsView};
use harness_proto::error::Problem;
use harness_proto::event::timestamp;
use harness_proto::ids::{RunId, Seq, TaskId};
use harness_proto::place::STATUS_FILE;
use harness_proto::report::Report;
use harness_proto::vocab::{Lifecycle, Role};

use super::context::{repo_key, values_of};
use super::control::{git_problem, store_problem};
use super::registry::{Runtime, run_dir};
use crate::agent::AgentKind;
use crate::api::{Paths, Selector, ViewFacts, run_view, task_view};
use crate::artifact::{FileName, Layout, write_atomic};
use crate::clock;
use crate::git;
use crate::store::{LoadedRun, RunFilter, RunName, RunRow, StoredTurn};

/// What views of one run share.
struct Facts {
    paths: Paths,
    policy: Policy,
    branch: String,
    agents: BTreeMap<String, String>,
    walls: WallsView,
}

impl Runtime {
    pub(super) fn daemon_view(&self) -> DaemonView {
        let driving = u32::try_from(self.driven().len()).unwrap_or(u32::MAX);
        DaemonView {
            driving,
            disk_free_percent: free_percent(&self.inner.config.state_dir),
            ..self.inner.daemon.clone()
        }
    }

    pub(super) async fn row(&self, run: &RunId) -> Result<RunRow, Problem> {
        let row = self.inner.store.run(run).await.map_err(|e| store_problem(&e))?;
        row.ok_or_else(|| Problem::new("RUN_UNKNOWN", format!("there is no run {run}")).next("harnessctl list --all"))
    }

    pub(super) async fn find(&self, selector: Selector) -> Result<RunId, Problem> {
        let (name, shown) = match selector {
            Selector::Id(text) => match RunId::parse(&text) {
                Ok(run) => (RunName::Id(run), text),
                Err(_) if text.starts_with("run_") => (RunName::Prefix(text.clone()), text),
                Err(_) => (RunName::Prefix(format!("run_{text}")), text),
            },
            Selector::Last => (RunName::Last, "@last".to_owned()),
            Selector::Repo(path) => (RunName::Repo(self.key_of(&path).await?), path),
        };
        let rows = self.inner.store.find_runs(&name).await.map_err(|e| store_problem(&e))?;
        let mut rows = rows.into_iter();
        match (rows.next(), rows.next()) {
            (Some(row), None) => Ok(row.run),
            (Some(one), Some(two)) => {
                let mut names = vec![one.run.to_string(), two.run.to_string()];
                names.extend(rows.map(|row| row.run.to_string()));
                Err(Problem::new("RUN_AMBIGUOUS", format!("`{shown}` begins several ids: {}", names.join(" ")))
                    .why("a prefix must name one run")
                    .next("harnessctl list --all"))
            }
            (None, _) => Err(Problem::new("RUN_UNKNOWN", format!("no run answers to `{shown}`"))
                .why("nothing was registered under that name; `harnessctl create-launch` registers a run")
                .next("harnessctl list --all")),
        }
    }

    async fn key_of(&self, path: &str) -> Result<String, Problem> {
        let owned = path.to_owned();
        let found = super::context::blocking(move || git::discover(Path::new(&owned))).await;
        let repo = found.map_err(|e| git_problem(&e))?;
        Ok(repo_key(&repo))
    }

    pub(super) async fn view(&self, run: &RunId) -> Result<RunView, Problem> {
        let loaded = self.inner.store.load(run).await.map_err(|e| store_problem(&e))?;
        self.view_of(&loaded, true, true)
    }

    fn view_of(&self, loaded: &LoadedRun, tasks: bool, alive: bool) -> Result<RunView, Problem> {
        let facts = self.facts(loaded)?;
        let daemon = DaemonView { alive, ..self.daemon_view() };
        let view = ViewFacts {
            now: clock::now(),
            daemon: &daemon,
            command: &self.inner.command,
            created_at: loaded.state.head.created_at,
            paths: &facts.paths,
            policy: &facts.policy,
            branch: &facts.branch,
            agents: &facts.agents,
            walls: &facts.walls,
            since: &BTreeMap::new(),
            tasks,
        };
        Ok(run_view(&loaded.state, &view))
    }

    fn facts(&self, loaded: &LoadedRun) -> Result<Facts, Problem> {
        let internal = |e: String| Problem::new("INTERNAL", e);
        let values = values_of(&loaded.policy).map_err(internal)?;
        let policy = Policy::from_values(&values).map_err(internal)?;
        let layout = self.layout_of(loaded).unwrap_or_else(|_| Layout::at_root(&loaded.repo.path));
        let path = |name: FileName| layout.path(&name).display().to_string();
        let roles = Role::ALL.iter().map(|r| r.as_str());
        let walls = &loaded.state.head.walls;
        let wall_of = |role: &str| match values.agent_of(role).parse::<AgentKind>() {
            Ok(AgentKind::Codex { .. }) if !walls.starts_with("none") => "agent's own sandbox".to_owned(),
            _ => walls.clone(),
        };
        Ok(Facts {
            paths: Paths {
                repo: loaded.repo.path.display().to_string(),
                events: path(FileName::Events),
                launch: path(FileName::Launch),
                log: path(FileName::RuntimeLog),
                runtime: path(FileName::Runtime),
                state: path(FileName::State),
                tasks: path(FileName::Tasks),
            },
            branch: values.text("branch").to_owned(),
            agents: roles.map(|r| (r.to_owned(), values.agent_of(r))).collect(),
            walls: WallsView {
                planner: wall_of("planner"),
                implementer: wall_of("implementer"),
                verifier: wall_of("verifier"),
                evidence: walls.clone(),
            },
            policy,
        })
    }

    pub(super) async fn list_runs(&self, query: ListQuery) -> Result<RunList, Problem> {
        let lifecycle = match query.state.as_deref().filter(|s| !s.is_empty()) {
            None => None,
            Some(text) => Some(text.parse::<Lifecycle>().map_err(|e| Problem::new("USAGE", e.to_string()))?),
        };
        let repo = match query.repo.as_deref() {
            Some(path) => Some(self.key_of(path).await?),
            None => None,
        };
        let limit = if query.limit == 0 { 100 } else { query.limit };
        let filter = RunFilter { repo, lifecycle, before: None, limit };
        let rows = self.inner.store.list_runs(&filter).await.map_err(|e| store_problem(&e))?;
        let mut runs = Vec::new();
        for row in rows {
            let over = matches!(row.lifecycle, Lifecycle::Completed | Lifecycle::Cancelled | Lifecycle::Failed);
            if over && !query.all && lifecycle.is_none() && query.repo.is_none() {
                continue;
            }
            let loaded = self.inner.store.load(&row.run).await.map_err(|e| store_problem(&e))?;
            runs.push(self.view_of(&loaded, false, true)?);
        }
        Ok(RunList { schema: "harness.list/1".into(), daemon: self.daemon_view(), runs })
    }

    /// Writes what `harnessctl status` reads when the daemon is down (corrections 8).
    pub async fn write_status(&self, alive: bool) {
        let filter = RunFilter { limit: 50, ..RunFilter::default() };
        let mut runs = Vec::new();
        for row in self.inner.store.list_runs(&filter).await.unwrap_or_default() {
            if let Ok(loaded) = self.inner.store.load(&row.run).await
                && let Ok(view) = self.view_of(&loaded, true, alive)
            {
                runs.push(view);
            }
        }
        let daemon = DaemonView { alive, ..self.daemon_view() };
        let list = RunList { schema: "harness.list/1".into(), daemon, runs };
        let Ok(bytes) = serde_json::to_vec_pretty(&list) else { return };
        if let Err(error) = write_atomic(&self.inner.config.state_dir.join(STATUS_FILE), &bytes) {
            tracing::warn!(%error, "status.json could not be written");
        }
    }

    pub(super) async fn task_in_full(&self, run: RunId, task: String) -> Result<TaskAnswer, Problem> {
        let unknown = || {
            Problem::new("TASK_UNKNOWN", format!("{run} has no task `{task}`"))
                .why("the plan names the tasks")
                .next(format!("harnessctl status {run}"))
        };
        let id = TaskId::parse(&task).map_err(|_| unknown())?;
        let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
        let found = loaded.state.tasks.get(&id).ok_or_else(unknown)?;
        let facts = self.facts(&loaded)?;
        let daemon = self.daemon_view();
        let view_facts = ViewFacts {
            now: clock::now(),
            daemon: &daemon,
            command: &self.inner.command,
            created_at: loaded.state.head.created_at,
            paths: &facts.paths,
            policy: &facts.policy,
            branch: &facts.branch,
            agents: &facts.agents,
            walls: &facts.walls,
            since: &BTreeMap::new(),
            tasks: true,
        };
        let view = task_view(&loaded.state, found, &view_facts);
        Ok(TaskAnswer {
            schema: "harness.show/1".into(),
            run_id: run.to_string(),
            task: view,
            attempts: self.attempts_of(&run, &id).await?,
        })
    }

    /// What the gate found, by attempt: rows of the history.
    async fn blockers_of(&self, run: &RunId, task: &TaskId) -> Result<BTreeMap<u32, Vec<String>>, Problem> {
        let mut found: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        let mut since = Seq(0);
        loop {
            let page = self.inner.store.events(run, since, 1000).await.map_err(|e| store_problem(&e))?;
            let Some(last) = page.last() else { return Ok(found) };
            since = last.seq;
            for event in page.iter().filter(|e| e.status == "gate" && e.task_id == task.as_str()) {
                if let Some(code) = event.decision.strip_prefix("blocked:") {
                    found.entry(event.attempt).or_default().push(format!("{code}: {}", event.description));
                }
            }
        }
    }

    async fn attempts_of(&self, run: &RunId, task: &TaskId) -> Result<Vec<AttemptView>, Problem> {
        let store = &self.inner.store;
        let failed = |e| store_problem(&e);
        let turns = store.task_turns(run, task).await.map_err(failed)?;
        let evidence = store.evidence(run, Some(task), None).await.map_err(failed)?;
        let dir = run_dir(&self.inner.config, run);
        let blockers = self.blockers_of(run, task).await?;
        let mut views = Vec::new();
        for attempt in store.attempts(run, task).await.map_err(failed)? {
            let mine = turns.iter().filter(|t| t.begun.attempt == attempt.number);
            let verdict = mine.clone().rev().find_map(|t| match t.ended.as_ref()?.report.as_ref()? {
                Report::Verifier(report) => Some(report.verdict.to_string()),
                Report::Planner(_) | Report::Implementer(_) => None,
            });
            views.push(AttemptView {
                attempt: attempt.number,
                stage: if attempt.outcome.is_empty() { word(&attempt.stage) } else { "decided".into() },
                outcome: attempt.outcome,
                base: attempt.base,
                trial: attempt.trial,
                candidate: attempt.candidate,
                summary: attempt.summary,
                changed: attempt.changed,
                verdict: verdict.unwrap_or_default(),
                verdict_summary: attempt.verdict_summary,
                blockers: blockers.get(&attempt.number).cloned().unwrap_or_default(),
                turns: mine.map(|turn| turn_view(turn, &dir)).collect(),
                evidence: evidence
                    .iter()
                    .filter(|r| r.attempt == attempt.number)
                    .map(|r| EvidenceView {
                        purpose: word(&r.purpose),
                        setup: r.setup,
                        command: r.command.clone(),
                        exit_code: r.exit_code,
                        result: r.result.to_string(),
                        failure: r.failure.map(|f| f.to_string()).unwrap_or_default(),
                        note: r.note.clone(),
                        tests: r.tests,
                        commit: r.commit.clone(),
                        tree: r.tree.clone(),
                        stdout: r.stdout.clone(),
                        stderr: r.stderr.clone(),
                        output: dir.join("evidence").join(&r.output).display().to_string(),
                        duration_ms: r.duration_ms,
                        at: timestamp(r.at),
                    })
                    .collect(),
                started_at: timestamp(attempt.started_at),
            });
        }
        Ok(views)
    }
}

/// The stored word of a unit variant.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        _ => String::new(),
    }
}

fn turn_view(turn: &StoredTurn, dir: &Path) -> TurnView {
    let begun = &turn.begun;
    let mut view = TurnView {
        turn: begun.turn,
        role: begun.role.to_string(),
        kind: begun.kind.to_string(),
        outcome: "active".into(),
        started_at: timestamp(begun.at),
        ..TurnView::default()
    };
    if let Some(ended) = &turn.ended {
        view.outcome.clone_from(&ended.outcome);
        view.message.clone_from(&ended.message);
        view.agent.clone_from(&ended.agent);
        view.tokens = ended.total_tokens;
        view.duration_ms = ended.duration_ms;
        view.report.clone_from(&ended.report_file);
        view.transcript = dir.join("transcripts").join(&ended.transcript).display().to_string();
    }
    view
}

fn free_percent(path: &Path) -> u32 {
    match nix::sys::statvfs::statvfs(path) {
        Ok(found) if found.blocks() > 0 => {
            u32::try_from(found.blocks_available() * 100 / found.blocks()).unwrap_or(100)
        }
        _ => 0,
    }
}
