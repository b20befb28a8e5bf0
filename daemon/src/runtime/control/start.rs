//! `start`: preconditions are checked before the run is queued, so that nobody waits for a run that cannot go (weaknesses 7).

use std::collections::BTreeMap;
use std::ffi::OsString;

use harness_core::input::{Command, InputKind, PlanFile, StartFacts};
use harness_core::policy::Policy;
use harness_proto::api::answer::StartAnswer;
use harness_proto::api::request::Start;
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use harness_proto::policy::PolicyValues;
use harness_proto::vocab::{ExecutionPolicy, Lifecycle};
use serde_json::{Value, json};

use super::launch::{found_plan, provable};
use super::problem::{agent_problem, git_problem, io_problem, store_problem};
use crate::agent::{AgentKind, preflight};
use crate::artifact::{ArtifactWriter, FileName};
use crate::git;
use crate::process;
use crate::runtime::context::{CLIENT, blocking, client_path, environment, values_of};
use crate::runtime::registry::{Runtime, layout, run_dir};
use crate::store::LoadedRun;

impl Runtime {
    pub(super) async fn start_run(&self, run: RunId, body: Start) -> Result<StartAnswer, Problem> {
        let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
        let head = &loaded.state.head;
        let note = match head.lifecycle {
            Lifecycle::Cancelled => {
                return Err(Problem::new("RUN_CANCELLED", format!("{run} was cancelled"))
                    .why("a cancelled run is final")
                    .next("harnessctl create-launch --help"));
            }
            Lifecycle::Queued => Some("already queued".to_owned()),
            Lifecycle::Running if head.hold.is_none() && !head.stopping => Some("already running".to_owned()),
            Lifecycle::Completed if head.unlanded.is_empty() => Some("completed; nothing to start".to_owned()),
            Lifecycle::Completed => {
                self.control(&run, InputKind::Command(Command::Land), false).await?;
                Some("completed; the pending landing is tried again".to_owned())
            }
            Lifecycle::Registered | Lifecycle::Running | Lifecycle::Stopped | Lifecycle::Failed => None,
        };
        if let Some(note) = note {
            return self.start_answer(&run, note).await;
        }
        let first = head.base.is_empty();
        if first {
            self.finish_registering(&loaded).await?;
        }
        let facts = self.start_facts(&loaded, body).await?;
        if first {
            self.take_found_plan(&loaded, &facts).await?;
        }
        self.control(&run, InputKind::Command(Command::Start(Box::new(facts))), false).await?;
        self.start_answer(&run, String::new()).await
    }

    async fn start_answer(&self, run: &RunId, note: String) -> Result<StartAnswer, Problem> {
        let view = self.view(run).await?;
        Ok(StartAnswer {
            schema: "harness.start/1".into(),
            status: if view.lifecycle == "completed" { "terminal".into() } else { "running".into() },
            pid: self.inner.daemon.pid,
            runtime_path: view.runtime_path,
            log_path: view.log_path,
            run_id: run.to_string(),
            lifecycle: view.lifecycle,
            note,
        })
    }

    /// Everything a start depends on, looked up now.
    async fn start_facts(&self, loaded: &LoadedRun, body: Start) -> Result<StartFacts, Problem> {
        let internal = |e: String| Problem::new("INTERNAL", e);
        let mut values = values_of(&loaded.policy).map_err(internal)?;
        let mut launch = loaded.launch.clone();
        merge_client(&mut values, &mut launch, &body)?;
        let policy = Policy::from_values(&values).map_err(internal)?;
        let repo_path = loaded.repo.path.clone();
        let wanted = wanted_branch(&values, &loaded.state.head.target_branch);
        let key = loaded.repo.key.clone();
        let mirrors = self.inner.config.repos_dir();
        let guard = self.repo_lock(&key).lock_owned().await;
        let found = blocking(move || {
            let _guard = guard;
            git::version()?;
            let repo = git::discover(&repo_path)?;
            let (branch, tip) = repo.target(wanted.as_deref())?;
            let mirror = git::Mirror::ensure(&mirrors.join(format!("{key}.git")), &repo)?;
            let tree = mirror.tree_of(&tip)?;
            Ok((repo, branch, tip, tree))
        })
        .await;
        let (repo, branch, tip, tree) = found.map_err(|e: git::GitError| git_problem(&e))?;
        self.other_active(loaded, &repo).await?;
        let walls = walls(&policy)?;
        let agent = self.check_agents(&values, &launch, loaded).await?;
        let path = layout(&repo).map_err(internal)?.path(&FileName::Tasks);
        let plan = blocking(move || found_plan(&path)).await?.map_or(PlanFile::Missing, PlanFile::Text);
        if loaded.state.head.base.is_empty()
            && let PlanFile::Text(text) = &plan
        {
            provable(text, &policy)?;
        }
        let policy_value = serde_json::to_value(&values).unwrap_or(Value::Null);
        let run = &loaded.state.head.brief.run;
        self.inner.store.set_launch(run, &launch, &policy_value).await.map_err(|e| store_problem(&e))?;
        Ok(StartFacts {
            target_branch: branch,
            target_tip: tip.to_string(),
            target_tree: tree.to_string(),
            plan,
            agent,
            walls,
        })
    }

    async fn other_active(&self, loaded: &LoadedRun, repo: &git::RepoFacts) -> Result<(), Problem> {
        let active = self.inner.store.active_run(&loaded.repo.key).await.map_err(|e| store_problem(&e))?;
        match active {
            Some(row) if row.run != loaded.state.head.brief.run => self.no_active_run(repo).await,
            _ => Ok(()),
        }
    }

    /// Every role's agent must be there before the run is queued; the text for the record.
    async fn check_agents(&self, values: &PolicyValues, launch: &Value, loaded: &LoadedRun) -> Result<String, Problem> {
        let config = &self.inner.config;
        let path: OsString = client_path(launch, config);
        let env = environment(&path, values);
        let scratch = config.work_dir().join(loaded.state.head.brief.run.as_str()).join("preflight");
        std::fs::create_dir_all(&scratch).map_err(|e| io_problem("the state directory cannot be written", &e))?;
        let mut seen = BTreeMap::new();
        for role in ["planner", "implementer", "verifier"] {
            let text = values.agent_of(role);
            if seen.contains_key(&text) {
                continue;
            }
            let kind: AgentKind =
                text.parse().map_err(|e: crate::agent::AgentKindError| Problem::new("USAGE", e.to_string()))?;
            let facts = preflight(&kind, &config.own_binary, &env, &scratch).await.map_err(|e| agent_problem(&e))?;
            seen.insert(text, format!("{} {}", facts.name, facts.version).trim().to_owned());
        }
        Ok(seen.into_values().collect::<Vec<_>>().join(", "))
    }

    /// The plan that stands in the repository becomes ours: the files may be written over it from now on.
    async fn take_found_plan(&self, loaded: &LoadedRun, facts: &StartFacts) -> Result<(), Problem> {
        let PlanFile::Text(text) = &facts.plan else { return Ok(()) };
        let layout = self.layout_of(loaded).map_err(|e| Problem::new("REPO_UNUSABLE", e))?;
        let dir = run_dir(&self.inner.config, &loaded.state.head.brief.run);
        let bytes = text.clone().into_bytes();
        let taken = blocking(move || ArtifactWriter::open(layout, &dir)?.accept_plan(&bytes)).await;
        taken.map_err(|e| io_problem("the found plan cannot be recorded", &e))
    }
}

/// What the client said at start goes into the frozen policy of a run that never ran; its PATH always does.
fn merge_client(values: &mut PolicyValues, launch: &mut Value, body: &Start) -> Result<(), Problem> {
    let wrong = |e: harness_proto::policy::PolicyError| Problem::new("POLICY_INVALID", e.to_string());
    if let Some(agent) = &body.agent {
        values.put("agent", json!(agent)).map_err(wrong)?;
    }
    for (role, agent) in &body.agent_for {
        values.put(&format!("agent.{role}"), json!(agent)).map_err(wrong)?;
    }
    if let Some(program) = &body.codex_bin {
        values.put("agent.codex_bin", json!(program)).map_err(wrong)?;
        for key in ["agent", "agent.planner", "agent.implementer", "agent.verifier"] {
            if values.text(key).starts_with("codex:") {
                values.put(key, json!("codex")).map_err(wrong)?;
            }
        }
    }
    if let (Some(path), Some(document)) = (&body.path, launch.as_object_mut()) {
        document.insert(CLIENT.to_owned(), json!({"path": path}));
    }
    Ok(())
}

/// The branch of earlier starts, else the one that was asked for, else none: what is checked out.
fn wanted_branch(values: &PolicyValues, known: &str) -> Option<String> {
    let asked = values.text("branch");
    [known, asked].into_iter().find(|b| !b.is_empty()).map(str::to_owned)
}

/// What walls agents and evidence; refused where the kernel cannot and the user did not opt out (readings 004-9).
fn walls(policy: &Policy) -> Result<String, Problem> {
    if policy.execution == ExecutionPolicy::DangerFullAccess {
        return Ok("none (danger_full_access)".to_owned());
    }
    let support = process::probe();
    if support.filesystem {
        return Ok(format!("landlock abi {}", support.abi));
    }
    Err(Problem::new("WALLS_MISSING", "this kernel cannot confine agents and evidence")
        .why(format!("Landlock version {} is here, 3 or newer is needed", support.abi))
        .next("upgrade the kernel, or create-launch with --execution-policy danger_full_access"))
}
