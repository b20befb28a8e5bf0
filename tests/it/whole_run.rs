//! Whole runs with the built-in agent: registered, started, landed, looked at from three sides.

use std::fs;
use std::path::{Path, PathBuf};

use harness_tests::{RepoKind, Snapshot, TestEnv, check_landed, check_run, living};
use serde_json::Value;

const GOAL: &str = "a notes command-line tool: add, list, search, with tests";

fn create(env: &TestEnv, repo: &Path) -> Value {
    let repo = repo.to_str().unwrap();
    let args = [
        "create-launch",
        "--repo",
        repo,
        "--original-goal",
        GOAL,
        "--goal",
        GOAL,
        "--scope",
        ".",
        "--agent",
        "offline",
        "--json",
    ];
    env.harnessctl(&args).success().json()
}

/// A plain repository with a registered run, as it looked before.
fn registered(env: &TestEnv) -> (PathBuf, Snapshot, String) {
    let repo = env.repo("repo", RepoKind::Plain);
    fs::write(repo.join(".gitignore"), "*.local\n").unwrap();
    env.git(&repo, &["add", ".gitignore"]);
    env.git(&repo, &["commit", "--quiet", "-m", "Ignore local files"]);
    fs::write(repo.join("mine.local"), "mine\n").unwrap();
    let before = Snapshot::of(env, &repo);
    let run = create(env, &repo)["run_id"].as_str().unwrap().to_owned();
    (repo, before, run)
}

#[test]
fn create_launch_saves_the_plan_and_names_the_command_that_starts_it() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let place = repo.to_str().unwrap();
    let args = [
        "create-launch",
        "--repo",
        place,
        "--original-goal",
        GOAL,
        "--goal",
        GOAL,
        "--scope",
        ".",
        "--agent",
        "offline",
    ];
    let done = env.harnessctl(&args).success();
    let said = format!("{}{}", done.stdout, done.stderr);
    assert!(said.contains("harnessctl start"), "{done:?}");
    assert!(repo.join("harness-launch.json").is_file());
    let run = env.store("@last").status();
    assert_eq!(run["lifecycle"], "registered", "{run}");
    assert_eq!(run["usage"]["turns"], 0, "nothing is done before start: {run}");
}

#[test]
fn a_run_lands_one_proven_commit_per_task_and_leaves_everything_else_alone() {
    let env = TestEnv::new();
    let daemon = env.daemon();
    let (repo, before, run) = registered(&env);
    env.harnessctl(&["start", &run]).success();
    let status = env.store(&run).wait_lifecycle(&["completed", "failed", "stopped"]);
    assert_eq!(status["lifecycle"], "completed", "{status:#}");
    let tasks = status["tasks"].as_array().unwrap().len();
    let begin = &before.refs["refs/heads/main"];
    let commits = env.git(&repo, &["rev-list", "--count", &format!("{begin}..main")]);
    assert_eq!(commits.trim(), tasks.to_string());
    let mut broken = check_run(&env, &repo, &run, &before);
    broken.extend(check_landed(&env, &repo, &before));
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(daemon.terminate(), 0);
    assert_eq!(living(env.root().to_str().unwrap()), []);
}

#[test]
fn a_killed_daemon_goes_on_where_it_was() {
    let env = TestEnv::new();
    let daemon = env.daemon();
    let (repo, before, run) = registered(&env);
    env.harnessctl(&["start", &run]).success();
    harness_tests::wait_for("an implementer turn", || {
        let begun = |e: &Value| e["role"] == "implementer" && e["status"] == "turn" && e["decision"] == "started";
        env.store(&run).events().iter().any(begun).then_some(())
    });
    daemon.kill();
    harness_tests::wait_for("its children are gone", || living(&format!("HARNESS_RUN={run}")).is_empty().then_some(()));
    let down = env.harnessctl(&["status", &run, "--json"]);
    assert_eq!(down.code, 3, "{down:?}");
    let _daemon = env.daemon();
    let status = env.store(&run).wait_lifecycle(&["completed", "failed", "stopped"]);
    assert_eq!(status["lifecycle"], "completed", "{status:#}");
    let mut broken = check_run(&env, &repo, &run, &before);
    broken.extend(check_landed(&env, &repo, &before));
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_file_in_the_way_makes_the_landing_wait_and_keeps_its_bytes() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (repo, _, run) = registered(&env);
    // Where the tool's package will be.
    fs::write(repo.join("notes"), "my own notes\n").unwrap();
    env.harnessctl(&["start", &run]).success();
    let status = env.store(&run).wait_lifecycle(&["completed", "failed", "stopped"]);
    assert_eq!(status["lifecycle"], "completed", "{status:#}");
    assert_eq!(status["landing"]["status"], "pending", "{status:#}");
    assert_eq!(fs::read_to_string(repo.join("notes")).unwrap(), "my own notes\n");
    fs::remove_file(repo.join("notes")).unwrap();
    env.harnessctl(&["start", &run]).success();
    harness_tests::wait_for("the landing", || {
        (env.store(&run).status()["landing"]["status"] != "pending").then_some(())
    });
    assert!(repo.join("notes/__main__.py").is_file());
}
