//! Killed between two steps, and a disk that is full.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::{ArtifactWriter, FileName, LineLog, append_lessons, project, remove_leftovers, rotate};
use super::sample;

const DIR: &str = "HARNESS_TEST_ARTIFACT_DIR";

/// Everything that a projection does, in a process of its own when it is to be killed.
fn work(dir: &Path) {
    let (repo, run_dir) = (dir.join("repo"), dir.join("run"));
    fs::create_dir_all(&repo).unwrap();
    let context = sample::context(&repo);
    let mut writer = ArtifactWriter::open(context.layout.clone(), &run_dir).unwrap();
    let summary = writer.write(&project(&sample::state(), &context));
    assert!(summary.failures.is_empty() && summary.edited_plan.is_none(), "{summary:?}");
    let mut log = LineLog::open_tsv(&context.layout.path(&FileName::Events)).unwrap();
    log.append(&[sample::event(1), sample::event(2)]).unwrap();
    let lesson = harness_core::step::Lesson {
        title: "t".into(),
        category: "task".into(),
        strategy: "s".into(),
        outcome: "accept".into(),
        insight: "i".into(),
        role: "verifier".into(),
        iteration: 2,
        at: sample::AT,
    };
    append_lessons(&context.layout.path(&FileName::Lessons), &sample::head().brief, &[lesson]).unwrap();
    rotate(&context.layout, &dir.join("previous")).unwrap();
}

/// Runs only as the child of the next test.
#[test]
fn child_of_the_crash_test() {
    if let Some(dir) = std::env::var_os(DIR) {
        work(Path::new(&dir));
    }
}

fn tree(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        } else {
            found.push((path.to_string_lossy().into_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn killed_at_every_point_a_repeat_ends_in_the_same_files() {
    let name = "artifact::tests::crash::child_of_the_crash_test";
    let child = |dir: &Path, failpoint: Option<&str>, log: &Path| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name]).env(DIR, dir).env("HARNESS_FAILPOINT_LOG", log);
        if let Some(failpoint) = failpoint {
            command.env("HARNESS_FAILPOINT", failpoint);
        }
        command.output().unwrap().status
    };
    let base = tempfile::tempdir().unwrap();
    // One folder for all, emptied each time: the files name their own paths.
    let dir = base.path().join("d");
    let log = base.path().join("hits");
    fs::create_dir(&dir).unwrap();
    assert!(child(&dir, None, &log).success());
    let want = tree(&dir);
    let hits: Vec<String> = fs::read_to_string(&log).unwrap().lines().map(str::to_owned).collect();
    for point in crate::failpoint::REGISTRY.iter().filter(|point| point.starts_with("artifact.")) {
        assert!(hits.iter().any(|hit| hit == point), "{point} is never reached");
    }
    let mut nth: std::collections::HashMap<&str, u32> = Default::default();
    for hit in &hits {
        let n = nth.entry(hit).or_default();
        *n += 1;
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        let status = child(&dir, Some(&format!("{hit}:{n}")), &log);
        assert!(!status.success(), "{hit}:{n} did not kill");
        let visible = tree(&dir);
        let torn = |(path, bytes): &(String, Vec<u8>)| path.ends_with(".json") && !bytes.ends_with(b"}\n");
        assert!(!visible.iter().any(|file| !file.0.contains(".harness-tmp-") && torn(file)), "{hit}:{n}");
        work(&dir);
        let found = tree(&dir);
        // A rotation that was interrupted is repeated over files that were projected again: same content.
        assert_eq!(names(&found), names(&want), "{hit}:{n}");
        assert!(found == want, "{hit}:{n}: another content");
    }
}

fn names(tree: &[(String, Vec<u8>)]) -> Vec<&str> {
    tree.iter().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn leftovers_of_a_killed_write_are_removed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(".harness-tmp-77-0"), "half").unwrap();
    fs::write(dir.path().join(".harness-tmp"), "user's").unwrap();
    assert_eq!(remove_leftovers(dir.path()).unwrap(), 1);
    assert_eq!(remove_leftovers(dir.path()).unwrap(), 0);
    assert!(dir.path().join(".harness-tmp").exists());
    assert_eq!(remove_leftovers(&dir.path().join("absent")).unwrap(), 0);
}

/// Runs only as the child of the next test, on a file system of 64 KiB.
#[test]
fn child_of_the_full_disk_test() {
    let Some(dir) = std::env::var_os("HARNESS_TEST_FULL_DISK") else { return };
    let dir = Path::new(&dir);
    let context = sample::context(dir);
    let run_dir = tempfile::tempdir().unwrap();
    let path = context.layout.path(&FileName::Events);
    let mut log = LineLog::open_tsv(&path).unwrap();
    log.append(&[sample::event(1)]).unwrap();
    let before = fs::read(&path).unwrap();
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    let mut state = sample::state();
    writer.write(&project(&state, &context));
    let old = fs::read(context.layout.path(&FileName::State)).unwrap();
    fs::write(dir.join("ballast"), vec![0; 1 << 20]).unwrap_err();
    let mut big = sample::event(2);
    big.description = "x".repeat(100_000);
    log.append(std::slice::from_ref(&big)).unwrap_err();
    assert_eq!(fs::read(&path).unwrap(), before, "a failed append leaves no part of a line");
    state.head.last.error = "y".repeat(30_000);
    state.head.last.decision = "z".repeat(30_000);
    let summary = writer.write(&project(&state, &context));
    assert!(!summary.failures.is_empty(), "{summary:?}");
    assert_eq!(fs::read(context.layout.path(&FileName::State)).unwrap(), old, "the old snapshot is whole");
    let left: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".harness-tmp-")), "{left:?}");
    fs::remove_file(dir.join("ballast")).unwrap();
    big.description = "short".into();
    assert_eq!(log.append(&[big]).unwrap(), 1, "space is back");
    state.head.last.error = String::new();
    assert!(writer.write(&project(&state, &context)).failures.is_empty());
}

#[test]
fn a_full_disk_leaves_whole_files_and_is_made_up_for() {
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=96k tmpfs \"$HARNESS_TEST_FULL_DISK\" || exit 77; exec \"$0\" --exact \"$1\" --nocapture";
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", mount])
        .arg(std::env::current_exe().unwrap())
        .arg("artifact::tests::crash::child_of_the_full_disk_test")
        .env("HARNESS_TEST_FULL_DISK", dir.path())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
        }
        Ok(output) if output.status.code() == Some(77) || output.status.code() == Some(1) => {
            eprintln!("SKIPPED: no right to mount a small file system: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        Err(error) => eprintln!("SKIPPED: no `unshare`: {error}"),
    }
}
