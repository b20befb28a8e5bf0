//! Registering and starting, with and without effect, once and again.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use harness_tests::{Failpoint, RepoKind, Snapshot, TestEnv};
use serde_json::{Value, json};

use crate::said::{GOAL, Said, client, ctl, launch_args, registered};

#[test]
fn a_dry_run_checks_and_writes_nothing() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let exclude = fs::read(repo.join(".git/info/exclude")).unwrap_or_default();
    let before = Snapshot::of(&env, &repo);
    let said = ctl(&env, &launch_args(&repo, &["--dry-run", "--verify", "make test"])).ended(0);
    assert!(said.out.contains("nothing was written") && said.out.contains("make test"), "{said:?}");
    assert!(!said.out.contains("  would"), "no hole where an id would be: {said:?}");
    let json = ctl(&env, &launch_args(&repo, &["--dry-run", "--json"])).ended(0).json();
    assert_eq!((json["dry_run"].as_bool(), json["run_id"].as_str()), (Some(true), Some("")));
    let mut launch = launch_args(&repo, &["--dry-run"]);
    launch[0] = "launch";
    ctl(&env, &launch).ended(0);
    let folder = env.repo("plain", RepoKind::NoGit);
    ctl(&env, &launch_args(&folder, &["--dry-run", "--init-git", "--json"])).refused(2, "REPO_UNUSABLE");
    assert!(!folder.join(".git").exists());
    assert_eq!(format!("{:?}", Snapshot::of(&env, &repo)), format!("{before:?}"));
    assert_eq!(fs::read(repo.join(".git/info/exclude")).unwrap_or_default(), exclude);
    assert_eq!(ctl(&env, &["list", "--all", "--json"]).json()["runs"], json!([]));
}

#[test]
fn starting_before_anything_is_registered_names_the_verb_that_registers() {
    let env = TestEnv::new();
    let repo = env.repo("repo", RepoKind::Plain);
    for verb in ["start", "run", "resume"] {
        let said: Said = client(&env, &[verb, "--json"]).current_dir(&repo).output().unwrap().into();
        said.refused(2, "RUN_UNKNOWN");
        assert!(said.err.contains("create-launch"), "{said:?}");
    }
    ctl(&env, &["daemon", "stop"]).ended(0);
}

#[test]
fn the_predecessors_flags_and_quiet_do_what_scripts_expect() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let run = ctl(&env, &launch_args(&repo, &["--quiet"])).ended(0).out;
    let run = run.trim();
    assert!(run.starts_with("run_") && run.len() == 12, "{run:?}");
    let started = ctl(&env, &["start", run, "--sleep-seconds", "3", "--quiet"]).ended(0);
    assert_eq!(started.out.trim(), run);
    assert_eq!(started.err, "", "{started:?}");
    for verb in [&["list", "-q"][..], &["status", run, "-q"], &["wait", run, "--for", "accepted", "-q"]] {
        assert_eq!(ctl(&env, verb).ended(0).out.trim(), run, "{verb:?}");
    }
    let members = ctl(&env, &["status", run, "--json"]).ended(0).json();
    for member in ["pid", "pgid", "runtime_path", "log_path", "recovery", "terminal_reason", "command", "version"] {
        assert!(!members[member].is_null(), "{member}: {members:#}");
    }
    let stopped = ctl(&env, &["stop", run, "--json"]).ended(0).json();
    assert_eq!((stopped["status"].as_str(), stopped["lifecycle"].as_str()), (Some("terminal"), Some("stopped")));
    assert_eq!(ctl(&env, &["stop", run, "--json"]).ended(0).json()["lifecycle"], "stopped", "again is the same");
    let missing = ctl(&env, &["start", run, "--codex-bin", "/no/such/codex", "--json"]);
    missing.refused(2, "AGENT_MISSING");
}

fn post(env: &TestEnv, request: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let Ok(mut stream) = UnixStream::connect(env.path("s")) else { return (0, Value::Null) };
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: harnessd\r\nx-harness-request: {request}\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n",
        body.len()
    );
    let mut answer = String::new();
    let done = stream.write_all(format!("{head}{body}").as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok());
    match (done, status) {
        (Ok(_), Some(status)) => {
            let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
            (status, serde_json::from_str(body).unwrap_or(Value::Null))
        }
        _ => (0, Value::Null),
    }
}

/// The answer is lost between the store and the client: the same request finds the run that it made.
#[test]
fn a_request_that_is_repeated_after_a_crash_finds_its_run() {
    if Failpoint::registry().is_empty() {
        eprintln!("SKIPPED: built without crash points (--features failpoints)");
        return;
    }
    let env = TestEnv::new();
    let repo = env.repo("repo", RepoKind::Plain);
    let body = json!({"repo": repo, "original_goal": GOAL, "goal": GOAL, "scope": ".", "policy": {"agent": "offline"}});
    let daemon = env.daemon_that_dies(&Failpoint { name: "runtime.registered".into(), hit: 1 });
    harness_tests::wait_for("the daemon answers", || (ctl(&env, &["daemon", "status"]).code == 0).then_some(()));
    assert_eq!(post(&env, "one", &body).0, 0, "the daemon died before it answered");
    daemon.wait_abort();
    let _daemon = env.daemon();
    let (status, first) = post(&env, "one", &body);
    assert_eq!(status, 200, "{first}");
    let run = first["run_id"].as_str().unwrap();
    assert_eq!(ctl(&env, &["list", "--all", "--json"]).json()["runs"].as_array().unwrap().len(), 1);
    let launch: Value = serde_json::from_slice(&fs::read(repo.join("harness-launch.json")).unwrap()).unwrap();
    assert_eq!(launch["run_id"], run, "the manifest is that run's");
    let rows = env.store(run).events();
    assert_eq!(rows.iter().filter(|e| e["decision"] == "registered").count(), 1, "{rows:#?}");
    assert_eq!(post(&env, "one", &body), (200, first.clone()), "and the same answer again");
    let mut other = body;
    other["goal"] = json!("something else");
    let (status, refusal) = post(&env, "one", &other);
    assert_eq!((status, refusal["code"].as_str()), (409, Some("REQUEST_REUSED")));
}

#[test]
fn repeated_verbs_are_the_same_as_once() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    for _ in 0..2 {
        ctl(&env, &["stop", &run]).ended(0);
        assert!(ctl(&env, &["land", &run]).ended(0).out.contains("nothing is waiting"));
        ctl(&env, &["recover", "--run", &run]).ended(0);
    }
    ctl(&env, &["recover", "--run", &run, "--branch", "look", "--json"]).refused(2, "STATE_REFUSED");
    for _ in 0..2 {
        ctl(&env, &["cancel", &run, "--yes"]).ended(0);
    }
    ctl(&env, &["start", &run, "--json"]).refused(2, "RUN_CANCELLED");
}
