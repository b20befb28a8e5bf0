//! The landing table: every state of the files of a checkout, and what landing does there.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::case::{Case, expected, files};
use crate::git::testkit::{Bench, write};
use crate::git::{LandOutcome, LandRequest, PendingReason, land};

#[test]
fn clean_checkout_gets_every_kind_of_change() {
    let case = Case::broad();
    case.landed();
    assert_eq!(files(&case.bench), expected(&case.bench, &case.new));
    assert_eq!(case.status(), "");
    assert!(case.bench.git(&["reflog", "main"]).contains("harness: land run_1"));
    case.bench.git(&["fsck", "--strict"]);
    assert_eq!(case.land(true).unwrap(), LandOutcome::Landed { kept_edits: Vec::new() }, "a repeat");
}

#[test]
fn users_unrelated_work_stays_byte_for_byte() {
    let case = Case::broad();
    let bench = &case.bench;
    bench.write("mine.txt", "untracked\n");
    bench.write("x.ignored", "ignored\n");
    bench.write(".gitignore", "*.ignored\n# edited\n");
    bench.write("staged.txt", "staged\n");
    bench.git(&["add", "staged.txt"]);
    bench.write("staged.txt", "and edited\n");
    case.landed();
    let mut want = expected(bench, &case.new);
    for (name, text) in [
        ("mine.txt", "untracked\n"),
        ("x.ignored", "ignored\n"),
        ("staged.txt", "and edited\n"),
        (".gitignore", "*.ignored\n# edited\n"),
    ] {
        want.insert(name.to_owned(), (0o100_644, text.as_bytes().to_vec()));
    }
    assert_eq!(files(bench), want);
    assert_eq!(case.status(), " M .gitignore\nAM staged.txt\n?? mine.txt\n!! x.ignored");
    assert_eq!(bench.git(&["show", ":staged.txt"]), "staged");
}

#[test]
fn unstaged_edit_of_a_touched_file_waits() {
    let case = Case::small();
    case.bench.write("a.txt", "mine\n");
    case.waits(PendingReason::LocalChanges, &["a.txt"], |b| drop(b.git(&["stash", "-q"])));
    let case = Case::small();
    fs::remove_file(case.bench.repo().join("a.txt")).unwrap();
    case.waits(PendingReason::LocalChanges, &["a.txt"], |b| drop(b.git(&["checkout", "-q", "a.txt"])));
    let case = Case::broad();
    fs::set_permissions(case.bench.repo().join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap();
    case.waits(PendingReason::LocalChanges, &["a.txt"], |b| drop(b.git(&["checkout", "-q", "a.txt"])));
}

#[test]
fn staged_edit_of_a_touched_file_waits() {
    let case = Case::small();
    case.bench.write("a.txt", "mine\n");
    case.bench.git(&["add", "a.txt"]);
    case.bench.write("a.txt", "one\ntwo\nthree\n");
    case.waits(PendingReason::Staged, &["a.txt"], |b| drop(b.git(&["reset", "-q", "--hard"])));
    let case = Case::small();
    case.bench.write("fresh/new.txt", "mine\n");
    case.bench.git(&["add", "-N", "fresh/new.txt"]);
    fs::remove_file(case.bench.repo().join("fresh/new.txt")).unwrap();
    case.waits(PendingReason::Staged, &["fresh/new.txt"], |b| drop(b.git(&["reset", "-q", "--hard"])));
    let case = Case::small();
    case.bench.write("fresh", "staged as a file, then removed\n");
    case.bench.git(&["add", "fresh"]);
    fs::remove_file(case.bench.repo().join("fresh")).unwrap();
    case.waits(PendingReason::Staged, &["fresh/new.txt"], |b| drop(b.git(&["reset", "-q", "--hard"])));
}

#[test]
fn flagged_paths_wait() {
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let case = Case::small();
        case.bench.git(&["update-index", flag, "a.txt"]);
        case.bench.write("a.txt", "hidden\n");
        case.waits(PendingReason::Flagged, &["a.txt"], |b| {
            b.git(&["update-index", "--no-skip-worktree", "a.txt"]);
            b.git(&["update-index", "--no-assume-unchanged", "a.txt"]);
            b.git(&["checkout", "-q", "a.txt"]);
        });
    }
}

#[test]
fn untracked_and_ignored_files_in_the_way_wait() {
    let clear = |b: &Bench| fs::remove_dir_all(b.repo().join("fresh")).unwrap();
    let case = Case::small();
    case.bench.write("fresh/new.txt", "mine\n");
    case.waits(PendingReason::InTheWay, &["fresh/new.txt"], clear);

    let case = Case::small();
    fs::write(case.bench.repo().join(".git/info/exclude"), "fresh/\n").unwrap();
    case.bench.write("fresh/new.txt", "precious, ignored\n");
    case.waits(PendingReason::InTheWay, &["fresh/new.txt"], clear);

    let case = Case::small();
    case.bench.write("fresh", "a file where the folder goes\n");
    case.waits(PendingReason::InTheWay, &["fresh/new.txt"], |b| fs::remove_file(b.repo().join("fresh")).unwrap());

    let case = Case::small();
    fs::create_dir(case.bench.path("elsewhere")).unwrap();
    symlink(case.bench.path("elsewhere"), case.bench.repo().join("fresh")).unwrap();
    case.waits(PendingReason::InTheWay, &["fresh/new.txt"], |b| fs::remove_file(b.repo().join("fresh")).unwrap());

    let case = Case::small();
    case.bench.write("fresh/new.txt/below", "mine\n");
    case.waits(PendingReason::InTheWay, &["fresh/new.txt"], clear);

    // The folder that becomes a file holds an ignored file of the user.
    let case = Case::broad();
    case.bench.write("dir/keep.ignored", "precious\n");
    case.waits(PendingReason::InTheWay, &["dir"], |b| fs::remove_file(b.repo().join("dir/keep.ignored")).unwrap());
}

#[test]
fn the_same_untracked_file_is_taken_over_untouched() {
    let case = Case::small();
    case.bench.write("fresh/new.txt", "new\n");
    let inode = fs::metadata(case.bench.repo().join("fresh/new.txt")).unwrap().ino();
    case.landed();
    assert_eq!(fs::metadata(case.bench.repo().join("fresh/new.txt")).unwrap().ino(), inode);
    assert_eq!(case.status(), "");
}

#[test]
fn line_ends_filters_and_attributes_are_the_users() {
    let bench = Bench::new();
    bench.git(&["config", "core.autocrlf", "true"]);
    bench.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
    bench.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
    bench.write(".gitattributes", "*.up filter=up -text\n");
    bench.write("x.up", "text\n");
    bench.write("crlf.txt", "one\r\ntwo\r\n");
    bench.commit("attributes");
    bench.git(&["rm", "-q", "--cached", "-r", "."]);
    bench.git(&["reset", "-q", "--hard"]);
    let case = Case::of(bench, |dir| {
        write(dir, "crlf.txt", b"one\r\nTWO\r\n");
        write(dir, "x.up", b"CHANGED\n");
        write(dir, "new.up", b"NEW\n");
        write(dir, ".gitattributes", b"*.up filter=up -text\n*.lf text eol=lf\n");
        write(dir, "new.lf", b"lf\n");
    });
    case.landed();
    let read = |name: &str| fs::read_to_string(case.bench.repo().join(name)).unwrap();
    assert_eq!(read("crlf.txt"), "one\r\nTWO\r\n");
    assert_eq!((read("x.up"), read("new.up"), read("new.lf")), ("CHANGED\n".into(), "NEW\n".into(), "lf\n".into()));
    assert_eq!(case.bench.git(&["show", "main:x.up"]), "changed");
    assert_eq!(case.status(), "");
    assert_eq!(files(&case.bench), expected(&case.bench, &case.new));
}

#[test]
fn submodule_bump_changes_the_entry_not_the_folder() {
    let bench = Bench::new();
    bench.git(&["submodule", "-q", "add", "./", "sub"]);
    bench.commit("with submodule");
    let entry = format!("160000,{},sub", "1".repeat(40));
    let case = Case::of(bench, |dir| {
        let mut git = std::process::Command::new("git");
        assert!(git.args(["update-index", "--cacheinfo", &entry]).current_dir(dir).status().unwrap().success());
    });
    let inner = files(&case.bench);
    case.landed();
    assert_eq!(files(&case.bench), inner);
    assert!(case.bench.git(&["ls-files", "-s", "sub"]).contains(&"1".repeat(40)));
    // As after a merge: the folder is at another commit than the entry until `git submodule update`.
    assert_eq!(case.status(), " M sub");
}

#[test]
fn edit_in_the_moment_of_landing_is_kept() {
    let case = Case::broad();
    let edit = case.bench.repo();
    let outcome = land(LandRequest {
        repo: &case.bench.facts(),
        mirror: &case.mirror,
        run: "run_1",
        target_branch: "main",
        old: case.old.clone(),
        new: case.new.clone(),
        started: false,
        scratch: &case.bench.scratch(),
        // Called between the comparison and the first change.
        mark_started: &mut || {
            write(&edit, "a.txt", b"mine, changed\n");
            write(&edit, "fresh/deep/new.txt", b"mine, new\n");
            fs::remove_file(edit.join("run.sh")).unwrap();
            Ok(())
        },
    });
    let kept = ["a.txt", "fresh/deep/new.txt", "run.sh"].map(str::to_owned).to_vec();
    assert_eq!(outcome.unwrap(), LandOutcome::Landed { kept_edits: kept });
    let read = |name: &str| fs::read_to_string(case.bench.repo().join(name)).unwrap();
    assert_eq!((read("a.txt"), read("fresh/deep/new.txt")), ("mine, changed\n".into(), "mine, new\n".into()));
    assert!(!case.bench.repo().join("run.sh").exists());
    assert_eq!(case.status(), " M a.txt\n M fresh/deep/new.txt\n D run.sh");
    case.no_litter();
}

#[test]
fn names_that_differ_in_case_only_wait_where_case_is_folded() {
    let case = Case::of(Bench::new(), |dir| {
        fs::rename(dir.join("a.txt"), dir.join("A.txt")).unwrap();
    });
    case.bench.git(&["config", "core.ignorecase", "true"]);
    case.waits(PendingReason::CaseCollision, &["A.txt", "a.txt"], |b| {
        b.git(&["config", "core.ignorecase", "false"]);
    });
}

#[test]
fn restrictive_umask_is_the_users() {
    // The umask of this process is what landed files get; a shell sets it and runs this test again.
    if std::env::var_os("LAND_UMASK").is_none() {
        for mask in ["022", "027"] {
            let exe = std::env::current_exe().unwrap();
            let script = format!(
                "umask {mask}; exec '{}' --exact git::tests::landing::restrictive_umask_is_the_users",
                exe.display()
            );
            let out = std::process::Command::new("sh").args(["-c", &script]).env("LAND_UMASK", mask).output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stdout));
            assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"));
        }
        return;
    }
    let mask = u32::from_str_radix(&std::env::var("LAND_UMASK").unwrap(), 8).unwrap();
    let case = Case::small();
    case.landed();
    let mode = |name: &str| fs::metadata(case.bench.repo().join(name)).unwrap().mode() & 0o777;
    assert_eq!(mode("fresh/new.txt"), 0o666 & !mask);
    assert_eq!(mode("fresh"), 0o777 & !mask);
    assert_eq!(mode("a.txt"), 0o666 & !mask);
}
