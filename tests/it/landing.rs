//! Landing into a checkout that is the user's (P3, DESIGN 6): never over anything of theirs, and the run goes on.

use std::fs;

use crate::bench::{World, text};

/// Runs to the end with something in the way; then it is cleared and `start` lands. `clear` gives the checkout back.
fn waits(prepare: impl Fn(&World), why: &str, unchanged: impl Fn(&World), clear: impl Fn(&World)) {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.env.commit(&world.repo, "work/T-001.txt", "as committed\n");
    fs::write(world.repo.join(".git/info/exclude"), "*.local\n").unwrap();
    prepare(&world);
    world.settle();
    let run = world.start(&[]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["lifecycle"]), (0, &"completed".into()), "{status:#}\n{}", world.history(&run));
    assert_eq!(status["landing"]["status"], "pending", "{why}: {status:#}");
    assert!(text(&status["landing"]["why"]).contains(why), "{why}: {status:#}");
    assert!(!text(&status["landing"]["command"]).is_empty() || !text(&status["next"]).is_empty(), "{status:#}");
    assert_eq!(world.git(&["rev-parse", "main"]), world.before().refs["refs/heads/main"]);
    unchanged(&world);
    let kept = world.ctl(&["recover", "--run", &run, "--branch", "rescue"]).success();
    assert_eq!(world.landed("rescue").len(), 1, "{kept:?}");
    clear(&world);
    world.ctl(&["start", &run]).success();
    assert_eq!(world.wait(&run, "landed").0, 0, "{}", world.history(&run));
    assert!(fs::read_to_string(world.repo.join("work/T-001.txt")).unwrap().starts_with("T-001 attempt 1"));
    assert_eq!(world.git(&["rev-parse", "main"]), text(&world.status(&run)["integration_head"]));
}

const MINE: &str = "mine, not committed\n";

/// weaknesses 12: an unstaged edit of a touched file.
#[test]
fn an_edit_of_a_touched_file_makes_the_landing_wait() {
    let file = |world: &World| world.repo.join("work/T-001.txt");
    waits(
        |world| fs::write(file(world), MINE).unwrap(),
        "local_changes",
        |world| assert_eq!(fs::read_to_string(file(world)).unwrap(), MINE),
        |world| drop(world.git(&["checkout", "--", "work/T-001.txt"])),
    );
}

/// weaknesses 12: a staged edit of a touched file.
#[test]
fn a_staged_edit_of_a_touched_file_makes_the_landing_wait() {
    let file = |world: &World| world.repo.join("work/T-001.txt");
    waits(
        |world| {
            fs::write(file(world), MINE).unwrap();
            world.git(&["add", "work/T-001.txt"]);
        },
        "changes",
        |world| assert_eq!(world.git(&["diff", "--cached", "--name-only"]), "work/T-001.txt"),
        |world| drop(world.git(&["reset", "--quiet", "--hard"])),
    );
}

/// The user is in the middle of a merge.
#[test]
fn a_merge_in_progress_makes_the_landing_wait() {
    waits(
        |world| {
            world.git(&["checkout", "--quiet", "-b", "side"]);
            world.env.commit(&world.repo, "side.txt", "side\n");
            world.git(&["checkout", "--quiet", "main"]);
            world.git(&["merge", "--quiet", "--no-ff", "--no-commit", "side"]);
        },
        "operation_in_progress",
        |world| assert!(world.repo.join(".git/MERGE_HEAD").is_file()),
        |world| drop(world.git(&["merge", "--abort"])),
    );
}

/// weaknesses 12: the user's own git holds the index; the lock is not removed.
#[test]
fn an_index_lock_of_the_user_makes_the_landing_wait() {
    waits(
        |world| fs::write(world.repo.join(".git/index.lock"), "").unwrap(),
        "index_locked",
        |world| assert!(world.repo.join(".git/index.lock").is_file()),
        |world| fs::remove_file(world.repo.join(".git/index.lock")).unwrap(),
    );
}

/// An ignored file where a new one goes keeps its bytes.
#[test]
fn an_ignored_file_in_the_way_keeps_its_bytes() {
    let world = World::new();
    let _daemon = world.env.daemon();
    fs::write(world.repo.join(".git/info/exclude"), "work/\n").unwrap();
    fs::create_dir(world.repo.join("work")).unwrap();
    fs::write(world.repo.join("work/T-001.txt"), MINE).unwrap();
    world.settle();
    let (run, status) = world.complete(&[]);
    assert_eq!(status["landing"]["why"], "files_in_the_way", "{status:#}");
    assert_eq!(status["landing"]["paths"][0], "work/T-001.txt");
    assert_eq!(fs::read_to_string(world.repo.join("work/T-001.txt")).unwrap(), MINE);
    fs::remove_file(world.repo.join("work/T-001.txt")).unwrap();
    world.ctl(&["start", &run]).success();
    assert_eq!(world.wait(&run, "landed").0, 0);
}

/// P3: what is dirty and not touched by the run stays as it is, staged, unstaged, untracked, ignored, and the landing goes through.
#[test]
fn a_dirty_checkout_blocks_nothing_and_keeps_every_byte() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.env.commit(&world.repo, "other.txt", "as committed\n");
    world.env.commit(&world.repo, "staged.txt", "as committed\n");
    fs::write(world.repo.join(".git/info/exclude"), "*.local\n").unwrap();
    for name in ["other.txt", "staged.txt", "untracked.txt", "ignored.local"] {
        fs::write(world.repo.join(name), MINE).unwrap();
    }
    world.git(&["add", "staged.txt"]);
    let dirt = world.git(&["status", "--porcelain"]);
    world.settle();
    let (_, status) = world.complete(&[]);
    assert_eq!(status["landing"]["status"], "landed", "{status:#}");
    let broken = harness_tests::check_landed(&world.env, &world.repo, &world.before());
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(world.git(&["status", "--porcelain"]), dirt);
    assert_eq!(world.landed("main").len(), 1);
}

/// weaknesses 13: the user switches branch during the run; the target stays the branch of the start.
#[test]
fn a_switched_branch_gets_nothing_and_the_target_gets_everything() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("DELAY_VERIFIER", "2")]);
    let run = world.start(&[]);
    world.begun("verifier", 1);
    world.git(&["checkout", "--quiet", "-b", "my-feature"]);
    let mine = world.git(&["rev-parse", "HEAD"]);
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["landing"]["status"]), (0, &"landed".into()), "{status:#}");
    assert_eq!(world.landed("main").len(), 1);
    assert_eq!(world.git(&["rev-parse", "my-feature"]), mine);
    assert_eq!(world.git(&["symbolic-ref", "--short", "HEAD"]), "my-feature");
    assert!(!world.repo.join("work").exists(), "the checkout of another branch is not touched");
}

/// The branch is checked out in another worktree of the user's: that one is brought along.
#[test]
fn a_target_that_is_checked_out_elsewhere_is_landed_there() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let elsewhere = world.env.path("elsewhere");
    world.git(&["worktree", "add", "--quiet", "-b", "target", elsewhere.to_str().unwrap()]);
    world.settle();
    let (_, status) = world.complete(&["--branch", "target"]);
    assert_eq!(status["landing"]["status"], "landed", "{status:#}");
    assert!(elsewhere.join("work/T-001.txt").is_file());
    assert_eq!(world.env.git(&elsewhere, &["status", "--porcelain"]), "");
    assert!(!world.repo.join("work").exists());
}

/// `--branch`: one that is checked out nowhere moves without a checkout.
#[test]
fn a_target_that_is_checked_out_nowhere_moves_alone() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.git(&["branch", "target"]);
    world.settle();
    let (_, status) = world.complete(&["--branch", "target"]);
    assert_eq!((&status["branch"], &status["landing"]["status"]), (&"target".into(), &"landed".into()));
    assert_eq!((world.landed("target").len(), world.landed("main").len()), (1, 0));
    assert!(!world.repo.join("work").exists());
}

/// The user commits to the target meanwhile: the accepted work is rebuilt on that, with evidence at the tip.
#[test]
fn a_target_that_the_user_moved_is_built_upon_with_evidence_at_the_tip() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "2"), ("DELAY_VERIFIER", "2")]);
    let run = world.start(&["--set", "land=end"]);
    world.begun("verifier", 1);
    let theirs = world.env.commit(&world.repo, "theirs.txt", "theirs\n");
    let status = world.completed(&run);
    assert_eq!(status["landing"]["status"], "landed", "{status:#}");
    world.git(&["merge-base", "--is-ancestor", &theirs, "main"]);
    assert_eq!(world.landed("main").len(), 3);
    assert_eq!(world.events(&run, "integrated", "restacked").len(), 1, "{}", world.history(&run));
    let tree = world.git(&["rev-parse", "main^{tree}"]);
    let passed = world.events(&run, "evidence", "pass");
    assert!(
        passed.iter().any(|e| e["data"]["tree"] == tree.as_str() && e["data"]["purpose"] == "restack"),
        "{passed:#?}"
    );
    assert_eq!(world.git(&["status", "--porcelain"]), "");
}

/// A rebuilt tip that fails its commands lands nothing and needs the user.
#[test]
fn a_rebuilt_tip_that_fails_lands_nothing() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("DELAY_VERIFIER", "2")]);
    let run = world.start(&["--verify", "test ! -f poison.txt"]);
    world.begun("verifier", 1);
    let theirs = world.env.commit(&world.repo, "poison.txt", "poison\n");
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["hold"]["reason"]), (7, &"restack_evidence_failed".into()), "{status:#}");
    assert_eq!(world.git(&["rev-parse", "main"]), theirs);
    assert!(text(&status["hold"]["next"]).contains("harnessctl recover"), "{status:#}");
}

#[test]
fn land_at_the_end_and_land_by_hand() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.set(&[("TASKS", "2")]);
    let (run, status) = world.complete(&["--set", "land=end"]);
    assert_eq!(status["landing"]["status"], "landed");
    assert_eq!(world.events(&run, "landed", "done").len(), 1, "{}", world.history(&run));
    world.settle();
    world.set(&[("FILE", "second/{task}.txt")]);
    let (run, status) = world.complete(&["--set", "land=manual"]);
    assert_eq!(
        (&status["landing"]["status"], &status["landing"]["unlanded"]),
        (&"pending".into(), &2.into()),
        "{status:#}"
    );
    assert_eq!(world.landed("main"), Vec::<String>::new());
    world.ctl(&["land", &run]).success();
    assert_eq!(world.wait(&run, "landed").0, 0);
    assert_eq!(world.landed("main").len(), 2);
    assert!(world.repo.join("second/T-002.txt").is_file());
}

/// Commits of the runtime: trailers, the user as committer, linear.
#[test]
fn a_landed_commit_says_where_it_comes_from() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let (run, _) = world.complete(&[]);
    let message = world.git(&["log", "-1", "--format=%B", "main"]);
    for line in [format!("Harness-Run: {run}"), "Harness-Task: T-001".into(), "Harness-Attempt: 1".into()] {
        assert!(message.lines().any(|l| l == line), "{line}\n{message}");
    }
    assert_eq!(world.git(&["log", "-1", "--format=%cn <%ce>", "main"]), "Tester <tester@example.invalid>");
    assert_eq!(
        world.git(&["for-each-ref", "--format=%(refname)"]).lines().filter(|r| r.starts_with("refs/heads/")).count(),
        1
    );
}
