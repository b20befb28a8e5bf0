//! Trees: what is found in them, whatever an agent did there.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::git::testkit::{Bench, write};
use crate::git::{ChangeKind, Finding, Mirror, Oid, TreeFacts};

fn inspect(bench: &Bench, mirror: &Mirror, base: &Oid) -> TreeFacts {
    mirror.inspect(&mirror.tree_at(&bench.path("t")), base, &bench.scratch()).unwrap()
}

fn agent(bench: &Bench, args: &[&str]) {
    let (ok, text) = bench.git_in(&bench.path("t"), args);
    assert!(ok, "{args:?}: {text}");
}

fn paths(facts: &TreeFacts) -> Vec<&str> {
    facts.changed.iter().map(|c| c.path.as_str()).collect()
}

#[test]
fn untouched_tree_is_a_faithful_checkout() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    let (_, status) = bench.git_in(&bench.path("t"), &["status", "--porcelain", "--branch"]);
    assert_eq!(status, "## HEAD (no branch)");
    assert_eq!(fs::read_link(bench.path("t/link")).unwrap(), Path::new("a.txt"));
    assert_eq!(fs::metadata(bench.path("t/run.sh")).unwrap().permissions().mode() & 0o100, 0o100);
    let facts = inspect(&bench, &mirror, &base);
    assert_eq!(facts.head, base);
    assert!(facts.head_descends_from_base && !facts.leftover && facts.commits.is_empty() && facts.changed.is_empty());
    assert_eq!(facts.findings, []);
    assert_eq!(mirror.trees().unwrap(), [bench.path("t")]);
    mirror.remove_tree(&bench.path("t")).unwrap();
    mirror.remove_tree(&bench.path("t")).unwrap();
    assert!(!bench.path("t").exists() && mirror.trees().unwrap().is_empty());
}

#[test]
fn leftovers_of_any_kind_at_the_place_are_replaced() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    write(&bench.path("t"), "locked/old", b"old");
    fs::set_permissions(bench.path("t/locked"), fs::Permissions::from_mode(0o000)).unwrap();
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    write(&bench.path("t"), "junk", b"junk");
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    assert!(!bench.path("t/junk").exists() && !bench.path("t/locked").exists());
    let missing = Oid::parse(&"1".repeat(40)).unwrap();
    assert_eq!(mirror.add_tree(&bench.path("u"), &missing).unwrap_err().code(), "missing_commit");
}

#[test]
fn a_reset_tree_has_its_commit_again_and_keeps_what_git_does_not_track() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    let tree = mirror.add_tree(&bench.path("t"), &base).unwrap();
    let of = |name: &str| bench.path("t").join(name);
    let wanted = fs::read(of("a.txt")).unwrap();
    // As long as before and with the old time: only the content tells.
    let (before, same_length) = (fs::metadata(of("a.txt")).unwrap(), vec![b'x'; wanted.len()]);
    fs::write(of("a.txt"), &same_length).unwrap();
    fs::File::options().write(true).open(of("a.txt")).unwrap().set_modified(before.modified().unwrap()).unwrap();
    fs::remove_file(of("link")).unwrap();
    fs::create_dir(of("link")).unwrap();
    write(&of("link"), "inside", b"x");
    fs::set_permissions(of("run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::remove_dir_all(of("dir")).unwrap();
    write(&bench.path("t"), "cache.ignored", b"cache");
    write(&bench.path("t"), "new.txt", b"new");
    agent(&bench, &["add", "new.txt", "a.txt"]);
    agent(&bench, &["commit", "-qm", "moves HEAD"]);
    write(&bench.path("t"), "untracked.txt", b"untracked");
    mirror.reset_tree(&tree, &base).unwrap();
    mirror.reset_tree(&tree, &base).unwrap();
    assert_eq!(fs::read(of("a.txt")).unwrap(), wanted);
    assert_eq!(fs::read_link(of("link")).unwrap(), Path::new("a.txt"));
    assert_eq!(fs::metadata(of("run.sh")).unwrap().permissions().mode() & 0o100, 0o100);
    assert!(of("dir/b.txt").exists());
    assert!(of("cache.ignored").exists() && of("untracked.txt").exists());
    let facts = inspect(&bench, &mirror, &base);
    assert_eq!((&facts.head, paths(&facts)), (&base, vec!["untracked.txt"]));
}

#[test]
fn commits_and_leftover_are_told_apart_and_the_leftover_is_committed() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    write(&bench.path("t"), "one.txt", b"1");
    agent(&bench, &["add", "."]);
    agent(&bench, &["commit", "-qm", "first of the agent"]);
    write(&bench.path("t"), "two.txt", b"2");
    write(&bench.path("t"), "junk.ignored", b"ignored");
    write(&bench.path("t"), "tasks.json", b"artifact");
    write(&bench.path("t"), "reports/r.json", b"artifact");
    fs::remove_file(bench.path("t/a.txt")).unwrap();
    fs::set_permissions(bench.path("t/run.sh"), fs::Permissions::from_mode(0o644)).unwrap();
    let facts = inspect(&bench, &mirror, &base);
    assert!(facts.head_descends_from_base && facts.leftover);
    assert_eq!(facts.commits.len(), 1);
    assert_eq!(facts.commits[0].subject, "first of the agent");
    assert_eq!(facts.author, "Ann User <ann@example.org>");
    assert_eq!(paths(&facts), ["a.txt", "one.txt", "run.sh", "two.txt"]);
    assert_eq!((facts.changed[0].kind, facts.changed[2].new_mode.as_str()), (ChangeKind::Deleted, "100644"));
    let tree = mirror.tree_at(&bench.path("t"));
    let commit = |at| mirror.commit_leftover(&tree, &base, "rest\n", &bench.who(), at, &bench.scratch()).unwrap();
    let first = commit(1_700_000_000).unwrap();
    assert_eq!(commit(1_700_000_000), Some(first.clone()), "a repeat gives the same id");
    assert_eq!(mirror.tree_of(&first).unwrap(), facts.files);
    assert!(mirror.is_ancestor(&facts.head, &first).unwrap());
}

#[test]
fn paths_that_are_no_utf8_and_odd_names_survive() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    let odd = OsStr::from_bytes(b"odd \xff\n\t\"name");
    fs::write(bench.path("t").join(odd), "x").unwrap();
    write(&bench.path("t"), ":(glob)*", b"x");
    let facts = inspect(&bench, &mirror, &base);
    assert!(facts.changed.iter().any(|c| c.raw == odd.as_bytes()));
    assert!(paths(&facts).contains(&":(glob)*"));
}

#[test]
fn file_and_folder_swap_and_symlink_instead_of_file() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    fs::remove_file(bench.path("t/a.txt")).unwrap();
    write(&bench.path("t"), "a.txt/inner", b"x");
    fs::remove_dir_all(bench.path("t/dir")).unwrap();
    symlink("/etc", bench.path("t/dir")).unwrap();
    let facts = inspect(&bench, &mirror, &base);
    assert_eq!(paths(&facts), ["a.txt", "a.txt/inner", "dir", "dir/b.txt"]);
    assert_eq!(facts.changed[2].new_mode, "120000");
}

#[test]
fn head_on_a_branch_or_broken_is_a_finding() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    agent(&bench, &["switch", "-q", "-c", "mine"]);
    write(&bench.path("t"), "x", b"x");
    agent(&bench, &["add", "."]);
    agent(&bench, &["commit", "-qm", "on a branch"]);
    let facts = inspect(&bench, &mirror, &base);
    assert_eq!(facts.findings, [Finding::HeadNotDetached { name: "refs/heads/mine".to_owned() }]);
    assert_eq!(facts.commits.len(), 1);

    let head = mirror.tree_at(&bench.path("t")).git_dir.join("HEAD");
    for bad in ["", "HEAD\n", "ref: ../../../../repo/.git/HEAD\n", "ref: refs/heads/none\n", &"1".repeat(40), "main"] {
        fs::write(&head, bad).unwrap();
        let facts = inspect(&bench, &mirror, &base);
        assert!(facts.findings.contains(&Finding::HeadUnreadable), "{bad}");
        assert_eq!((facts.head, facts.leftover), (base.clone(), true));
    }
    fs::remove_file(&head).unwrap();
    symlink(bench.repo().join(".git/refs/heads/main"), &head).unwrap();
    assert!(inspect(&bench, &mirror, &base).findings.contains(&Finding::HeadUnreadable));
    fs::remove_file(&head).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&head).status().unwrap().success());
    assert!(inspect(&bench, &mirror, &base).findings.contains(&Finding::HeadUnreadable));
}

#[test]
fn history_that_does_not_descend_is_seen() {
    let bench = Bench::new();
    let mirror = bench.mirror();
    let older = bench.tip();
    bench.write("a.txt", "newer\n");
    let base = bench.commit("newer");
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    agent(&bench, &["reset", "-q", "--hard", older.as_str()]);
    assert!(!inspect(&bench, &mirror, &base).head_descends_from_base);
}

/// Writes programs everywhere git might look for one; each leaves a mark when it is run.
fn set_traps(bench: &Bench, mirror: &Mirror) -> std::path::PathBuf {
    let mark = bench.path("RAN");
    let trap = bench.path("trap.sh");
    fs::write(&trap, format!("#!/bin/sh\necho \"$0 $*\" >> '{}'\ncat\n", mark.display())).unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.display();
    let config = format!(
        "[core]\n\tfsmonitor = {trap}\n\thooksPath = {}\n\tpager = {trap}\n\tbare = false\n[filter \"evil\"]\n\
         \tclean = {trap}\n\tsmudge = {trap}\n\tprocess = {trap}\n[diff \"evil\"]\n\ttextconv = {trap}\n\
         \tcommand = {trap}\n[merge \"evil\"]\n\tdriver = {trap}\n[extensions]\n\tworktreeConfig = true\n",
        bench.path("hooks").display()
    );
    write(&bench.path("hooks"), "reference-transaction", fs::read(bench.path("trap.sh")).unwrap().as_slice());
    fs::set_permissions(bench.path("hooks/reference-transaction"), fs::Permissions::from_mode(0o755)).unwrap();
    // A repository of the agent's own, and every pointer of its tree turned to it.
    let evil = bench.path("evil.git");
    bench.git(&["init", "-q", "--bare", evil.to_str().unwrap()]);
    fs::write(evil.join("config"), &config).unwrap();
    let tree = mirror.tree_at(&bench.path("t"));
    fs::write(tree.git_dir.join("commondir"), evil.as_os_str().as_bytes()).unwrap();
    fs::write(tree.git_dir.join("config.worktree"), &config).unwrap();
    fs::write(tree.git_dir.join("config"), &config).unwrap();
    fs::create_dir_all(tree.git_dir.join("info")).unwrap();
    fs::write(tree.git_dir.join("info/attributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    fs::write(bench.path("t/.git"), format!("gitdir: {}\n", evil.display())).unwrap();
    fs::write(bench.path("t/.gitattributes"), "* filter=evil diff=evil merge=evil\n").unwrap();
    fs::write(tree.git_dir.join("index"), "garbage").unwrap();
    // Objects folder: other alternates, a lying commit graph.
    fs::write(mirror.path.join("objects/info/alternates"), evil.join("objects").as_os_str().as_bytes()).unwrap();
    fs::write(mirror.path.join("objects/info/commit-graph"), "garbage").unwrap();
    // A nested repository whose own status would run a program.
    let nested = bench.path("t/nested");
    fs::create_dir(&nested).unwrap();
    bench.git_in(&nested, &["init", "-q"]);
    bench.git_in(&nested, &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::write(nested.join(".git/config"), &config).unwrap();
    fs::write(nested.join("f"), "f").unwrap();
    mark
}

#[test]
fn nothing_an_agent_writes_makes_the_runtime_run_a_program() {
    let bench = Bench::new();
    bench.git(&["submodule", "-q", "add", "./", "sub"]);
    bench.commit("with submodule");
    let (mirror, base) = (bench.mirror(), bench.tip());
    let tree = mirror.add_tree(&bench.path("t"), &base).unwrap();
    let mark = set_traps(&bench, &mirror);
    // The submodule's place, too.
    bench.git_in(&bench.path("t/sub"), &["init", "-q"]);
    bench.git_in(&bench.path("t/sub"), &["commit", "-q", "--allow-empty", "-m", "x"]);
    fs::copy(bench.path("t/nested/.git/config"), bench.path("t/sub/.git/config")).unwrap();
    fs::write(bench.path("t/sub/f"), "f").unwrap();
    fs::remove_file(&mark).ok();
    fs::write(bench.path("t/work.txt"), "work").unwrap();
    let facts = mirror.inspect(&tree, &base, &bench.scratch()).unwrap();
    assert_eq!(paths(&facts), [".gitattributes", "work.txt"]);
    assert_eq!(facts.findings, [Finding::NestedRepositories { paths: vec!["nested/".to_owned()] }]);
    let trial = mirror.commit_leftover(&tree, &base, "x", &bench.who(), 1, &bench.scratch()).unwrap().unwrap();
    mirror.build_candidate(&bench.request(&base, &base, &trial)).unwrap();
    mirror.diff_patch(&base, &trial, 1 << 20).unwrap();
    mirror.add_tree(&bench.path("t"), &trial).unwrap();
    assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    // The traps do work: git inside the nested repository runs them.
    let nested = bench.path("n");
    fs::create_dir(&nested).unwrap();
    bench.git_in(&nested, &["init", "-q"]);
    fs::write(nested.join(".git/config"), format!("[core]\n\tfsmonitor = {}\n", bench.path("trap.sh").display()))
        .unwrap();
    bench.git_in(&nested, &["status"]);
    assert!(mark.exists(), "a trap that cannot spring proves nothing");
}

#[test]
fn flags_in_the_agents_index_hide_nothing() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    agent(&bench, &["update-index", "--skip-worktree", "a.txt"]);
    agent(&bench, &["update-index", "--assume-unchanged", "dir/b.txt"]);
    fs::write(bench.path("t/a.txt"), "hidden\n").unwrap();
    fs::write(bench.path("t/dir/b.txt"), "B\n").unwrap();
    assert_eq!(paths(&inspect(&bench, &mirror, &base)), ["a.txt", "dir/b.txt"]);
}

/// The loose file of an object of the mirror.
fn loose(mirror: &Mirror, id: &str) -> std::path::PathBuf {
    mirror.path.join("objects").join(&id[..2]).join(&id[2..])
}

#[test]
fn forged_objects_are_found_and_the_true_ones_used() {
    let bench = Bench::new();
    let (mirror, base) = (bench.mirror(), bench.tip());
    mirror.add_tree(&bench.path("t"), &base).unwrap();
    write(&bench.path("t"), "evil", b"forged\n");
    let (_, forged) = bench.git_in(&bench.path("t"), &["hash-object", "-w", "evil"]);
    let (_, truth) = bench.git_in(&bench.path("t"), &["rev-parse", "HEAD:a.txt"]);
    fs::create_dir_all(loose(&mirror, &truth).parent().unwrap()).unwrap();
    fs::copy(loose(&mirror, &forged), loose(&mirror, &truth)).unwrap();
    let (_, shown) = bench.git_in(&bench.path("t"), &["cat-file", "blob", &truth]);
    assert_eq!(shown, "forged", "a forgery git does not see: else this proves nothing");
    mirror.add_tree(&bench.path("u"), &base).unwrap();
    assert_eq!(fs::read_to_string(bench.path("u/a.txt")).unwrap(), "one\ntwo\nthree\n");

    fs::copy(loose(&mirror, &forged), loose(&mirror, &truth)).unwrap();
    fs::create_dir_all(mirror.path.join("objects/pack")).unwrap();
    fs::write(mirror.path.join("objects/pack/pack-1.idx"), "garbage").unwrap();
    let facts = inspect(&bench, &mirror, &base);
    let names = vec!["pack-1.idx".to_owned(), truth.clone()];
    assert_eq!(facts.findings, [Finding::ForgedObjects { names }]);
    assert!(!loose(&mirror, &truth).exists() && loose(&mirror, &forged).exists());
}
