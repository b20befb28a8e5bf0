//! Environments in which nothing can be kept or reached.

use std::fs;
use std::process::Command;

use harness_tests::{RepoKind, TestEnv, wait_for};

use crate::said::{Said, client, ctl, launch_args, registered};

fn with(env: &TestEnv, args: &[&str], set: &[(&str, &str)], unset: &[&str]) -> Said {
    let mut command = client(env, args);
    command.envs(set.iter().copied());
    for name in unset {
        command.env_remove(name);
    }
    command.output().unwrap().into()
}

#[test]
fn unusable_places_are_refused_with_the_command_that_mends_them() {
    let env = TestEnv::new();
    let long = format!("/tmp/{}", "x".repeat(120));
    let none = ["HOME", "HARNESS_STATE_DIR", "HARNESS_SOCKET", "XDG_STATE_HOME"];
    for verb in [&["status"][..], &["start"], &["daemon", "start"], &["config", "show"], &["doctor"], &["list"]] {
        let verb = &[verb, &["--json"]].concat();
        let socket = with(&env, verb, &[("HARNESS_SOCKET", &long)], &[]);
        socket.refused(2, "USAGE");
        assert!(socket.err.contains("next: unset HARNESS_SOCKET"), "{socket:?}");
        let relative = with(&env, verb, &[("HARNESS_STATE_DIR", "rel")], &[]);
        relative.refused(2, "USAGE");
        assert!(relative.err.contains("next: export HARNESS_STATE_DIR=\"$PWD/\"'rel'"), "{relative:?}");
        let homeless = with(&env, verb, &[], &none);
        homeless.refused(2, "USAGE");
        assert!(homeless.err.contains("next: export HARNESS_STATE_DIR=/"), "{homeless:?}");
    }
    with(&env, &["explain", "TIMEOUT"], &[], &none).ended(0);
    let runs = with(&env, &["daemon", "start", "--json"], &[("HARNESS_RUNS_DIR", "rel")], &[]);
    runs.refused(2, "USAGE");
    assert!(runs.err.contains("export HARNESS_RUNS_DIR="), "{runs:?}");
    let nowhere = with(&env, &["daemon", "start", "--json"], &[("HARNESS_STATE_DIR", "/dev/null/x")], &[]);
    nowhere.refused(1, "IO");
    fs::write(env.path("s"), "mine").unwrap();
    ctl(&env, &["daemon", "start", "--json"]).refused(10, "DAEMON_REFUSED");
    assert_eq!(fs::read_to_string(env.path("s")).unwrap(), "mine", "a file of the user's is never replaced");
}

#[test]
fn a_deep_state_directory_gets_a_short_socket() {
    let env = TestEnv::new();
    let deep = env.path(&"d".repeat(150));
    let deep = deep.to_str().unwrap();
    let runtime = env.path("run");
    fs::create_dir(&runtime).unwrap();
    let set = [("HARNESS_STATE_DIR", deep), ("XDG_RUNTIME_DIR", runtime.to_str().unwrap())];
    with(&env, &["daemon", "start"], &set, &["HARNESS_SOCKET"]).ended(0);
    let answer = with(&env, &["daemon", "status", "--json"], &set, &["HARNESS_SOCKET"]).ended(0).json();
    assert!(answer["daemon"]["socket"].as_str().unwrap().len() <= 107, "{answer}");
    with(&env, &["daemon", "stop"], &set, &["HARNESS_SOCKET"]).ended(0);
}

#[test]
fn a_read_only_repository_is_refused_and_nothing_is_half_written() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: permissions do not stop root");
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let lock = |mode: &str| {
        assert!(env.command("chmod").args(["-R", mode, repo.to_str().unwrap()]).status().unwrap().success());
    };
    lock("a-w");
    let said = ctl(&env, &launch_args(&repo, &["--json"]));
    lock("u+w");
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.json()["error"]["next"].is_string(), "{said:?}");
    assert!(!repo.join("harness-launch.json").exists());
    ctl(&env, &launch_args(&repo, &[])).ended(0);
}

/// A state directory of 2 MiB in a mount namespace of the test's own.
#[test]
fn a_full_disk_is_told_and_nothing_is_lost() {
    let probe = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    if !probe.is_ok_and(|done| done.status.success()) {
        eprintln!("SKIPPED: mounting needs root and unshare");
        return;
    }
    let env = TestEnv::new();
    let repo = env.repo("repo", RepoKind::Plain);
    let launch = launch_args(&repo, &["--json"]).iter().map(|a| format!("'{a}'")).collect::<Vec<_>>().join(" ");
    let script = format!(
        "mount -t tmpfs -o size=2m none {state} && harnessctl daemon start >&2 && harnessctl {launch} >{one} && \
         dd if=/dev/zero of={state}/ballast bs=4k 2>/dev/null; \
         harnessctl {launch} >{two}; echo $? >{code}; rm {state}/ballast; \
         harnessctl list --all --json >{three}; harnessctl {launch} >{four}; harnessctl db check >&2; echo $? >{check}; \
         harnessctl daemon stop >&2",
        state = env.state_dir().display(),
        one = env.path("one").display(),
        two = env.path("two").display(),
        three = env.path("three").display(),
        four = env.path("four").display(),
        code = env.path("code").display(),
        check = env.path("check").display(),
    );
    let done: Said = env.command("unshare").args(["-m", "sh", "-c", &script]).output().unwrap().into();
    let json = |name: &str| -> serde_json::Value {
        let text = fs::read_to_string(env.path(name)).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name} ({e}): {text} {done:?}"))
    };
    let code = fs::read_to_string(env.path("code")).unwrap();
    assert_eq!(code.trim(), "75", "{done:?}");
    assert_eq!(json("two")["error"]["code"], "DISK_FULL", "{done:?}");
    let before = json("three");
    assert_eq!(before["runs"].as_array().unwrap().len(), 1, "nothing half-written: {before:#}");
    assert_eq!(before["runs"][0]["run_id"], json("one")["run_id"]);
    assert!(json("four")["run_id"].is_string(), "with space it goes on: {done:?}");
    assert_eq!(fs::read_to_string(env.path("check")).unwrap().trim(), "0", "{done:?}");
}

#[test]
fn a_daemon_killed_with_its_socket_left_is_down_and_can_be_started() {
    let env = TestEnv::new();
    let daemon = env.daemon();
    let (repo, run) = registered(&env);
    daemon.kill();
    assert!(env.path("s").exists());
    for args in [&["status"][..], &["status", "@last"], &["status", &run[..6]], &["status", "--repo", "."]] {
        let said: Said = client(&env, args).current_dir(&repo).output().unwrap().into();
        assert_eq!(said.code, 3, "{said:?}");
        assert!(said.out.contains("stale") && said.out.contains(&run), "{args:?}: {said:?}");
    }
    let sub = repo.join("sub");
    fs::create_dir(&sub).unwrap();
    let said: Said = client(&env, &["status", "--repo", ".", "--json"]).current_dir(&sub).output().unwrap().into();
    assert_eq!((said.code, said.json()["run_id"].as_str()), (3, Some(run.as_str())), "{said:?}");
    assert_eq!(said.json()["stale"], true);
    ctl(&env, &["list", "--json"]).refused(3, "DAEMON_DOWN");
    ctl(&env, &["daemon", "status", "--json"]).refused(3, "DAEMON_DOWN");
    ctl(&env, &["daemon", "start"]).ended(0);
    wait_for("the run is there", || (ctl(&env, &["status", &run]).code == 0).then_some(()));
    ctl(&env, &["daemon", "stop"]).ended(0);
}
