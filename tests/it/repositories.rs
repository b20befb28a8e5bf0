//! Every kind of repository has a defined answer (DESIGN 6): it runs, or it is refused with exit 2, a reason and the next command.

use std::fs;
use std::path::Path;

use harness_tests::{Finished, RepoKind, Snapshot, TestEnv};

use crate::bench::{World, text};

/// A folder that may be no repository cannot be looked at by git.
fn refused(kind: RepoKind, code: &str, next: &str) {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", kind);
    let before = files(&repo);
    let done = create(&env, &repo, &[]);
    assert_eq!(done.code, 2, "{kind:?} {done:?}");
    assert!(done.stderr.contains(code), "{kind:?} {done:?}");
    let told = done.stderr.lines().find(|line| line.starts_with("next:")).unwrap_or_default();
    assert!(told.contains(next), "{kind:?} {done:?}");
    assert_eq!(files(&repo), before, "nothing is written: {kind:?}");
    assert_eq!(env.harnessctl(&["list", "--json"]).success().json()["runs"].as_array().unwrap().len(), 0);
}

fn files(repo: &Path) -> Vec<String> {
    let mut all: Vec<String> =
        fs::read_dir(repo).unwrap().map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    all.sort();
    all
}

fn create(env: &TestEnv, repo: &Path, extra: &[&str]) -> Finished {
    let place = repo.to_string_lossy();
    let mut args = vec!["create-launch", "--repo", &place, "--original-goal", "g", "--goal", "g", "--scope", "."];
    args.extend(["--agent", "offline", "--verify", "true"]);
    args.extend(extra);
    env.harnessctl(&args)
}

#[test]
fn a_folder_without_git_is_refused_with_the_command() {
    refused(RepoKind::NoGit, "--init-git", "git init");
}

#[test]
fn a_bare_repository_is_refused() {
    refused(RepoKind::Bare, "bare_repository", "git clone");
}

/// weaknesses 7: a repository without a commit is no planner loop.
#[test]
fn an_unborn_branch_is_refused_with_the_command() {
    refused(RepoKind::Unborn, "unborn_branch", "git commit");
}

/// weaknesses 13: work of a run never goes to no branch.
#[test]
fn a_detached_head_is_refused_and_branch_is_the_answer() {
    refused(RepoKind::Detached, "detached_head", "--branch");
    let world = World::of(RepoKind::Detached);
    let _daemon = world.env.daemon();
    let (_, status) = world.complete(&["--branch", "main"]);
    assert_eq!(status["landing"]["status"], "landed", "{status:#}");
    assert_eq!(world.landed("main").len(), 1);
    assert!(!world.repo.join("work").exists(), "HEAD stays where it was");
}

#[test]
fn init_git_makes_a_repository_of_a_folder() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::NoGit);
    create(&env, &repo, &["--init-git"]).success();
    assert_eq!(env.git(&repo, &["rev-list", "--count", "HEAD"]).trim(), "1");
    assert!(repo.join("README.md").is_file());
}

/// Runs, lands, and leaves git content.
fn runs(kind: RepoKind) -> World {
    let world = World::of(kind);
    {
        let _daemon = world.env.daemon();
        let (_, status) = world.complete(&[]);
        assert_eq!(status["landing"]["status"], "landed", "{kind:?} {status:#}");
        assert!(world.repo.join("work/T-001.txt").is_file(), "{kind:?}");
    }
    world
}

#[test]
fn a_shallow_clone_runs() {
    let world = runs(RepoKind::Shallow);
    assert_eq!(world.git(&["rev-parse", "--is-shallow-repository"]), "true");
    assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "2");
}

#[test]
fn a_repository_with_long_object_ids_runs() {
    let world = runs(RepoKind::Sha256);
    assert_eq!(world.git(&["rev-parse", "HEAD"]).len(), 64);
}

#[test]
fn a_linked_worktree_runs_and_its_main_tree_is_left_alone() {
    let world = runs(RepoKind::LinkedWorktree);
    assert_eq!(text(&world.status("@last")["branch"]), "side");
    let main = world.env.path("repo-main");
    assert!(!main.join("work").exists());
    assert_eq!(world.env.git(&main, &["status", "--porcelain"]), "");
}

/// weaknesses 22: submodules are empty in trees of agents; create-launch says so.
#[test]
fn a_repository_with_a_submodule_runs_and_says_what_agents_see() {
    let world = World::of(RepoKind::Submodule);
    let _daemon = world.env.daemon();
    let done = world.create(&[]).success().json();
    assert!(done["notes"].to_string().contains("submodule"), "{done:#}");
    world.ctl(&["start", "@last"]).success();
    world.completed("@last");
    assert!(world.repo.join("sub/README.md").is_file(), "the submodule stays checked out");
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

/// DESIGN 10: a project with a `tasks.json` of its own keeps it.
#[test]
fn a_tracked_tasks_json_sends_our_files_to_a_folder_of_their_own() {
    let world = World::of(RepoKind::TrackedTasks);
    let _daemon = world.env.daemon();
    let done = world.create(&[]).success().json();
    assert!(done["notes"].to_string().contains(".harness/"), "{done:#}");
    world.ctl(&["start", "@last"]).success();
    world.completed("@last");
    assert_eq!(fs::read_to_string(world.repo.join("tasks.json")).unwrap(), "{\"theirs\": true}\n");
    for name in ["tasks.json", "harness-launch.json", "harness-events.tsv"] {
        assert!(world.repo.join(".harness").join(name).is_file(), "{name}");
        assert!(name == "tasks.json" || !world.repo.join(name).exists(), "{name}");
    }
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

/// A sub-folder means its repository, and says so.
#[test]
fn a_sub_folder_means_its_repository() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let inside = world.repo.join("deep/er");
    fs::create_dir_all(&inside).unwrap();
    let codex = world.env.path("codex");
    let args = ["create-launch", "--json", "--repo", inside.to_str().unwrap(), "--original-goal", "g", "--goal", "g"];
    let more = ["--scope", ".", "--verify", "true", "--codex-bin", codex.to_str().unwrap()];
    let done = world.ctl(&[&args[..], &more].concat()).success().json();
    let top = fs::canonicalize(&world.repo).unwrap();
    assert_eq!(text(&done["launch_path"]), top.join("harness-launch.json").to_string_lossy());
    world.ctl(&["start", "--repo", inside.to_str().unwrap()]).success();
    world.completed("@last");
    assert_eq!(files(&world.repo.join("deep")), ["er"]);
}

/// Odd names of files, and a path with blanks and letters beyond ASCII.
#[test]
fn a_repository_at_an_odd_place_with_odd_names_runs() {
    let mut world = World::new();
    let odd = world.env.path("a b é");
    fs::rename(&world.repo, &odd).unwrap();
    world.repo = odd;
    world.set(&[("FILE", "dir x/-ü {task}.txt")]);
    let _daemon = world.env.daemon();
    world.complete(&[]);
    assert!(world.repo.join("dir x/-ü T-001.txt").is_file());
    assert_eq!(Snapshot::of(&world.env, &world.repo).refs["HEAD"], "ref: refs/heads/main");
}
