//! Kept work, rebuilt files, and answers that were given before.

use harness_proto::api::answer::{KeptWork, RebuildAnswer, RecoverAnswer};
use harness_proto::api::request::Recover;
use harness_proto::error::Problem;
use harness_proto::ids::RunId;
use harness_proto::vocab::Lifecycle;
use serde_json::{Value, json};

use super::problem::{git_problem, store_problem};
use crate::api::Recorded;
use crate::clock;
use crate::git::{self, Mirror, Oid, RepoFacts};
use crate::runtime::context::blocking;
use crate::runtime::registry::Runtime;
use crate::store::{RequestKey, RequestState};

impl Runtime {
    async fn mirror_of(&self, run: &RunId) -> Result<(RepoFacts, Mirror), Problem> {
        let row = self.row(run).await?;
        let (path, key) = (row.repo.path, row.repo.key);
        let mirrors = self.inner.config.repos_dir();
        let guard = self.repo_lock(&key).lock_owned().await;
        blocking(move || {
            let _guard = guard;
            let repo = git::discover(&path)?;
            let mirror = Mirror::ensure(&mirrors.join(format!("{key}.git")), &repo)?;
            Ok((repo, mirror))
        })
        .await
        .map_err(|e: git::GitError| git_problem(&e))
    }

    pub(super) async fn kept_names(&self, run: &RunId) -> Result<Vec<String>, Problem> {
        Ok(self.kept(run).await?.into_iter().map(|(name, _)| name).collect())
    }

    async fn kept(&self, run: &RunId) -> Result<Vec<(String, Oid)>, Problem> {
        let (_, mirror) = self.mirror_of(run).await?;
        let name = run.to_string();
        blocking(move || mirror.kept(&name)).await.map_err(|e| git_problem(&e))
    }

    pub(super) async fn recover_work(&self, run: RunId, body: Recover) -> Result<RecoverAnswer, Problem> {
        let row = self.row(&run).await?;
        let mut kept = Vec::new();
        for (name, commit) in self.kept(&run).await? {
            let suffix = name.rsplit_once(&format!("{run}/")).map_or(name.as_str(), |(_, s)| s).to_owned();
            let parts: Vec<&str> = suffix.split('/').collect();
            let (task, attempt) = match parts[..] {
                ["attempts", task, number] => (task.to_owned(), number.parse().unwrap_or(0)),
                _ => (String::new(), 0),
            };
            if body.task.as_ref().is_some_and(|wanted| *wanted != task) {
                continue;
            }
            kept.push(KeptWork { name, commit: commit.to_string(), task, attempt, ..KeptWork::default() });
        }
        kept.sort_by_key(|k| std::cmp::Reverse(k.attempt));
        let mut answer = RecoverAnswer {
            schema: "harness.recover/1".into(),
            run_id: run.to_string(),
            kept,
            branch: String::new(),
            commit: String::new(),
        };
        if let Some(branch) = body.branch {
            // Without a task the run's own head is what people want back.
            let head = Some(row.head.head.clone()).filter(|h| !h.is_empty() && body.task.is_none());
            let commit = head.or_else(|| answer.kept.first().map(|k| k.commit.clone()));
            let commit = commit.as_deref().and_then(Oid::parse).ok_or_else(|| {
                Problem::new("STATE_REFUSED", format!("nothing of {run} is kept"))
                    .why("nothing was integrated, and no attempt left a commit")
                    .next(format!("harnessctl recover --run {run}"))
            })?;
            let (repo, mirror) = self.mirror_of(&run).await?;
            let (name, wanted) = (branch.clone(), commit.clone());
            blocking(move || mirror.recover_branch(&repo, &name, &wanted)).await.map_err(|e| git_problem(&e))?;
            answer.branch = branch;
            answer.commit = commit.to_string();
        }
        Ok(answer)
    }

    pub(super) async fn rebuild_files(&self, run: RunId) -> Result<RebuildAnswer, Problem> {
        let loaded = self.inner.store.load(&run).await.map_err(|e| store_problem(&e))?;
        if loaded.state.head.lifecycle == Lifecycle::Registered {
            return Err(Problem::new("STATE_REFUSED", format!("{run} was never started: it has no files yet"))
                .why("files are written from what a run did")
                .next(format!("harnessctl start {run}")));
        }
        if self.driven().contains(&run) {
            return Err(Problem::new(
                "STATE_REFUSED",
                format!("{run} is being driven: its files are written by its driver"),
            )
            .next(format!("harnessctl stop {run}, then harnessctl rebuild {run}")));
        }
        let files = self.files_lock(&run);
        let _guard = files.lock().await;
        let io = |e: String| Problem::new("IO", e).next("check permissions and free space, then try again");
        let mut projector = self.projector(&loaded, None).map_err(io)?;
        let files = projector.rebuild(&loaded.state).await.map_err(io)?;
        Ok(RebuildAnswer { schema: "harness.rebuild/1".into(), run_id: run.to_string(), files })
    }

    pub(super) async fn recall_answer(&self, request: String) -> Result<Option<Recorded>, Problem> {
        let key = key(&request);
        match self.inner.store.begin_request(&key, clock::now()).await.map_err(|e| store_problem(&e))? {
            RequestState::Repeat(answer) => Ok(recorded(&answer)),
            RequestState::New | RequestState::Unfinished { .. } | RequestState::Conflict => Ok(None),
        }
    }

    pub(super) async fn remember_answer(&self, request: String, recorded: Recorded) -> Result<(), Problem> {
        let answer = json!({"fingerprint": recorded.fingerprint, "status": recorded.status, "body": recorded.body});
        self.inner.store.finish_request(&key(&request), &answer).await.map_err(|e| store_problem(&e))
    }
}

/// Answers are kept whole; what was asked is in the recorded fingerprint.
fn key(request: &str) -> RequestKey {
    RequestKey { key: format!("answer {request}"), verb: "answer".into(), body_hash: String::new() }
}

fn recorded(answer: &Value) -> Option<Recorded> {
    Some(Recorded {
        fingerprint: answer["fingerprint"].as_str()?.to_owned(),
        status: u16::try_from(answer["status"].as_u64()?).ok()?,
        body: answer["body"].as_str()?.to_owned(),
    })
}
