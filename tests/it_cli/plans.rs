//! A `tasks.json` of every bad kind: refused with its name, before anything is written.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use harness_tests::{RepoKind, TestEnv};
use nix::sys::stat::Mode;
use serde_json::{Value, json};

use crate::said::{Said, ctl, launch_args};

fn task(id: &Value) -> Value {
    json!({
        "id": id, "title": "t", "description": "d", "acceptance_criteria": ["c"], "status": "ready", "priority": 1,
        "dependencies": [], "verification": ["true"],
    })
}

fn plan(ids: &[Value]) -> Vec<u8> {
    json!({"version": 1, "tasks": ids.iter().map(task).collect::<Vec<_>>()}).to_string().into_bytes()
}

#[test]
fn a_bad_plan_is_refused_before_anything_is_written() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let file = repo.join("tasks.json");
    let bad: Vec<(&str, Vec<u8>, &str)> = vec![
        ("traversal", plan(&[json!("../../x")]), "`../../x`"),
        ("case", plan(&[json!("A"), json!("a")]), "differ only in case"),
        ("300 characters", plan(&[json!("a".repeat(300))]), "is not allowed"),
        ("emoji", plan(&[json!("🦀")]), "`🦀`"),
        ("lock", plan(&[json!("a.lock")]), "`a.lock`"),
        ("dots", plan(&[json!("..")]), "`..`"),
        ("empty id", plan(&[json!("")]), "is not allowed"),
        ("not JSON", b"{".to_vec(), "Invalid JSON"),
        ("empty", Vec::new(), "Invalid JSON"),
        ("deep", vec![b'['; 200_000], "Invalid JSON"),
        ("a list", b"[]".to_vec(), "Expected JSON object"),
        ("UTF-16", b"\xff\xfe{\0}\0".to_vec(), "UTF-8"),
    ];
    for (name, bytes, told) in bad {
        fs::write(&file, &bytes).unwrap();
        let checked = ctl(&env, &["tasks", "validate", file.to_str().unwrap(), "--json"]).ended(2).json();
        assert_eq!(checked["ok"], false, "{name}");
        assert!(checked["errors"].to_string().contains(told), "{name}: {checked}");
        let said = ctl(&env, &launch_args(&repo, &["--json"]));
        said.refused(2, "PLAN_INVALID");
        assert!(said.err.contains(told), "{name}: {said:?}");
        assert_eq!(fs::read(&file).unwrap(), bytes, "{name}");
        assert!(!repo.join("harness-launch.json").exists(), "{name}");
    }
    assert_eq!(ctl(&env, &["list", "--all", "--json"]).json()["runs"], json!([]));
}

#[test]
fn a_plan_of_16_mib_is_refused_by_the_same_limit_everywhere() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let file = repo.join("tasks.json");
    let mut bytes = plan(&[json!("T-1")]);
    bytes.resize(16 << 20, b' ');
    fs::write(&file, &bytes).unwrap();
    ctl(&env, &["tasks", "validate", file.to_str().unwrap(), "--json"]).refused(2, "PLAN_TOO_LARGE");
    ctl(&env, &launch_args(&repo, &["--json"])).refused(2, "PLAN_TOO_LARGE");
    assert!(!repo.join("harness-launch.json").exists());
    bytes.pop();
    fs::write(&file, &bytes).unwrap();
    ctl(&env, &["tasks", "validate", file.to_str().unwrap()]).ended(0);
    ctl(&env, &launch_args(&repo, &[])).ended(0);
}

#[test]
fn a_byte_order_mark_is_read_over() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let file = repo.join("tasks.json");
    fs::write(&file, [&b"\xef\xbb\xbf"[..], &plan(&[json!("T-1")])].concat()).unwrap();
    assert_eq!(ctl(&env, &["tasks", "validate", file.to_str().unwrap(), "--json"]).ended(0).json()["tasks"], 1);
    let said = ctl(&env, &launch_args(&repo, &[])).ended(0);
    assert!(said.err.contains("1 tasks of the plan"), "{said:?}");
}

/// A pipe blocks who opens it and `/dev/zero` never ends: neither is opened.
#[test]
fn what_is_no_file_is_refused_at_once() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    type Make = fn(&Path);
    let kinds: [(&str, Make); 5] = [
        ("folder", |path| fs::create_dir(path).unwrap()),
        ("pipe", |path| nix::unistd::mkfifo(path, Mode::from_bits_truncate(0o600)).unwrap()),
        ("loop", |path| std::os::unix::fs::symlink("tasks.json", path).unwrap()),
        ("zero", |path| std::os::unix::fs::symlink("/dev/zero", path).unwrap()),
        ("dangling", |path| std::os::unix::fs::symlink("/nowhere/x", path).unwrap()),
    ];
    for (kind, make) in kinds {
        let repo = env.repo(kind, RepoKind::Plain);
        let file = repo.join("tasks.json");
        make(&file);
        let begun = Instant::now();
        let checked = ctl(&env, &["tasks", "validate", file.to_str().unwrap(), "--json"]);
        assert_ne!(checked.code, 0, "{kind}");
        assert!(checked.json()["error"]["next"].is_string(), "{kind}: {checked:?}");
        let said: Said = ctl(&env, &launch_args(&repo, &["--json"]));
        // A link to nothing is no plan; whether a run may begin is the only question it leaves open.
        if kind != "dangling" {
            said.refused(2, "PLAN_INVALID");
            assert!(!repo.join("harness-launch.json").exists(), "{kind}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{kind}");
    }
    ctl(&env, &["daemon", "status"]).ended(0);
}

#[test]
fn an_unreadable_plan_is_refused_by_name() {
    if nix::unistd::geteuid().is_root() {
        eprintln!("SKIPPED: permissions do not stop root");
        return;
    }
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let repo = env.repo("repo", RepoKind::Plain);
    let file = repo.join("tasks.json");
    fs::write(&file, "{}").unwrap();
    env.command("chmod").args(["000", file.to_str().unwrap()]).status().unwrap();
    ctl(&env, &launch_args(&repo, &["--json"])).refused(2, "PLAN_INVALID");
    assert!(!repo.join("harness-launch.json").exists());
}
