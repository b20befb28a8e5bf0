//! Three truths, one question: did the run keep its promises? (DESIGN 1, 15; reliability.md 4.)

use std::path::Path;

use serde_json::Value;

use crate::env::TestEnv;
use crate::processes::living;
use crate::snapshot::Snapshot;

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_default()
}

/// Every broken promise of a run at rest, for a repository that looked like `before` when it was registered.
#[must_use]
pub fn check_run(env: &TestEnv, repo: &Path, run: &str, before: &Snapshot) -> Vec<String> {
    let mut broken = Vec::new();
    let status = env.store(run).status();
    broken.extend(history(env, run));
    broken.extend(tasks(env, repo, &status, run));
    broken.extend(refs(env, repo, before));
    broken.extend(processes(text(&status, "run_id")));
    let check = env.harnessctl(&["db", "check", "--json"]);
    if check.code != 0 {
        broken.push(format!("db check: {}{}", check.stdout, check.stderr));
    }
    broken
}

/// P2: numbers without gaps, one end at most, and no task integrated twice.
fn history(env: &TestEnv, run: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let events = env.store(run).events();
    for (n, event) in events.iter().enumerate() {
        if event["seq"].as_u64() != Some(n as u64 + 1) {
            broken.push(format!("event {} is number {}", event["seq"], n + 1));
        }
    }
    let completed = events.iter().filter(|e| e["status"] == "run" && e["decision"] == "completed").count();
    if completed > 1 {
        broken.push(format!("the run completed {completed} times"));
    }
    let mut advanced: Vec<&str> = events
        .iter()
        .filter(|e| e["status"] == "integrated" && e["decision"] == "advanced")
        .map(|e| text(e, "task_id"))
        .collect();
    advanced.sort_unstable();
    if let Some(twice) = advanced.windows(2).find(|pair| pair[0] == pair[1]) {
        broken.push(format!("{} was integrated twice", twice[0]));
    }
    broken
}

/// P1: every done task is a commit on whose tree commands passed, and which a verifier accepted.
fn tasks(env: &TestEnv, repo: &Path, status: &Value, run: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let empty = Vec::new();
    let events = env.store(run).events();
    for task in status["tasks"].as_array().unwrap_or(&empty).iter().filter(|task| task["status"] == "done") {
        let id = text(task, "id");
        let told = env.store(run).task(id);
        let commit = text(&told["task"], "integrated_commit");
        // Not landed yet, it may exist in the mirror only; `check_landed` asks for the rest.
        let found = |e: &Value| e["status"] == "plan_import" && e["data"]["source"] == "found";
        let attempts = told["attempts"].as_array().unwrap_or(&empty);
        if commit.is_empty() && attempts.is_empty() && events.iter().any(found) {
            continue; // It was done in the plan that the user had before the run.
        }
        if commit.is_empty() {
            broken.push(format!("{id} is done and has no commit"));
            continue;
        }
        let evidence: Vec<&Value> = attempts.iter().filter_map(|a| a["evidence"].as_array()).flatten().collect();
        let tree = tree_of(env, repo, commit);
        let own = evidence.iter().any(|e| e["result"] == "PASS" && (tree.is_empty() || e["tree"] == tree.as_str()));
        let proven = own || proven_on_a_rebuilt_tip(env, repo, commit, &events);
        if !proven && told["task"]["unproven"] != true {
            broken.push(format!("{id} is done as {commit}, and no command passed on its tree {tree}"));
        }
        if !attempts.iter().any(|attempt| attempt["verdict"] == "accept") {
            broken.push(format!("{id} is done and no verifier accepted it"));
        }
    }
    broken
}

fn tree_of(env: &TestEnv, repo: &Path, commit: &str) -> String {
    let words = ["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")];
    let known = env.command("git").arg("-C").arg(repo).args(words).output();
    known.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned()).unwrap_or_default()
}

/// Whether the history has a pass on the tree of this commit, or it is part of a rebuilt stack whose tip has one (DESIGN 6).
fn proven_on_a_rebuilt_tip(env: &TestEnv, repo: &Path, commit: &str, events: &[Value]) -> bool {
    let passed = |tree: &str| {
        let is = |e: &&Value| e["status"] == "evidence" && e["decision"] == "pass" && e["data"]["tree"] == tree;
        !tree.is_empty() && events.iter().any(|e| is(&e))
    };
    let rebuilt = events.iter().filter(|e| e["status"] == "integrated" && e["decision"] == "restacked");
    let tips = rebuilt.map(|e| text(e, "commit")).filter(|tip| {
        let words = ["merge-base", "--is-ancestor", commit, tip];
        env.command("git").arg("-C").arg(repo).args(words).status().is_ok_and(|status| status.success())
    });
    std::iter::once(commit).chain(tips).any(|commit| passed(&tree_of(env, repo, commit)))
}

/// P3: no ref of the user's but the target moved, and the target only forward; git finds nothing wrong.
fn refs(env: &TestEnv, repo: &Path, before: &Snapshot) -> Vec<String> {
    let now = Snapshot::of(env, repo);
    let mut broken = Vec::new();
    for (name, object) in before.refs.iter().filter(|(name, _)| !name.starts_with("refs/harness/")) {
        match now.refs.get(name) {
            Some(same) if same == object => {}
            Some(other) if name != "HEAD" => {
                let forward = env
                    .command("git")
                    .arg("-C")
                    .arg(repo)
                    .args(["merge-base", "--is-ancestor", object, other])
                    .status();
                if !forward.is_ok_and(|status| status.success()) {
                    broken.push(format!("{name} moved from {object} to {other}, which does not descend from it"));
                }
            }
            other => broken.push(format!("{name} was {object} and is {other:?}")),
        }
    }
    let strange = now.refs.keys().filter(|name| !before.refs.contains_key(*name) && !name.starts_with("refs/harness/"));
    broken.extend(strange.map(|name| format!("{name} is new")));
    let fsck =
        env.command("git").arg("-C").arg(repo).args(["fsck", "--full", "--no-dangling"]).output().expect("git starts");
    if !fsck.status.success() {
        broken.push(format!("git fsck: {}", String::from_utf8_lossy(&fsck.stderr)));
    }
    let lock = repo.join(".git/index.lock");
    if lock.exists() {
        broken.push(format!("{} was left", lock.display()));
    }
    broken
}

/// P2: nothing of a run at rest lives.
fn processes(run: &str) -> Vec<String> {
    let mark = format!("HARNESS_RUN={run}");
    living(&mark).into_iter().map(|process| format!("{} still lives: {}", process.pid, process.command)).collect()
}

/// Every broken promise about the checkout of a run that landed everything: it is exactly the target's tree, and every file that
/// the run did not land is as it was, byte for byte.
#[must_use]
pub fn check_landed(env: &TestEnv, repo: &Path, before: &Snapshot) -> Vec<String> {
    let mut broken = Vec::new();
    let now = Snapshot::of(env, repo);
    let Some(branch) = before.refs.get("HEAD").and_then(|head| head.strip_prefix("ref: ")) else {
        return vec!["the checkout was on no branch".into()];
    };
    let (Some(old), Some(new)) = (before.refs.get(branch), now.refs.get(branch)) else {
        return vec![format!("{branch} is gone")];
    };
    let landed: Vec<String> = env
        .git(repo, &["diff", "--name-only", "-z", old, new])
        .split('\0')
        .filter(|p| !p.is_empty())
        .map(str::to_owned)
        .collect();
    // The run's own files, hidden by the marked block in info/exclude.
    let ours = |path: &str| {
        path.starts_with("harness-")
            || path.starts_with(".harness")
            || path.starts_with("reports/")
            || path == "tasks.json"
            || path == "plan.md"
    };
    for change in before.changed_files(&now) {
        let path = change.split(": ").next().unwrap_or_default().to_owned();
        let within = landed.iter().any(|p| *p == path || path.ends_with('/') && p.starts_with(&path));
        if !within && !ours(&path) {
            broken.push(format!("not landed and changed: {change}"));
        }
    }
    for path in &landed {
        let listed = env.git(repo, &["ls-tree", new, "--", path]);
        let there = std::fs::symlink_metadata(repo.join(path)).is_ok();
        if listed.is_empty() == there {
            broken.push(format!("{path} was landed and is not as the target has it"));
        }
    }
    let differs = env.git(repo, &["diff", "--name-only", "HEAD"]);
    for path in differs.lines().filter(|path| landed.iter().any(|p| p == path)) {
        broken.push(format!("{path} was landed and differs from the target"));
    }
    broken
}
