//! A command stays in its tree and changes nothing else.

use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use harness_core::evidence::CommandExit;
use harness_proto::plan::Check;
use harnessd::evidence::EvidenceError;
use harnessd::process::{Network, StandardWall, probe, standard_wall};

use crate::support::{Bench, exits};

fn at(cwd: &str, text: &str) -> Check {
    Check { cwd: Some(cwd.to_owned()), ..Check::shell(text) }
}

#[tokio::test]
async fn a_folder_outside_the_tree_is_refused() {
    let bench = Bench::new();
    symlink("/", bench.path("tree/out")).unwrap();
    symlink("sub", bench.path("tree/inside")).unwrap();
    std::fs::create_dir(bench.path("treeish")).unwrap();
    let checks = ["out", "..", "../treeish", "/tmp", "sub/../..", "absent"].map(|cwd| at(cwd, "touch ran"));
    let runs = bench.runs(checks.to_vec()).await;
    assert_eq!(exits(&runs), vec![CommandExit::Code(126); 6]);
    assert!(runs[0].stderr.contains("leads out of the tree") && runs[5].stderr.contains("absent"), "{runs:?}");
    let runs = bench.runs(vec![at("sub", "pwd"), at("inside", "pwd -P")]).await;
    let sub = format!("{}\n", bench.path("tree/sub").display());
    assert_eq!((&runs[0].stdout, &runs[1].stdout), (&sub, &sub));
}

#[tokio::test]
async fn a_tree_cannot_bring_its_own_shell() {
    let bench = Bench::new();
    std::fs::write(bench.path("tree/sh"), "#!/bin/cat\n").unwrap();
    std::fs::set_permissions(bench.path("tree/sh"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut check = Check::shell("echo real");
    check.env.insert("PATH".into(), ".:/usr/bin:/bin".into());
    assert_eq!(bench.one(check).await.stdout, "real\n");
}

#[tokio::test]
async fn the_tree_is_put_back_between_checks() {
    let bench = Bench::new();
    let file = bench.path("tree/file");
    std::fs::write(&file, "good").unwrap();
    let count = Arc::new(AtomicU32::new(0));
    let mut spec =
        bench.spec(vec![Check::shell("echo bad > file"), Check::shell("cat file"), Check::shell("cat file")]);
    let (seen, path) = (Arc::clone(&count), file.clone());
    spec.restore = Some(Arc::new(move || {
        seen.fetch_add(1, Ordering::Relaxed);
        let path = path.clone();
        Box::pin(async move { std::fs::write(path, "good").map_err(|error| error.to_string()) })
    }));
    let runs = bench.collect(spec).await.unwrap().runs;
    assert_eq!((runs[1].stdout.as_str(), count.load(Ordering::Relaxed)), ("good", 2));
    let mut spec = bench.spec(vec![Check::shell("true"), Check::shell("true")]);
    spec.restore = Some(Arc::new(|| Box::pin(async { Err("gone".to_owned()) })));
    assert!(matches!(bench.collect(spec).await, Err(EvidenceError::Restore { .. })));
}

#[tokio::test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
async fn behind_a_wall_only_tree_and_tmp_can_be_written() {
    let bench = Bench::new();
    if !probe().filesystem {
        eprintln!("SKIPPED: this kernel has no Landlock");
        return;
    }
    std::fs::write(bench.path("outside"), "mine").unwrap();
    let mut spec = bench.spec(vec![
        Check::shell("echo x > file && echo y > $TMPDIR/file"),
        at("sub", "echo x > ../../outside"),
        Check::shell("cat ../outside"),
        Check::shell("echo x > ../outputs/forged"),
    ]);
    std::fs::create_dir(&spec.tmp).unwrap();
    spec.wall = standard_wall(&StandardWall {
        tree: spec.tree_path.clone(),
        git_dir: None,
        mirror: None,
        objects_writable: false,
        alternates: vec![],
        tmp: spec.tmp.clone(),
        caches: vec![],
        read_only: vec![],
        home: "/nonexistent".into(),
        path_env: "/usr/bin:/bin".into(),
        network: Network::Allowed,
    });
    let runs = bench.collect(spec).await.unwrap().runs;
    assert_eq!(runs[0].exit, CommandExit::Code(0), "{}", runs[0].stderr);
    for run in &runs[1..] {
        assert_ne!(run.exit, CommandExit::Code(0), "{}", run.command);
        assert!(run.stderr.contains("ermission denied") || run.stderr.contains("ead-only"), "{}", run.stderr);
    }
    assert_eq!(std::fs::read_to_string(bench.path("outside")).unwrap(), "mine");
    assert!(!bench.path("outputs/forged").exists());
}
