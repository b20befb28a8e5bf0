//! The landing table: where the branch is, what is in progress, who holds the lock.

use std::fs;

use super::case::{Case, broad_edit, broad_edit_without_submodule, expected, files};
use crate::git::testkit::{Bench, picture, write};
use crate::git::{LandOutcome, LandRequest, PendingReason, land};

#[test]
fn a_lock_that_is_not_ours_stays() {
    let case = Case::small();
    let lock = case.bench.repo().join(".git/index.lock");
    for text in ["", "another git", "harness landing run_2 abc\n"] {
        fs::write(&lock, text).unwrap();
        let before = case.everything();
        let LandOutcome::Pending { why, .. } = case.land(true).unwrap() else { panic!() };
        assert_eq!(why, PendingReason::IndexLocked);
        assert_eq!(case.everything(), before);
    }
    fs::remove_file(&lock).unwrap();
    case.landed();
}

#[test]
fn operations_in_progress_wait() {
    let conflict = |command: &[&str], abort: &[&str], name: &str| {
        let bench = Bench::new();
        bench.git(&["switch", "-q", "-c", "side"]);
        bench.write("dir/b.txt", "side\n");
        bench.commit("side");
        bench.git(&["switch", "-q", "main"]);
        bench.write("dir/b.txt", "main\n");
        bench.commit("main");
        let case = Case::of(bench, |dir| write(dir, "a.txt", b"ONE\ntwo\nthree\n"));
        case.bench.git_in(&case.bench.repo(), command);
        let before = case.everything();
        let LandOutcome::Pending { why, paths, .. } = case.land(false).unwrap() else { panic!("{name}") };
        let busy = if name == "rebase" { PendingReason::BranchBusy } else { PendingReason::OperationInProgress };
        assert_eq!(why, busy, "{name}");
        assert!(name == "rebase" || paths == [name], "{paths:?}");
        assert_eq!(case.everything(), before);
        case.bench.git(abort);
        case.landed();
    };
    conflict(&["merge", "side"], &["merge", "--abort"], "merge");
    conflict(&["cherry-pick", "side"], &["cherry-pick", "--abort"], "cherry-pick");
    conflict(&["rebase", "side"], &["rebase", "--abort"], "rebase");
    conflict(&["bisect", "start"], &["bisect", "reset"], "bisect");
}

#[test]
fn not_checked_out_is_a_fast_forward_of_the_ref_only() {
    let case = Case::broad();
    case.bench.git(&["switch", "-q", "-c", "elsewhere"]);
    case.bench.write("a.txt", "dirty\n");
    let before = files(&case.bench);
    case.landed();
    assert_eq!(files(&case.bench), before);
    assert_eq!(case.bench.git(&["status", "--porcelain"]), " M a.txt");
    assert!(!case.bench.repo().join(".git/FETCH_HEAD").exists());
    fs::remove_dir_all(&case.mirror.path).unwrap();
    case.bench.git(&["fsck", "--strict"]);
}

#[test]
fn checked_out_in_a_linked_worktree_lands_there() {
    let bench = Bench::new();
    bench.git(&["switch", "-q", "-c", "elsewhere"]);
    bench.git(&["worktree", "add", "-q", bench.path("linked").to_str().unwrap(), "main"]);
    let case = Case::of(bench, broad_edit);
    case.landed();
    assert_eq!(picture(&case.bench.path("linked"), &|p| p == ".git"), expected(&case.bench, &case.new));
    assert_eq!(case.bench.git_in(&case.bench.path("linked"), &["status", "--porcelain"]).1, "");
    assert_eq!(case.status(), "");
}

#[test]
fn registered_from_a_linked_worktree_it_finds_the_main_checkout() {
    let bench = Bench::new();
    bench.git(&["worktree", "add", "-q", "-b", "side", bench.path("linked").to_str().unwrap()]);
    let case = Case::of(bench, broad_edit);
    let facts = crate::git::discover_with(&case.bench.path("linked"), &case.bench.env()).unwrap();
    assert_eq!(case.land_in(&facts, false).unwrap(), LandOutcome::Landed { kept_edits: vec![] });
    assert_eq!(files(&case.bench), expected(&case.bench, &case.new));
}

#[test]
fn rebase_elsewhere_missing_worktree_and_double_checkout_wait() {
    let bench = Bench::new();
    let linked = bench.path("linked");
    let linked = linked.to_str().unwrap();
    bench.git(&["worktree", "add", "-q", "-f", linked, "main"]);
    let case = Case::of(bench, |dir| write(dir, "a.txt", b"ONE\n"));
    let why = |case: &Case| match case.land(false).unwrap() {
        LandOutcome::Pending { why, .. } => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&case), PendingReason::CheckedOutTwice);
    case.bench.git(&["switch", "-q", "-c", "elsewhere"]);
    fs::remove_dir_all(linked).unwrap();
    assert_eq!(why(&case), PendingReason::CheckoutMissing);
    case.bench.git(&["worktree", "prune"]);
    case.landed();
}

#[test]
fn moved_target_is_never_overwritten() {
    let case = Case::small();
    case.bench.write("user.txt", "u\n");
    let tip = case.bench.commit("user's");
    let before = case.everything();
    for started in [false, true] {
        assert_eq!(case.land(started).unwrap(), LandOutcome::TargetMoved { tip: tip.clone() });
    }
    assert_eq!(case.everything(), before);
    case.bench.git(&["switch", "-q", "-c", "elsewhere"]);
    assert_eq!(case.land(false).unwrap(), LandOutcome::TargetMoved { tip });
    case.bench.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(case.land(false).unwrap_err().code(), "missing_branch");
}

#[test]
fn commit_on_top_of_the_landed_one_counts_as_landed() {
    let case = Case::small();
    case.landed();
    case.bench.write("user.txt", "u\n");
    case.bench.commit("on top");
    assert_eq!(case.land(true).unwrap(), LandOutcome::Landed { kept_edits: Vec::new() });
}

#[test]
fn failure_to_record_the_start_touches_nothing() {
    let case = Case::small();
    let before = case.everything();
    let error = land(LandRequest {
        repo: &case.bench.facts(),
        mirror: &case.mirror,
        run: "run_1",
        target_branch: "main",
        old: case.old.clone(),
        new: case.new.clone(),
        started: false,
        scratch: &case.bench.scratch(),
        mark_started: &mut || Err("disk full".into()),
    })
    .unwrap_err();
    assert_eq!(error.code(), "landing_not_recorded");
    assert_eq!(case.everything(), before);
}

#[test]
fn shallow_and_sha256_repositories_are_landed_on() {
    let bench = Bench::new();
    bench.write("a.txt", "second\n");
    bench.commit("second");
    fs::rename(bench.repo(), bench.path("deep")).unwrap();
    let url = format!("file://{}", bench.path("deep").display());
    let shallow = bench.repo();
    let args = ["clone", "-q", "--depth", "1", &url, shallow.to_str().unwrap()];
    let (ok, text) = bench.git_in(bench.root(), &args);
    assert!(ok, "{text}");
    let case = Case::of(bench, broad_edit);
    case.landed();
    assert_eq!(files(&case.bench), expected(&case.bench, &case.new));
    case.bench.git(&["fsck"]);
    assert_eq!(case.bench.git(&["rev-parse", "--is-shallow-repository"]), "true");

    let case = Case::of(Bench::with(&["--object-format=sha256"]), |dir| {
        broad_edit_without_submodule(dir);
    });
    case.landed();
    assert_eq!(files(&case.bench), expected(&case.bench, &case.new));
    assert_eq!(case.status(), "");
}

#[test]
fn settings_that_would_break_a_fetch_or_run_a_hook_do_not_matter() {
    let case = Case::small();
    let bench = &case.bench;
    for (key, value) in [("protocol.version", "0"), ("fetch.prune", "true"), ("protocol.file.allow", "never")] {
        bench.git(&["config", key, value]);
    }
    for hook in ["post-checkout", "post-merge", "reference-transaction", "post-index-change", "pre-auto-gc"] {
        let path = bench.repo().join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\ntouch '{}'\n", bench.path("HOOK").display())).unwrap();
        fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    case.landed();
    assert!(!bench.path("HOOK").exists());
    bench.git(&["switch", "-q", "-c", "other"]);
    assert!(bench.path("HOOK").exists(), "the hooks do run for the user");
}

#[test]
fn locks_of_a_git_that_was_killed_moving_the_branch_are_known_by_their_content() {
    let case = Case::small();
    let git = case.bench.repo().join(".git");
    let lock = git.join("refs/heads/main.lock");
    fs::write(&lock, format!("{}\n", case.old)).unwrap();
    assert_eq!(case.land(true).unwrap_err().code(), "git_failed");
    assert!(lock.exists(), "a lock that is not ours stays");
    assert!(!git.join("index.lock").exists());
    fs::write(&lock, format!("{}\n", case.new)).unwrap();
    fs::write(git.join("HEAD.lock"), "").unwrap();
    assert_eq!(case.land(true).unwrap(), LandOutcome::Landed { kept_edits: Vec::new() });
    assert!(!lock.exists() && !git.join("HEAD.lock").exists());
    case.no_litter();
}
