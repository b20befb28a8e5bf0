//! Candidates and restacking.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::git::testkit::{Bench, write};
use crate::git::{Candidate, ChangeKind, Mirror, Oid, Restack, RestackRequest};

fn built(candidate: Candidate) -> Oid {
    match candidate {
        Candidate::Built { commit, .. } => commit,
        other => panic!("{other:?}"),
    }
}

fn show(mirror: &Mirror, bench: &Bench, args: &[&str]) -> String {
    let (ok, text) = bench.git_in(&mirror.path, args);
    assert!(ok, "{text}");
    text
}

#[test]
fn several_commits_become_one_with_author_committer_and_message() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let trial = bench.trial(&mirror, &base, |dir| {
        write(dir, "one", b"1");
        bench.git_in(dir, &["add", "."]);
        bench.git_in(dir, &["-c", "user.name=First", "commit", "-qm", "one"]);
        write(dir, "two", b"2");
        bench.git_in(dir, &["config", "--worktree", "x.y", "z"]);
    });
    bench.write("other", "user's\n");
    let head = bench.commit("another task");
    let request = bench.request(&head, &base, &trial);
    let answer = mirror.build_candidate(&request).unwrap();
    assert_eq!(mirror.build_candidate(&request).unwrap(), answer, "a repeat gives the same id");
    let Candidate::Built { commit, tree, changed } = answer else { panic!() };
    assert_eq!(mirror.tree_of(&commit).unwrap(), tree);
    assert_eq!(changed.iter().map(|c| c.path.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    let shown = show(&mirror, &bench, &["log", "-1", "--format=%P|%an|%at|%cn|%ct|%B", commit.as_str()]);
    let expected = "|Ann User|1700000000|Ann User|1700000100|T-1: title\n\nbody\n\nHarness-Run: run_1";
    assert_eq!(shown, format!("{head}{expected}"));
    mirror.fsck().unwrap();
}

#[test]
fn conflict_no_change_and_already_applied() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let trial = bench.trial(&mirror, &base, |dir| write(dir, "a.txt", b"ONE\ntwo\nthree\n"));
    bench.write("a.txt", "1\ntwo\nthree\n");
    let head = bench.commit("clash");
    let answer = mirror.build_candidate(&bench.request(&head, &base, &trial)).unwrap();
    assert_eq!(answer, Candidate::Conflicted { paths: vec!["a.txt".to_owned()], submodule: false });

    let empty = bench.trial(&mirror, &base, |_| {});
    assert_eq!(mirror.build_candidate(&bench.request(&head, &base, &empty)).unwrap(), Candidate::NoChange);
    let back_and_forth = bench.trial(&mirror, &base, |dir| {
        write(dir, "x", b"x");
        bench.git_in(dir, &["add", "."]);
        bench.git_in(dir, &["commit", "-qm", "there"]);
        fs::remove_file(dir.join("x")).unwrap();
    });
    assert_eq!(mirror.build_candidate(&bench.request(&head, &base, &back_and_forth)).unwrap(), Candidate::NoChange);

    let same = bench.trial(&mirror, &base, |dir| write(dir, "a.txt", b"1\ntwo\nthree\n"));
    let answer = mirror.build_candidate(&bench.request(&head, &base, &same)).unwrap();
    assert_eq!(answer, Candidate::AlreadyApplied { head: head.clone() });
    let missing = Oid::parse(&"1".repeat(40)).unwrap();
    assert_eq!(mirror.build_candidate(&bench.request(&head, &base, &missing)).unwrap_err().code(), "missing_commit");
}

#[test]
fn a_trial_with_a_merge_commit_is_one_change() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let trial = bench.trial(&mirror, &base, |dir| {
        write(dir, "left", b"l");
        bench.git_in(dir, &["add", "."]);
        bench.git_in(dir, &["commit", "-qm", "left"]);
        let (_, left) = bench.git_in(dir, &["rev-parse", "HEAD"]);
        bench.git_in(dir, &["checkout", "-q", "--detach", base.as_str()]);
        write(dir, "right", b"r");
        bench.git_in(dir, &["add", "."]);
        bench.git_in(dir, &["commit", "-qm", "right"]);
        let (ok, text) = bench.git_in(dir, &["merge", "-q", "--no-edit", &left]);
        assert!(ok, "{text}");
    });
    let commit = built(mirror.build_candidate(&bench.request(&base, &base, &trial)).unwrap());
    assert_eq!(show(&mirror, &bench, &["log", "-1", "--format=%P", commit.as_str()]), base.as_str());
    assert_eq!(mirror.changes(&base, &commit).unwrap().len(), 2);
}

#[test]
fn modes_symlinks_and_moves_are_carried() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let trial = bench.trial(&mirror, &base, |dir: &Path| {
        fs::set_permissions(dir.join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::remove_file(dir.join("run.sh")).unwrap();
        symlink("dir", dir.join("run.sh")).unwrap();
        fs::rename(dir.join("dir"), dir.join("moved")).unwrap();
    });
    let commit = built(mirror.build_candidate(&bench.request(&base, &base, &trial)).unwrap());
    let changes = mirror.changes(&base, &commit).unwrap();
    let kinds: Vec<_> = changes.iter().map(|c| (c.path.as_str(), c.kind, c.new_mode.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("a.txt", ChangeKind::Modified, "100755"),
            ("dir/b.txt", ChangeKind::Deleted, "000000"),
            ("moved/b.txt", ChangeKind::Added, "100644"),
            ("run.sh", ChangeKind::TypeChanged, "120000"),
        ]
    );
}

#[test]
fn submodule_conflict_is_told_apart() {
    let bench = Bench::new();
    bench.git(&["submodule", "-q", "add", "./", "sub"]);
    let base = bench.commit("with submodule");
    let mirror = bench.mirror();
    let set = |id: &str| {
        bench.git(&["update-index", "--cacheinfo", &format!("160000,{id},sub")]);
        bench.git(&["commit", "-qm", "bump"]);
        bench.tip()
    };
    let ours = set(&"1".repeat(40));
    bench.git(&["reset", "-q", base.as_str()]);
    let theirs = set(&"2".repeat(40));
    let answer = mirror.build_candidate(&bench.request(&ours, &base, &theirs)).unwrap();
    assert_eq!(answer, Candidate::Conflicted { paths: vec!["sub".to_owned()], submodule: true });
}

#[test]
fn merge_attributes_come_from_the_head() {
    let bench = Bench::new();
    bench.write(".gitattributes", "a.txt merge=union\n");
    let base = bench.commit("attributes");
    let mirror = bench.mirror();
    let trial = bench.trial(&mirror, &base, |dir| write(dir, "a.txt", b"one\ntwo\nthree\nours\n"));
    bench.write("a.txt", "one\ntwo\nthree\ntheirs\n");
    let head = bench.commit("append");
    built(mirror.build_candidate(&bench.request(&head, &base, &trial)).unwrap());
}

#[test]
fn restack_rebuilds_in_order_or_names_the_conflict() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let one = bench.trial(&mirror, &base, |dir| write(dir, "one", b"1"));
    let two = bench.trial(&mirror, &one, |dir| write(dir, "a.txt", b"one\ntwo\nTHREE\n"));
    bench.write("user.txt", "user's\n");
    let moved = bench.commit("user's own");
    let request = |onto: &Oid| RestackRequest {
        old_base: base.clone(),
        commits: vec![one.clone(), two.clone()],
        onto: onto.clone(),
        committer: bench.who(),
        at_unix: 1_700_000_200,
    };
    let answer = mirror.restack(&request(&moved)).unwrap();
    assert_eq!(mirror.restack(&request(&moved)).unwrap(), answer, "a repeat gives the same ids");
    let Restack::Rebuilt { commits, tree } = answer else { panic!() };
    assert_eq!(mirror.tree_of(&commits[1]).unwrap(), tree);
    let log = show(&mirror, &bench, &["log", "--format=%s", commits[1].as_str()]);
    assert_eq!(log, "trial\ntrial\nuser's own\nstart");

    bench.write("a.txt", "one\ntwo\n3\n");
    let clash = bench.commit("clash");
    let answer = mirror.restack(&request(&clash)).unwrap();
    assert_eq!(answer, Restack::Conflicted { at_index: 1, paths: vec!["a.txt".to_owned()], submodule: false });

    bench.git(&["reset", "-q", "--hard", base.as_str()]);
    bench.write("one", "1");
    let has_one = bench.commit("has the first already");
    let Restack::Rebuilt { commits, .. } = mirror.restack(&request(&has_one)).unwrap() else { panic!() };
    assert_eq!(commits[0], has_one);
}
