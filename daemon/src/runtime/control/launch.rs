//! `create-launch`: everything is checked before anything is written.

use std::collections::BTreeMap;
use std::path::Path;

use harness_core::dag::{ImportSource, import};
use harness_core::input::InputKind;
use harness_core::policy::Policy;
use harness_core::state::Brief;
use harness_core::supervisor::register;
use harness_proto::api::MAX_PLAN_BYTES;
use harness_proto::api::answer::{CreateLaunchAnswer, PlanCheckAnswer};
use harness_proto::api::request::CreateLaunch;
use harness_proto::doc::{ConfigDoc, DOC_MODE, DOC_VERSION, LaunchDoc};
use harness_proto::error::Problem;
use harness_proto::event::timestamp;
use harness_proto::ids::{Millis, RunId};
use harness_proto::policy::PolicyValues;
use harness_proto::vocab::{ExecutionPolicy, Lifecycle};
use serde_json::{Map, Value};

use super::problem::{chain, git_problem, io_problem, store_problem};
use crate::agent::AgentKind;
use crate::artifact::{ArtifactWriter, FileName, Layout, read as read_artifact, rotate};
use crate::clock;
use crate::git::{self, RepoFacts};
use crate::runtime::context::{blocking, repo_key, user_env};
use crate::runtime::registry::{Runtime, layout, run_dir};
use crate::store::{LoadedRun, NewRun, RepoKey, RequestKey, RequestState};

/// A launch that passed every check.
struct Checked {
    repo: RepoFacts,
    layout: Layout,
    branch: String,
    tip: String,
    values: PolicyValues,
    policy: Policy,
    notes: Vec<String>,
}

impl Runtime {
    pub(super) async fn register_run(
        &self,
        body: CreateLaunch,
        request: Option<String>,
    ) -> Result<CreateLaunchAnswer, Problem> {
        let at = clock::now();
        let key = request.filter(|_| !body.dry_run).map(|id| RequestKey {
            key: format!("register {id}"),
            verb: "create-launch".into(),
            body_hash: fingerprint(&body),
        });
        let before = self.registered_before(key.as_ref(), at).await?;
        let checked = self.check_launch(&body, before.is_some()).await?;
        let mut answer = CreateLaunchAnswer {
            schema: "harness.create-launch/1".into(),
            goal: body.goal.clone(),
            mode: "harness".into(),
            launch_path: checked.layout.path(&FileName::Launch).display().to_string(),
            run_id: String::new(),
            lifecycle: Lifecycle::Registered.to_string(),
            branch: checked.branch.clone(),
            base: checked.tip.clone(),
            checks: checked.policy.setup.iter().chain(&checked.policy.verify).map(|c| c.command.display()).collect(),
            notes: checked.notes.clone(),
            dry_run: body.dry_run,
        };
        if body.dry_run {
            return Ok(answer);
        }
        let run = match before {
            Some(run) => run,
            None => self.store_run(&body, &checked, key, at).await?,
        };
        crate::failpoint::hit("runtime.registered");
        // From here on everything may be repeated: after a crash the same request does it again, with what is stored.
        let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
        if loaded.state.head.seq.0 == 0 {
            self.control(&run, InputKind::Registered, false).await?;
        }
        if loaded.state.head.lifecycle == Lifecycle::Registered {
            self.write_launch(&run, checked.repo, checked.layout, &loaded.launch).await?;
        }
        // What `status` reads when this daemon is gone: the run is to be in it before the user knows its id.
        self.write_status(true).await;
        answer.run_id = run.to_string();
        Ok(answer)
    }

    /// The run that this request made before a crash kept its answer from being stored.
    async fn registered_before(&self, key: Option<&RequestKey>, at: Millis) -> Result<Option<RunId>, Problem> {
        let Some(key) = key else { return Ok(None) };
        match self.inner.store.begin_request(key, at).await.map_err(|e| store_problem(&e))? {
            RequestState::Unfinished { run, .. } => Ok(run),
            RequestState::New | RequestState::Repeat(_) => Ok(None),
            RequestState::Conflict => {
                Err(Problem::new("REQUEST_REUSED", "this request id was used for another request")
                    .next("use a new id for each request"))
            }
        }
    }

    /// The run as rows, not in the queue.
    async fn store_run(
        &self,
        body: &CreateLaunch,
        checked: &Checked,
        request: Option<RequestKey>,
        at: Millis,
    ) -> Result<RunId, Problem> {
        let run = RunId::from_random(random5());
        let launch = launch_doc(body, checked, &run, at);
        let brief = Brief {
            run,
            goal: body.goal.clone(),
            original_goal: body.original_goal.clone(),
            scope: body.scope.clone(),
        };
        let key = repo_key(&checked.repo);
        let mut head = register(brief, at).head;
        // Asked for by name it holds for every start; else each first start looks at what is checked out.
        head.target_branch = body.branch.clone().unwrap_or_default();
        let new = NewRun {
            repo: RepoKey { path: checked.repo.top_level.clone(), key },
            launch: serde_json::to_value(&launch).unwrap_or(Value::Null),
            policy: serde_json::to_value(&checked.values).unwrap_or(Value::Null),
            head,
            priority: checked.values.int("priority"),
            request,
            at,
        };
        let registered = self.inner.store.register(new).await.map_err(|e| store_problem(&e))?;
        Ok(registered.run.run)
    }

    /// Everything that can be wrong, before anything is written. A run that is registered already is only looked up again.
    async fn check_launch(&self, body: &CreateLaunch, registered: bool) -> Result<Checked, Problem> {
        git::version().map_err(|e| git_problem(&e))?;
        let values = PolicyValues::from_stored(&body.policy).and_then(|mut v| {
            if let Some(branch) = &body.branch {
                v.put("branch", Value::from(branch.as_str()))?;
            }
            v.validate().map(|()| v)
        });
        let values =
            values.map_err(|e| Problem::new("POLICY_INVALID", e.to_string()).next("harnessctl config show"))?;
        let policy = Policy::from_values(&values).map_err(|e| Problem::new("POLICY_INVALID", e))?;
        for role in ["planner", "implementer", "verifier"] {
            values
                .agent_of(role)
                .parse::<AgentKind>()
                .map_err(|e| Problem::new("USAGE", e.to_string()).next("harnessctl create-launch --help"))?;
        }
        let (path, init, branch) = (body.repo.clone(), body.init_git && !body.dry_run, asked_branch(&values));
        let found = blocking(move || {
            let path = Path::new(&path);
            // Repeatable: one that was cut off leaves a repository without a commit.
            let repo = if init { git::init_repository(path, &user_env())? } else { git::discover(path)? };
            let (branch, tip) = repo.target(branch.as_deref())?;
            Ok((repo, branch, tip))
        })
        .await;
        let (repo, branch, tip) = found.map_err(|e: git::GitError| git_problem(&e))?;
        let layout = layout(&repo).map_err(|e| Problem::new("REPO_UNUSABLE", e))?;
        let mut notes = notes(&repo, &layout, &policy, &values);
        if !registered {
            self.no_active_run(&repo).await?;
            let plan = layout.path(&FileName::Tasks);
            let found = blocking(move || found_plan(&plan)).await?;
            check_found_plan(&layout, found.as_deref(), &policy, &mut notes)?;
        }
        Ok(Checked { repo, layout, branch, tip: tip.to_string(), values, policy, notes })
    }

    /// One active run per repository (corrections 14).
    pub(super) async fn no_active_run(&self, repo: &RepoFacts) -> Result<(), Problem> {
        let active = self.inner.store.active_run(&repo_key(repo)).await.map_err(|e| store_problem(&e))?;
        let Some(active) = active else { return Ok(()) };
        Err(Problem::new("RUN_ACTIVE", format!("{} is active in {}", active.run, repo.top_level.display()))
            .why("one run at a time works in a repository")
            .next(format!("harnessctl status {0}, or harnessctl stop {0}", active.run)))
    }

    /// The manifest and the exclude block; the previous run's files move to its run directory.
    async fn write_launch(&self, run: &RunId, repo: RepoFacts, layout: Layout, launch: &Value) -> Result<(), Problem> {
        let previous = self.previous_run(&repo, run).await?;
        let dir = run_dir(&self.inner.config, run);
        // What stands there without a run of ours is the predecessor's, whose numbers are not those of our history.
        let previous = previous.map_or_else(|| dir.join("found"), |run| run_dir(&self.inner.config, &run));
        let bytes = harness_proto::doc::render_value(launch).into_bytes();
        let written = blocking(move || {
            let patterns = layout.exclude_patterns();
            let patterns: Vec<&str> = patterns.iter().map(String::as_str).collect();
            git::exclude_block(&repo, &patterns).map_err(|e| git_problem(&e))?;
            rotate(&layout, &previous).map_err(|e| io_problem("the previous run's files cannot be moved", &e))?;
            let failed = |e| io_problem("the launch manifest cannot be written", &e);
            std::fs::create_dir_all(&dir).map_err(|e| io_problem("the run directory cannot be made", &e))?;
            ArtifactWriter::open(layout, &dir).map_err(failed)?.write_launch(&bytes).map_err(failed)
        });
        written.await
    }

    /// Writes what registering was cut off before (P2): a run whose manifest never came to stand in the repository.
    pub(super) async fn finish_registering(&self, loaded: &LoadedRun) -> Result<(), Problem> {
        let run = &loaded.state.head.brief.run;
        let (path, key) = (loaded.repo.path.clone(), run_dir(&self.inner.config, run));
        let found = blocking(move || {
            let repo = git::discover(&path)?;
            Ok((repo, key.join("projected").join("harness-launch.json").is_file()))
        });
        let (repo, copied) = found.await.map_err(|e: git::GitError| git_problem(&e))?;
        let layout = layout(&repo).map_err(|e| Problem::new("REPO_UNUSABLE", e))?;
        if copied && layout.path(&FileName::Launch).is_file() {
            return Ok(());
        }
        self.write_launch(run, repo, layout, &loaded.launch).await
    }

    /// The newest earlier run of the repository that was started: its files are in the way.
    async fn previous_run(&self, repo: &RepoFacts, run: &RunId) -> Result<Option<RunId>, Problem> {
        let filter = crate::store::RunFilter { repo: Some(repo_key(repo)), limit: 20, ..Default::default() };
        let rows = self.inner.store.list_runs(&filter).await.map_err(|e| store_problem(&e))?;
        Ok(rows.into_iter().find(|r| r.run != *run && r.head.started_at.is_some()).map(|r| r.run))
    }
}

/// The branch that was asked for.
fn asked_branch(values: &PolicyValues) -> Option<String> {
    Some(values.text("branch")).filter(|name| !name.is_empty()).map(str::to_owned)
}

fn random5() -> [u8; 5] {
    let bytes = uuid::Uuid::new_v4().into_bytes();
    [bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]]
}

/// Digest of what was asked, so that a reused request id is noticed.
fn fingerprint(body: &CreateLaunch) -> String {
    use sha2::Digest as _;
    let text = serde_json::to_string(body).unwrap_or_default();
    sha2::Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}

fn launch_doc(body: &CreateLaunch, checked: &Checked, run: &RunId, at: Millis) -> LaunchDoc {
    let policy: Map<String, Value> = checked.values.iter().map(|(k, v)| (k.to_owned(), v.clone())).collect();
    let prompt = if body.prompt_text.is_empty() { &body.original_goal } else { &body.prompt_text };
    LaunchDoc {
        approvals: Map::new(),
        config: ConfigDoc {
            allow_task_expansion: checked.policy.expansion,
            execution_policy: checked.policy.execution,
            goal: body.goal.clone(),
            max_task_attempts: i64::from(checked.policy.max_attempts),
            scope: body.scope.clone(),
            session_mode: "background".into(),
            stop_condition: checked.policy.stop_condition.clone(),
        },
        created_at: timestamp(at),
        defaults: Map::new(),
        mode: DOC_MODE.into(),
        notes: body.notes.clone(),
        original_goal: body.original_goal.clone(),
        policy,
        prompt_text: prompt.clone(),
        run_id: run.to_string(),
        updated_at: timestamp(at),
        version: DOC_VERSION,
    }
}

/// What the user should know before the run.
fn notes(repo: &RepoFacts, layout: &Layout, policy: &Policy, values: &PolicyValues) -> Vec<String> {
    let mut notes = Vec::new();
    if layout.in_own_folder() {
        notes.push("HEAD tracks a file with one of our names: the run's files go to .harness/".to_owned());
    }
    if policy.no_verification {
        notes.push(
            "no verification: tasks without a command are accepted on the verifier's word, and marked so".to_owned(),
        );
    } else if policy.verify.is_empty() {
        notes.push("no --verify: each task of the plan must name its own commands".to_owned());
    }
    if policy.execution == ExecutionPolicy::DangerFullAccess {
        notes.push("danger_full_access: agents and evidence are not walled".to_owned());
    }
    if repo.submodules {
        notes.push("submodules are empty in the trees of agents; conflicts in them are yours to solve".to_owned());
    }
    if values.text("land") == "manual" {
        notes.push("land=manual: accepted work reaches the branch when you run `harnessctl land`".to_owned());
    }
    notes
}

/// A plan that stands in the repository must be valid and provable (DESIGN 8, corrections 22, 48).
fn check_found_plan(
    layout: &Layout,
    found: Option<&str>,
    policy: &Policy,
    notes: &mut Vec<String>,
) -> Result<(), Problem> {
    let Some(text) = found else { return Ok(()) };
    let path = layout.path(&FileName::Tasks);
    let tasks = provable(text, policy).map_err(|p| match p.code.as_str() {
        "PLAN_INVALID" => p.next(format!("edit {}, then harnessctl tasks validate {0}", path.display())),
        _ => p,
    })?;
    if tasks > 0 {
        notes.push(format!("{tasks} tasks of the plan that stands here are taken over"));
    }
    Ok(())
}

/// The `tasks.json` that stands in a repository: a regular file of at most 16 MiB in UTF-8, else a refusal that names it.
pub(super) fn found_plan(path: &Path) -> Result<Option<String>, Problem> {
    let shown = path.display();
    let look = format!("harnessctl tasks validate {shown}");
    let bytes = match read_artifact(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(None),
        Err(error) if error.source.kind() == std::io::ErrorKind::FileTooLarge => {
            return Err(Problem::new("PLAN_TOO_LARGE", format!("{shown} is too large"))
                .why("a plan must be smaller than 16 MiB")
                .next(look));
        }
        Err(error) => {
            return Err(Problem::new("PLAN_INVALID", format!("{shown} cannot be read"))
                .why(chain(&error))
                .next(format!("ls -l {shown}")));
        }
    };
    if bytes.len() > MAX_PLAN_BYTES {
        return Err(Problem::new("PLAN_TOO_LARGE", format!("{shown} has {} bytes", bytes.len()))
            .why("a plan must be smaller than 16 MiB")
            .next(look));
    }
    String::from_utf8(bytes).map(Some).map_err(|e| {
        Problem::new("PLAN_INVALID", format!("{shown} is no UTF-8 at byte {}", e.utf8_error().valid_up_to()))
            .why("a plan is JSON, and JSON is UTF-8")
            .next(look)
    })
}

/// Checks the text of a `tasks.json` for a run with this policy; the number of its tasks.
pub(super) fn provable(text: &str, policy: &Policy) -> Result<usize, Problem> {
    let invalid = |detail: String| Problem::new("PLAN_INVALID", detail).why("a run takes a plan whole or not at all");
    // What would prove it is asked below, with an answer of its own.
    let shape = Policy { no_verification: true, ..policy.clone() };
    let imported = import(&BTreeMap::new(), text, ImportSource::Found, &shape, 1).map_err(|e| invalid(e.join("; ")))?;
    let bare: Vec<&str> = imported
        .tasks
        .iter()
        .filter(|t| t.verification.is_empty() && !t.status.is_closed())
        .map(|t| t.id.as_str())
        .take(5)
        .collect();
    if policy.verify.is_empty() && !policy.no_verification && !bare.is_empty() {
        return Err(Problem::new("NO_VERIFICATION", format!("nothing would prove the work of {}", bare.join(", ")))
            .why("the plan names no verification for them and the launch has no --verify")
            .next("add `verification` to those tasks, or pass --verify 'CMD' or --no-verification to create-launch"));
    }
    Ok(imported.tasks.len())
}

/// `tasks validate`: errors of the plan are an answer.
pub(super) fn check_plan(bytes: &[u8]) -> PlanCheckAnswer {
    let schema = "harness.tasks-validate/1".to_owned();
    let Ok(text) = std::str::from_utf8(bytes) else {
        let errors = vec!["tasks.json is no UTF-8".to_owned()];
        return PlanCheckAnswer { schema, ok: false, tasks: 0, errors };
    };
    let Ok(policy) = PolicyValues::preset("dag").map_err(|e| e.to_string()).and_then(|v| Policy::from_values(&v))
    else {
        return PlanCheckAnswer { schema, ok: false, tasks: 0, errors: vec!["BUG: preset dag is invalid".to_owned()] };
    };
    match import(&BTreeMap::new(), text, ImportSource::Found, &policy, 1) {
        Ok(import) => {
            let tasks = u32::try_from(import.tasks.len()).unwrap_or(u32::MAX);
            PlanCheckAnswer { schema, ok: true, tasks, errors: Vec::new() }
        }
        Err(errors) => PlanCheckAnswer { schema, ok: false, tasks: 0, errors },
    }
}
