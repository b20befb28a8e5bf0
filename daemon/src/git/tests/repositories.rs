//! Every kind of repository has a defined answer.

use std::fs;

use crate::git::testkit::Bench;
use crate::git::{Head, ObjectFormat, Oid, dirty, discover_with, exclude_block, init_repository, version};

#[test]
fn git_here_is_new_enough() {
    assert!(version().unwrap() >= crate::git::MINIMUM);
}

#[test]
fn plain_repository_from_a_subfolder() {
    let bench = Bench::new();
    let facts = discover_with(&bench.repo().join("dir"), &bench.env()).unwrap();
    let real = fs::canonicalize(bench.repo()).unwrap();
    assert_eq!(facts.top_level, real);
    assert_eq!(facts.git_dir, real.join(".git"));
    assert_eq!(facts.common_dir, facts.git_dir);
    assert_eq!(facts.head, Head::Branch { name: "main".to_owned(), commit: Some(bench.tip()) });
    assert_eq!(facts.object_format, ObjectFormat::Sha1);
    assert_eq!(facts.user_identity, Some(("Ann User".to_owned(), "ann@example.org".to_owned())));
    assert!(!facts.shallow && !facts.submodules && !facts.lfs && !facts.sparse);
    assert_eq!(facts.tracked_artifacts, Vec::<String>::new());
    assert!(!dirty(&facts).unwrap());
    bench.write("new", "x");
    assert!(dirty(&facts).unwrap());
    assert_eq!(facts.target(None).unwrap(), ("main".to_owned(), bench.tip()));
    assert_eq!(facts.target(Some("other")).unwrap_err().code(), "missing_branch");
    assert_eq!(facts.target(Some("../x")).unwrap_err().code(), "bad_ref_name");
}

#[test]
fn folder_without_git_is_refused_and_init_git_makes_it_usable() {
    let bench = Bench::bare_home();
    let dir = bench.path("plain dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("mine.txt"), "mine").unwrap();
    let error = discover_with(&dir, &bench.env()).unwrap_err();
    assert_eq!(error.code(), "not_a_repository");
    assert!(error.next().starts_with("git init '"), "{}", error.next());
    assert_eq!(discover_with(&dir.join("absent"), &bench.env()).unwrap_err().code(), "not_a_repository");

    let facts = init_repository(&dir, &bench.env()).unwrap();
    let first = facts.head.commit().unwrap().clone();
    assert_eq!(facts.target(None).unwrap().0, "main");
    assert_eq!(fs::read_to_string(dir.join("mine.txt")).unwrap(), "mine");
    let (_, status) = bench.git_in(&dir, &["status", "--porcelain"]);
    assert_eq!(status, "?? mine.txt");
    assert_eq!(init_repository(&dir, &bench.env()).unwrap().head.commit(), Some(&first));
    assert!(!dir.join(".git/hooks").exists(), "no template hooks");
}

#[test]
fn bare_unborn_and_detached() {
    let bench = Bench::new();
    let bare = bench.path("bare.git");
    bench.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    assert_eq!(discover_with(&bare, &bench.env()).unwrap_err().code(), "bare_repository");
    assert_eq!(discover_with(&bench.repo().join(".git"), &bench.env()).unwrap_err().code(), "bare_repository");

    let unborn = bench.path("unborn");
    bench.git(&["init", "-q", "-b", "trunk", unborn.to_str().unwrap()]);
    let facts = discover_with(&unborn, &bench.env()).unwrap();
    assert_eq!(facts.head, Head::Branch { name: "trunk".to_owned(), commit: None });
    assert_eq!(facts.target(None).unwrap_err().code(), "unborn_branch");

    bench.git(&["checkout", "-q", "--detach"]);
    let facts = bench.facts();
    assert_eq!(facts.head, Head::Detached(bench.tip()));
    assert_eq!(facts.target(None).unwrap_err().code(), "detached_head");
    assert_eq!(facts.target(Some("main")).unwrap().1, bench.tip());
}

#[test]
fn linked_worktree_shares_the_common_dir() {
    let bench = Bench::new();
    let linked = bench.path("linked");
    bench.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let facts = discover_with(&linked, &bench.env()).unwrap();
    assert_eq!(facts.top_level, fs::canonicalize(&linked).unwrap());
    assert_eq!(facts.common_dir, fs::canonicalize(bench.repo().join(".git")).unwrap());
    assert_ne!(facts.git_dir, facts.common_dir);
    assert_eq!(facts.target(None).unwrap().0, "side");
}

#[test]
fn shallow_submodules_lfs_sparse_and_tracked_artifacts_are_facts() {
    let bench = Bench::new();
    bench.write("tasks.json", "{}");
    bench.write("deep/.gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    bench.git(&["-c", "protocol.file.allow=always", "submodule", "-q", "add", "./", "sub"]);
    bench.commit("second");
    let facts = bench.facts();
    assert!(facts.submodules && facts.lfs && !facts.lfs_configured);
    assert_eq!(facts.tracked_artifacts, ["tasks.json"]);

    let shallow = bench.path("shallow");
    let url = format!("file://{}", bench.repo().display());
    bench.git(&["clone", "-q", "--depth", "1", &url, shallow.to_str().unwrap()]);
    assert!(discover_with(&shallow, &bench.env()).unwrap().shallow);
    bench.git(&["sparse-checkout", "set", "dir"]);
    assert!(bench.facts().sparse);

    let partial = bench.path("partial");
    bench.git(&["config", "uploadpack.allowFilter", "true"]);
    bench.git(&["clone", "-q", "--filter=blob:none", "--no-checkout", &url, partial.to_str().unwrap()]);
    assert_eq!(discover_with(&partial, &bench.env()).unwrap_err().code(), "partial_clone");
}

#[test]
fn sha256_repository_and_names_with_line_breaks() {
    let bench = Bench::with(&["--object-format=sha256"]);
    assert_eq!(bench.facts().object_format, ObjectFormat::Sha256);
    let odd = bench.path("odd\nname");
    bench.git(&["clone", "-q", ".", odd.to_str().unwrap()]);
    assert!(discover_with(&odd, &bench.env()).unwrap().top_level.ends_with("odd\nname"));
}

#[test]
fn exclude_block_keeps_the_users_lines() {
    let bench = Bench::new();
    let facts = bench.facts();
    let path = bench.repo().join(".git/info/exclude");
    fs::write(&path, "mine\n").unwrap();
    exclude_block(&facts, &["/tasks.json", "/reports/"]).unwrap();
    let once = fs::read(&path).unwrap();
    exclude_block(&facts, &["/tasks.json", "/reports/"]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), once);
    bench.write("tasks.json", "{}");
    assert_eq!(bench.git(&["status", "--porcelain"]), "");
    exclude_block(&facts, &[]).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"mine\n");
}

#[test]
fn ids_are_full_lower_case_hex_only() {
    assert!(Oid::parse(&"a".repeat(40)).is_some() && Oid::parse(&"0".repeat(64)).is_some());
    for bad in ["HEAD", "abc", &"A".repeat(40), &"g".repeat(40), &format!("{}\n", "a".repeat(40)), "refs/heads/main"] {
        assert!(Oid::parse(bad).is_none(), "{bad}");
    }
}
