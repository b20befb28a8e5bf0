//! The mirror: what it copies, that it repairs itself, and that it leaves the user's `.git` alone.

use std::fs;

use crate::git::testkit::{Bench, picture, write};
use crate::git::{Advance, Mirror, Pin};

fn mirror_text(bench: &Bench, args: &[&str]) -> String {
    let mirror = bench.path("mirror.git");
    let all: Vec<&str> = ["--git-dir", mirror.to_str().unwrap()].iter().chain(args).copied().collect();
    let (ok, text) = bench.git_in(bench.root(), &all);
    assert!(ok, "{text}");
    text
}

#[test]
fn configuration_is_an_allow_list() {
    let bench = Bench::new();
    bench.git(&["config", "filter.x\"y.clean", "sed \"s/a/b/\""]);
    bench.git(&["config", "core.autocrlf", "input"]);
    bench.git(&["config", "core.sshCommand", "touch /tmp/evil"]);
    bench.git(&["config", "core.hooksPath", "/tmp/hooks"]);
    bench.git(&["config", "alias.log", "!evil"]);
    bench.git(&["remote", "add", "origin", "https://example.org/x"]);
    bench.mirror();
    assert_eq!(mirror_text(&bench, &["config", "filter.x\"y.clean"]), "sed \"s/a/b/\"");
    assert_eq!(mirror_text(&bench, &["config", "core.autocrlf"]), "input");
    assert_eq!(mirror_text(&bench, &["config", "core.hooksPath"]), "/dev/null");
    assert_eq!(mirror_text(&bench, &["config", "core.fsync"]), "all");
    let listed = fs::read_to_string(bench.path("mirror.git/config")).unwrap();
    assert!(!listed.contains("ssh") && !listed.contains("alias") && !listed.contains("remote"), "{listed}");
    assert!(!bench.path("mirror.git/hooks").exists());
}

#[test]
fn half_a_mirror_is_made_again_and_a_whole_one_refreshed() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("mirror.git/refs")).unwrap();
    fs::write(bench.path("mirror.git/config"), "[broken").unwrap();
    let mirror = bench.mirror();
    mirror.keep("run_1", "kept", &bench.tip()).unwrap();
    bench.git(&["config", "user.name", "New Name"]);
    fs::write(bench.path("mirror.git/objects/info/alternates"), "/nowhere\n").unwrap();
    let again = bench.mirror();
    assert_eq!(mirror_text(&bench, &["config", "user.name"]), "New Name");
    assert_eq!(again.kept("run_1").unwrap(), [("kept".to_owned(), bench.tip())]);
    assert!(again.commit_exists(&bench.tip()).unwrap());
    again.fsck().unwrap();
}

#[test]
fn sha256_and_shallow_repositories_have_working_mirrors() {
    let bench = Bench::with(&["--object-format=sha256"]);
    let mirror = bench.mirror();
    assert_eq!(mirror.tree_of(&bench.tip()).unwrap().as_str().len(), 64);
    mirror.add_tree(&bench.path("t"), &bench.tip()).unwrap();

    let deep = Bench::new();
    deep.write("a.txt", "second\n");
    deep.commit("second");
    let url = format!("file://{}", deep.repo().display());
    deep.git(&["clone", "-q", "--depth", "1", &url, deep.path("shallow").to_str().unwrap()]);
    let facts = crate::git::discover_with(&deep.path("shallow"), &deep.env()).unwrap();
    let mirror = Mirror::ensure(&deep.path("shallow.git"), &facts).unwrap();
    assert!(mirror.commit_exists(&deep.tip()).unwrap());
    assert!(mirror.is_ancestor(&deep.tip(), &deep.tip()).unwrap());
    mirror.fsck().unwrap();
    deep.git_in(&deep.path("shallow"), &["fetch", "-q", "--unshallow"]);
    let facts = crate::git::discover_with(&deep.path("shallow"), &deep.env()).unwrap();
    Mirror::ensure(&deep.path("shallow.git"), &facts).unwrap();
    assert!(!deep.path("shallow.git/shallow").exists(), "the boundary follows the user's");
}

#[test]
fn users_git_folder_changes_only_by_pins() {
    let bench = Bench::new();
    let git = bench.repo().join(".git");
    let before = picture(&git, &|_| false);
    let mirror = bench.mirror();
    let base = bench.tip();
    let trial = bench.trial(&mirror, &base, |dir| write(dir, "new.txt", b"new\n"));
    mirror.build_candidate(&bench.request(&base, &base, &trial)).unwrap();
    mirror.keep("run_1", "T-1/1", &trial).unwrap();
    mirror.advance("run_1", None, &trial).unwrap();
    assert_eq!(picture(&git, &|_| false), before, "nothing of the user's git folder was written");
    mirror.pin("run_1", Pin::Base, &base).unwrap();
    mirror.pin("run_1", Pin::Base, &base).unwrap();
    mirror.pin("run_1", Pin::Head, &base).unwrap();
    assert_eq!(picture(&git, &|p| p == "refs/harness" || p.starts_with("refs/harness/")), before);
    assert_eq!(bench.git(&["rev-parse", "refs/harness/run_1/base"]), base.as_str());
    mirror.unpin("run_1").unwrap();
    mirror.unpin("run_1").unwrap();
    assert_eq!(bench.git(&["for-each-ref", "refs/harness"]), "");
}

#[test]
fn pins_keep_what_the_mirror_borrows_from_the_users_gc() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    bench.write("gone.txt", "gone\n");
    let borrowed = bench.commit("soon unreachable");
    mirror.pin("run_1", Pin::Base, &borrowed).unwrap();
    bench.git(&["reset", "-q", "--hard", "HEAD~"]);
    bench.git(&["reflog", "expire", "--expire=now", "--all"]);
    bench.git(&["gc", "-q", "--prune=now"]);
    mirror.add_tree(&bench.path("t"), &borrowed).unwrap();
    assert_eq!(fs::read_to_string(bench.path("t/gone.txt")).unwrap(), "gone\n");
}

#[test]
fn advance_is_a_compare_and_swap() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    let one = bench.tip();
    let two = bench.commit("two");
    let three = bench.commit("three");
    assert_eq!(mirror.advance("run_1", Some(&one), &two).unwrap(), Advance::Stale { actual: None });
    assert_eq!(mirror.advance("run_1", None, &one).unwrap(), Advance::Moved);
    assert_eq!(mirror.advance("run_1", None, &one).unwrap(), Advance::AlreadyThere);
    assert_eq!(mirror.advance("run_1", Some(&one), &two).unwrap(), Advance::Moved);
    assert_eq!(mirror.advance("run_1", Some(&one), &two).unwrap(), Advance::AlreadyThere);
    assert_eq!(mirror.advance("run_1", Some(&one), &three).unwrap(), Advance::Stale { actual: Some(two.clone()) });
    assert_eq!(mirror.integration_head("run_1").unwrap(), Some(two));
}

#[test]
fn a_lock_left_by_a_killed_git_is_cleared_before_the_head_moves_and_at_start() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    let tip = bench.tip();
    mirror.advance("run_1", None, &tip).unwrap();
    fs::write(bench.path("mirror.git/refs/harness/run_1/integration.lock"), "").unwrap();
    let two = bench.commit("two");
    assert_eq!(mirror.advance("run_1", Some(&tip), &two).unwrap(), Advance::Moved);
    let left = bench.path("mirror.git/refs/harness/run_1/other.lock");
    fs::write(&left, "").unwrap();
    crate::git::clear_stale_locks(&mirror.path).unwrap();
    assert!(!left.exists());
}

#[test]
fn kept_work_is_recovered_to_a_branch_and_never_over_one() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    let base = bench.tip();
    let trial = bench.trial(&mirror, &base, |dir| write(dir, "new.txt", b"new\n"));
    mirror.keep("run_1", "T-1/1", &trial).unwrap();
    mirror.recover_branch(&bench.facts(), "harness/run_1", &trial).unwrap();
    mirror.recover_branch(&bench.facts(), "harness/run_1", &trial).unwrap();
    assert_eq!(bench.git(&["show", "harness/run_1:new.txt"]), "new");
    let error = mirror.recover_branch(&bench.facts(), "main", &trial).unwrap_err();
    assert_eq!(error.code(), "branch_exists");
    assert_eq!(bench.git(&["rev-parse", "main"]), base.as_str());
    fs::remove_dir_all(bench.path("mirror.git")).unwrap();
    bench.git(&["fsck", "--strict"]);
}

#[test]
fn patch_is_cut_on_a_line() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    let base = bench.tip();
    bench.write("a.txt", &"é line\n".repeat(1000));
    let tip = bench.commit("long");
    let whole = mirror.diff_patch(&base, &tip, 1 << 20).unwrap();
    assert!(whole.contains("+é line") && !whole.contains("[cut"));
    let cut = mirror.diff_patch(&base, &tip, 500).unwrap();
    assert!(cut.len() < 600 && cut.contains("\n[cut: "), "{cut}");
}
