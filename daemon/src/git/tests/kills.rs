//! Killed before and after every change, the same calls from the top reach the same end.
//!
//! The victim is this test program again, running one ignored test with a crash point armed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use super::case::{Case, expected, files};
use crate::failpoint::REGISTRY;
use crate::git::testkit::{Bench, write};
use crate::git::{
    Candidate, LandOutcome, LandRequest, Mirror, Oid, PendingReason, Pin, RestackRequest, init_repository, land,
};

/// Crash points that only a race with the user reaches; they have their own test.
const RACES: &[&str] = &["git.land.restore.before", "git.land.restore.after"];

/// Runs an ignored test of this module in a new process; returns whether it was killed and which points it hit.
fn victim(bench: &Bench, test: &str, failpoint: Option<(&str, u32)>) -> (bool, BTreeMap<String, u32>) {
    let log = bench.path("hits");
    fs::remove_file(&log).ok();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &format!("git::tests::kills::{test}"), "--ignored", "--test-threads=1"])
        .env("KILL_ROOT", bench.root())
        .env("HARNESS_FAILPOINT_LOG", &log)
        .env_remove("HARNESS_FAILPOINT");
    if let Some((name, n)) = failpoint {
        command.env("HARNESS_FAILPOINT", format!("{name}:{n}"));
    }
    let out = command.output().unwrap();
    let killed = out.status.signal().is_some();
    assert!(killed || out.status.success(), "{failpoint:?}: {}", String::from_utf8_lossy(&out.stdout));
    let mut hits = BTreeMap::new();
    for line in fs::read_to_string(&log).unwrap_or_default().lines() {
        *hits.entry(line.to_owned()).or_insert(0) += 1;
    }
    (killed, hits)
}

fn copy(from: &Path, to: &Path) {
    fs::remove_dir_all(to).ok();
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// Every point of an unkilled run, first and second time.
fn plan(hits: &BTreeMap<String, u32>) -> Vec<(String, u32)> {
    hits.iter().flat_map(|(name, n)| (1..=(*n).min(2)).map(move |at| (name.clone(), at))).collect()
}

fn root() -> Bench {
    Bench::existing(Path::new(&std::env::var_os("KILL_ROOT").expect("run by another test")))
}

fn ids(bench: &Bench) -> (Oid, Oid) {
    let text = fs::read_to_string(bench.path("ids")).unwrap();
    let (old, new) = text.split_once(' ').unwrap();
    (Oid::parse(old).unwrap(), Oid::parse(new).unwrap())
}

/// One landing with the state a daemon would keep: the file `started`.
fn landing(bench: &Bench, during: &dyn Fn()) -> LandOutcome {
    let (old, new) = ids(bench);
    let started = bench.path("started");
    land(LandRequest {
        repo: &bench.facts(),
        mirror: &bench.mirror(),
        run: "run_1",
        target_branch: "main",
        old,
        new,
        started: started.exists(),
        scratch: &bench.scratch(),
        mark_started: &mut || {
            fs::write(&started, "")?;
            during();
            Ok(())
        },
    })
    .unwrap()
}

#[test]
#[ignore = "a victim: run by the tests below"]
fn victim_landing() {
    assert!(matches!(landing(&root(), &|| ()), LandOutcome::Landed { .. }));
}

#[test]
#[ignore = "a victim: run by the tests below"]
fn victim_landing_with_race() {
    let bench = root();
    drop(landing(&bench, &|| {
        if !bench.path("raced").exists() {
            write(bench.root(), "raced", b"");
            bench.write("a.txt", "mine\n");
            bench.write("dir/b.txt", "mine, too\n");
        }
    }));
}

/// What must be equal at the end: files, index, status, refs.
fn end_state(bench: &Bench) -> (crate::git::testkit::Picture, Vec<String>) {
    let asked = [
        vec!["ls-files", "-s"],
        vec!["status", "--porcelain", "--ignored"],
        vec!["for-each-ref"],
        vec!["symbolic-ref", "HEAD"],
        vec!["reflog", "main", "--format=%H %gs"],
    ];
    (files(bench), asked.iter().map(|a| bench.git(a)).collect())
}

fn kill_everywhere(prepare: impl FnOnce(&Bench)) -> BTreeSet<String> {
    let case = Case::broad();
    let bench = &case.bench;
    prepare(bench);
    fs::write(bench.path("ids"), format!("{} {}", case.old, case.new)).unwrap();
    let reset = || {
        for name in ["repo", "mirror.git"] {
            copy(&bench.path(&format!("{name}.saved")), &bench.path(name));
        }
        fs::remove_file(bench.path("started")).ok();
        fs::remove_dir_all(bench.scratch()).ok();
    };
    for name in ["repo", "mirror.git"] {
        copy(&bench.path(name), &bench.path(&format!("{name}.saved")));
    }
    reset();
    let (killed, hits) = victim(bench, "victim_landing", None);
    assert!(!killed);
    let want = end_state(bench);
    for (name, n) in plan(&hits) {
        reset();
        let (killed, _) = victim(bench, "victim_landing", Some((&name, n)));
        assert!(killed, "{name}:{n} was not hit");
        let outcome = landing(bench, &|| ());
        assert_eq!(outcome, LandOutcome::Landed { kept_edits: Vec::new() }, "{name}:{n}");
        case.no_litter();
        assert_eq!(end_state(bench), want, "{name}:{n}");
        bench.git(&["fsck", "--strict"]);
    }
    hits.into_keys().collect()
}

#[test]
fn landing_killed_everywhere_in_a_clean_checkout() {
    let hits = kill_everywhere(|_| ());
    let missed: Vec<_> = REGISTRY
        .iter()
        .filter(|n| n.starts_with("git.land.") && !n.starts_with("git.land.fetch") && !RACES.contains(n))
        .filter(|n| !hits.contains(**n))
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn landing_killed_everywhere_in_a_dirty_checkout() {
    kill_everywhere(|bench| {
        bench.write("mine.txt", "untracked\n");
        bench.write("x.ignored", "ignored\n");
        bench.write("link.ignored/x", "ignored\n");
        bench.write(".gitignore", "*.ignored\n# edited\n");
        bench.write("staged.txt", "staged\n");
        bench.git(&["add", "staged.txt"]);
        bench.write("staged.txt", "and edited\n");
    });
}

#[test]
fn landing_killed_where_the_branch_is_not_checked_out() {
    let hits = kill_everywhere(|bench| {
        bench.git(&["switch", "-q", "-c", "elsewhere"]);
        bench.write("a.txt", "dirty\n");
    });
    assert!(hits.contains("git.land.fetch.before") && hits.contains("git.land.fetch.after"));
}

#[test]
fn an_edit_that_a_killed_landing_had_swapped_out_comes_back() {
    let points = [
        ("git.land.swap.after", 1),
        ("git.land.take.after", 1),
        ("git.land.take.after", 2),
        ("git.land.restore.before", 1),
        ("git.land.restore.after", 1),
    ];
    for (point, n) in points {
        let case = Case::broad();
        let bench = &case.bench;
        fs::write(bench.path("ids"), format!("{} {}", case.old, case.new)).unwrap();
        if point.contains("restore") {
            assert!(victim(bench, "victim_landing_with_race", Some(("git.land.take.after", 2))).0);
        }
        assert!(victim(bench, "victim_landing_with_race", Some((point, n))).0, "{point}");
        let outcome = landing(bench, &|| ());
        let LandOutcome::Pending { why, paths, .. } = outcome else { panic!("{point}: {outcome:?}") };
        assert_eq!(why, PendingReason::EditedDuringLanding, "{point}");
        let read = |name: &str| fs::read_to_string(bench.repo().join(name)).unwrap();
        assert_eq!(read("a.txt"), "mine\n", "{point}");
        assert_eq!(read("dir/b.txt"), "mine, too\n", "{point}");
        assert!(paths.contains(&"a.txt".to_owned()) && paths.contains(&"dir/b.txt".to_owned()), "{point}: {paths:?}");
        case.no_litter();
        assert!(!bench.repo().join(".git/index.lock").exists());
        assert_eq!(bench.git(&["rev-parse", "main"]), case.old.as_str());
        // The user puts the files back as they were; then it lands.
        bench.git(&["checkout", "-q", "--", "a.txt", "dir/b.txt"]);
        assert_eq!(landing(bench, &|| ()), LandOutcome::Landed { kept_edits: Vec::new() }, "{point}");
        assert_eq!(files(bench), expected(bench, &case.new), "{point}");
    }
}

/// A whole attempt as the runtime drives it; returns everything it decided.
fn attempt(bench: &Bench) -> Vec<String> {
    let fresh = bench.path("fresh");
    fs::create_dir_all(&fresh).unwrap();
    let first = init_repository(&fresh, &bench.env()).unwrap().target(None).unwrap().0;
    let facts = bench.facts();
    crate::git::exclude_block(&facts, &["/tasks.json"]).unwrap();
    let mirror = Mirror::ensure(&bench.path("mirror.git"), &facts).unwrap();
    mirror.clear_stale_locks().unwrap();
    let base = facts.target(None).unwrap().1;
    mirror.pin("run_1", Pin::Base, &base).unwrap();
    let tree = mirror.add_tree(&bench.path("t"), &base).unwrap();
    write(&tree.path, "a.txt", b"ONE\ntwo\nthree\n");
    mirror.reset_tree(&tree, &base).unwrap();
    write(&tree.path, "a.txt", b"ONE\ntwo\nthree\n");
    let trial = mirror.commit_leftover(&tree, &base, "work\n", &bench.who(), 1_700_000_000, &bench.scratch());
    let trial = trial.unwrap().unwrap();
    mirror.keep("run_1", "T-1/1", &trial).unwrap();
    let Candidate::Built { commit, .. } = mirror.build_candidate(&bench.request(&base, &base, &trial)).unwrap() else {
        panic!()
    };
    drop(mirror.advance("run_1", None, &commit).unwrap());
    let restacked = mirror
        .restack(&RestackRequest {
            old_base: base.clone(),
            commits: vec![commit],
            onto: Oid::parse(&bench.git(&["rev-parse", "moved"])).unwrap(),
            committer: bench.who(),
            at_unix: 1_700_000_300,
        })
        .unwrap();
    mirror.remove_tree(&bench.path("t")).unwrap();
    mirror.recover_branch(&facts, "harness/run_1", &trial).unwrap();
    mirror.unpin("run_1").unwrap();
    mirror.fsck().unwrap();
    let left = mirror.trees().unwrap();
    assert!(left.is_empty() && !bench.path("t").exists());
    vec![first, format!("{restacked:?}"), format!("{:?}", mirror.kept("run_1").unwrap()), bench.git(&["for-each-ref"])]
}

#[test]
#[ignore = "a victim: run by the test below"]
fn victim_attempt() {
    attempt(&root());
}

#[test]
fn an_attempt_killed_everywhere_ends_the_same() {
    let bench = Bench::new();
    bench.git(&["switch", "-q", "-c", "moved"]);
    bench.write("user.txt", "u\n");
    bench.commit("user's");
    bench.git(&["switch", "-q", "main"]);
    copy(&bench.repo(), &bench.path("repo.saved"));
    let reset = || {
        for name in ["mirror.git", "scratch", "t", "fresh"] {
            fs::remove_dir_all(bench.path(name)).ok();
        }
        copy(&bench.path("repo.saved"), &bench.repo());
        bench.mirror();
        // What a killed git leaves; then half of a mirror is made again from nothing.
        fs::remove_file(bench.path("mirror.git/harness-mirror")).unwrap();
    };
    reset();
    let (killed, hits) = victim(&bench, "victim_attempt", None);
    assert!(!killed);
    let want = attempt(&bench);
    for (name, n) in plan(&hits) {
        reset();
        assert!(victim(&bench, "victim_attempt", Some((&name, n))).0, "{name}:{n} was not hit");
        assert_eq!(attempt(&bench), want, "{name}:{n}");
    }
    let elsewhere = ["git.land.", "git.mirror.unlock", "git.forged."];
    let elsewhere = |n: &str| elsewhere.iter().any(|p| n.starts_with(p));
    let missed: Vec<_> =
        REGISTRY.iter().filter(|n| n.starts_with("git.") && !elsewhere(n) && !hits.contains_key(**n)).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
