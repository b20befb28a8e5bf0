//! The oracle of a run that was killed and went on: store, git, process table, and every file beside them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use harness_tests::{Snapshot, TestEnv, check_landed, check_run, living};
use serde_json::Value;

use crate::drive::Keeper;
use crate::scene::{Checkout, Stage};

/// Every broken promise of a completed run; a daemon must answer.
pub(crate) fn broken(stage: &Stage, run: &str) -> Vec<String> {
    let (env, repo, before) = (&stage.env, &stage.repo, stage.before());
    let status = env.store(run).status();
    let mut broken = check_run(env, repo, run, &before);
    // What was rebuilt on the user's own commits is proven at its tip, once for all of its tasks (DESIGN 6).
    if proven_at_the_tip(env, run, &status) {
        broken.retain(|line| !line.contains("and no command passed on its tree"));
    }
    if stage.scene.again {
        broken.retain(|line| line != "refs/heads/kept is new");
    }
    broken.extend(registered(env, repo));
    if stage.scene.checkout == Checkout::Elsewhere {
        broken.extend(untouched(env, repo, &before));
    } else {
        let landed = check_landed(env, repo, &before).into_iter();
        // In scene `moved` the user writes this file while the run works, and may be cut off before the commit.
        broken.extend(landed.filter(|line| !line.starts_with("not landed and changed: theirs.txt")));
    }
    broken.extend(linear(stage, &status, &before));
    broken.extend(mirrors(env, repo, run));
    broken.extend(strays(env, repo));
    broken.extend(lines(env, repo, run));
    broken.extend(ledger(env, &status));
    broken
}

/// Ends the daemon, then nothing with a path of the test in its environment may live.
pub(crate) fn nothing_lives(env: &TestEnv, keeper: Keeper<'_>) -> Vec<String> {
    keeper.finish();
    let left = living(env.root().to_str().unwrap());
    left.into_iter().map(|p| format!("{} outlived the daemon: {}", p.pid, p.command)).collect()
}

fn proven_at_the_tip(env: &TestEnv, run: &str, status: &Value) -> bool {
    let events = env.store(run).events();
    let tip = &status["integration_head"];
    events.iter().any(|e| e["status"] == "landed" && e["decision"] == "restacked" && e["commit"] == *tip)
        && events.iter().any(|e| e["status"] == "evidence" && e["decision"] == "pass" && e["commit"] == *tip)
}

/// What registering leaves, also when the daemon died meanwhile: the manifest, and our names hidden from git.
fn registered(env: &TestEnv, repo: &Path) -> Vec<String> {
    let mut broken = Vec::new();
    for name in ["harness-launch.json", "harness-state.json", "tasks.json"] {
        if !repo.join(name).is_file() {
            broken.push(format!("{name} is missing"));
        }
    }
    let seen = env.git(repo, &["status", "--porcelain", "--untracked-files=all"]);
    broken.extend(seen.lines().filter(|l| ours(&l[3..])).map(|l| format!("git status shows our own file: {l}")));
    broken
}

fn ours(path: &str) -> bool {
    path.starts_with("harness-")
        || path.starts_with(".harness")
        || path.starts_with("reports/")
        || path == "tasks.json"
        || path == "plan.md"
}

/// A checkout of another branch than the target: every file as it was.
fn untouched(env: &TestEnv, repo: &Path, before: &Snapshot) -> Vec<String> {
    let now = Snapshot::of(env, repo);
    let changed = before.changed_files(&now).into_iter();
    changed
        .filter(|change| !ours(change.split(": ").next().unwrap_or_default()))
        .map(|change| format!("not checked out and changed: {change}"))
        .collect()
}

/// Each done task is exactly one commit of the target, in a row, and the target is the integration head.
fn linear(stage: &Stage, status: &Value, before: &Snapshot) -> Vec<String> {
    let (env, repo, target) = (&stage.env, &stage.repo, stage.scene.target());
    let begin = &before.refs[&format!("refs/heads/{target}")];
    let format = "--format=%H%x09%P%x09%(trailers:key=Harness-Task,valueonly,separator=%x2C)";
    let log = env.git(repo, &["log", "--reverse", format, &format!("{begin}..{target}")]);
    let mut broken = Vec::new();
    let mut commits: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut last = begin.as_str();
    for line in log.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        if words[1] != last {
            broken.push(format!("{} has the parents `{}`, not {last}", words[0], words[1]));
        }
        last = words[0];
        commits.entry(words[2]).or_default().push(words[0]);
    }
    // Commits of the user's carry no trailer.
    commits.remove("");
    let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
    let runs = if stage.scene.again { 2 } else { 1 };
    for task in &tasks {
        let id = task["id"].as_str().unwrap_or_default();
        let found = commits.remove(id).unwrap_or_default();
        if task["status"] != "done" || found.len() != runs {
            broken.push(format!("{id} is {} and has the commits {found:?}", task["status"]));
        }
        let told = env.store(status["run_id"].as_str().unwrap_or_default()).task(id);
        let known = told["task"]["integrated_commit"].as_str().unwrap_or_default();
        if found.last() != Some(&known) {
            broken.push(format!("{id} is {known} in the store and {found:?} in git"));
        }
    }
    if tasks.is_empty() || !commits.is_empty() {
        broken.push(format!("{} tasks; commits of no task: {commits:?}", tasks.len()));
    }
    broken
}

/// The mirror: sound, its head is the target, no tree is left, names of runs only.
fn mirrors(env: &TestEnv, repo: &Path, run: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let full = env.store(run).status()["run_id"].as_str().unwrap_or_default().to_owned();
    let mut heads = Vec::new();
    for entry in fs::read_dir(env.state_dir().join("repos")).unwrap().flatten() {
        let mirror = entry.path();
        let git = |args: &[&str]| env.command("git").arg("--git-dir").arg(&mirror).args(args).output().unwrap();
        let text = |args: &[&str]| String::from_utf8_lossy(&git(args).stdout).trim().to_owned();
        let fsck = git(&["fsck", "--full", "--no-dangling"]);
        if !fsck.status.success() {
            broken.push(format!("fsck of {}: {}", mirror.display(), String::from_utf8_lossy(&fsck.stderr)));
        }
        let refs = text(&["for-each-ref", "--format=%(refname)"]);
        broken
            .extend(refs.lines().filter(|r| !r.starts_with("refs/harness/run_")).map(|r| format!("{r} in the mirror")));
        heads.push(text(&["rev-parse", "--verify", "--quiet", &format!("refs/harness/{full}/integration")]));
        let trees = text(&["worktree", "list", "--porcelain"]);
        if trees.matches("worktree ").count() > 1 {
            broken.push(format!("trees are left: {trees}"));
        }
    }
    let pinned = env.git(repo, &["for-each-ref", "--format=%(objectname)", &format!("refs/harness/{full}/head")]);
    if !heads.iter().any(|head| head == pinned.trim()) {
        broken.push(format!("the target landed {} and the integration heads are {heads:?}", pinned.trim()));
    }
    let work = env.state_dir().join("work").join(&full);
    if work.exists() {
        broken.push(format!("{} is left", work.display()));
    }
    broken
}

/// Locks and temporary files that nobody owns any more, in repository, state directory and run directories.
fn strays(env: &TestEnv, repo: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for top in [repo.to_owned(), env.state_dir(), env.path("runs")] {
        walk(&top, &mut found);
    }
    let allowed = [env.state_dir().join("harnessd.lock")];
    found.retain(|path| !allowed.iter().any(|a| Path::new(path) == a));
    found.into_iter().map(|path| format!("{path} was left")).collect()
}

fn walk(folder: &Path, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let temporary = name.starts_with(".harness-") || name.starts_with("tmp_") || name.ends_with(".harness-new");
        if temporary || Path::new(&name).extension().is_some_and(|e| e == "lock" || e == "tmp") {
            found.push(path.display().to_string());
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(&path, found);
        }
    }
}

/// Both event files: whole lines, numbered from 1 without a gap, as many as the store has.
fn lines(env: &TestEnv, repo: &Path, run: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let count = env.store(run).events().len();
    let tsv = fs::read_to_string(repo.join("harness-events.tsv")).unwrap_or_default();
    let full = env.store(run).status()["run_id"].as_str().unwrap_or_default().to_owned();
    let json = fs::read_to_string(env.path("runs").join(full).join("events.log")).unwrap_or_default();
    let columns = tsv.lines().next().map_or(0, |head| head.split('\t').count());
    if tsv.lines().count() != count + 1 || !tsv.ends_with('\n') || tsv.lines().any(|l| l.split('\t').count() != columns)
    {
        broken.push(format!("harness-events.tsv has {} lines for {count} events:\n{tsv}", tsv.lines().count()));
    }
    let mut seqs = Vec::new();
    for line in json.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(event) => seqs.push(event["seq"].as_u64().unwrap_or_default()),
            Err(error) => broken.push(format!("events.log has a torn line ({error}): {line}")),
        }
    }
    if seqs != (1..=count as u64).collect::<Vec<_>>() {
        broken.push(format!("events.log has {seqs:?} for {count} events"));
    }
    broken
}

/// What the scripted agent really did: one commit of each task was taken, whatever was tried besides.
fn ledger(env: &TestEnv, status: &Value) -> Vec<String> {
    let text = fs::read_to_string(env.path("ledger")).unwrap_or_default();
    let mut broken = Vec::new();
    let made: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if made.len() != text.lines().count() {
        broken.push("the ledger has a torn line".to_owned());
    }
    if text.is_empty() {
        return broken;
    }
    for task in status["tasks"].as_array().into_iter().flatten() {
        let begun = made.iter().filter(|e| e["task"] == task["id"] && e["effect"] == "commit_made").count();
        if begun == 0 {
            broken.push(format!("{} is done and no agent made a commit for it", task["id"]));
        }
    }
    broken
}
