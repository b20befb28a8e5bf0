//! The support must see what it is there to see: each truth is shown a lie.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::process::Stdio;

use crate::{RepoKind, Snapshot, TestEnv, living, wait_for};

#[test]
fn every_kind_of_repository_is_what_it_says() {
    let env = TestEnv::new();
    for kind in RepoKind::ALL {
        let repo = env.repo(&format!("{kind:?}"), *kind);
        let ask = |args: &[&str]| env.command("git").arg("-C").arg(&repo).args(args).output().expect("git starts");
        let says = |args: &[&str]| String::from_utf8_lossy(&ask(args).stdout).trim().to_owned();
        assert_eq!(ask(&["rev-parse", "--git-dir"]).status.success(), *kind != RepoKind::NoGit, "{kind:?}");
        assert_eq!(says(&["rev-parse", "--is-bare-repository"]) == "true", *kind == RepoKind::Bare, "{kind:?}");
        assert_eq!(says(&["rev-parse", "--is-shallow-repository"]) == "true", *kind == RepoKind::Shallow, "{kind:?}");
        let born = ask(&["rev-parse", "--verify", "--quiet", "HEAD"]).status.success();
        assert_eq!(born, !matches!(kind, RepoKind::NoGit | RepoKind::Unborn | RepoKind::Bare), "{kind:?}");
        let on_branch = ask(&["symbolic-ref", "--quiet", "HEAD"]).status.success();
        assert_eq!(on_branch, !matches!(kind, RepoKind::NoGit | RepoKind::Detached), "{kind:?}");
    }
    assert!(env.path("LinkedWorktree/.git").is_file());
    assert!(env.path("Submodule/sub/README.md").is_file());
}

#[test]
fn a_snapshot_sees_every_byte_mode_and_ref() {
    let env = TestEnv::new();
    let repo = env.repo("r", RepoKind::Plain);
    fs::write(repo.join(".gitignore"), "*.log\n").unwrap();
    fs::write(repo.join("x.log"), "ignored\n").unwrap();
    let before = Snapshot::of(&env, &repo);
    assert_eq!(before, Snapshot::of(&env, &repo));
    fs::write(repo.join("x.log"), "Ignored\n").unwrap();
    std::os::unix::fs::symlink("x.log", repo.join("link")).unwrap();
    env.git(&repo, &["branch", "side"]);
    let after = Snapshot::of(&env, &repo);
    let names = |changes: Vec<String>| -> Vec<String> {
        changes.iter().map(|c| c.split(": ").next().unwrap().to_owned()).collect()
    };
    assert_eq!(names(before.changed_files(&after)), ["link", "x.log"]);
    assert_eq!(names(before.changed_refs(&after)), ["refs/heads/side"]);
}

#[test]
fn a_marked_process_is_seen_until_it_is_dead_and_dies_with_its_test() {
    let env = TestEnv::new();
    let mark = format!("HARNESS_RUN=run_{}", std::process::id());
    let (name, value) = mark.split_once('=').unwrap();
    let mut child = env.command("sleep").arg("600").env(name, value).stdout(Stdio::null()).spawn().unwrap();
    // Between fork and exec it has our own environment.
    let seen = wait_for("the process is seen", || living(&mark).pop());
    assert_eq!(u32::try_from(seen.pid).unwrap(), child.id());
    assert!(seen.command.starts_with("sleep"), "{seen:?}");
    drop(env);
    // Dead, and nobody asked for its exit code yet: not living.
    wait_for("the process is dead", || living(&mark).is_empty().then_some(()));
    assert!(!child.wait().unwrap().success());
}
