//! What is typed wrongly, and codes that are asked about.

use harness_proto::error::CODES;
use harness_proto::explain::all;
use harness_tests::{RepoKind, TestEnv};

use crate::said::{ctl, launch_args, registered};

#[test]
fn what_cannot_be_typed_is_refused_in_three_lines_and_as_json() {
    let env = TestEnv::new();
    for words in [
        &["frobnicate"][..],
        &["statsu"],
        &["status", "--frobnicate"],
        &[""],
        &["daemon"],
        &["tasks", "frob"],
        &["start", "--repo"],
        &["create-launch"],
        &["create-launch", "--goal", "g", "--scope", "s"],
        &["wait", "--for", "rain"],
        &["events", "--since", "x"],
        &["status", "--repo", ".", "run_abc"],
        &["logs", "-n", "-1"],
        &["list", "--limit", "many"],
        &["cancel"],
        &["cancel", "@last"],
        &["explain", "FROBNICATE"],
        &["show", ".."],
        &["show", ""],
        &["status", ".."],
        &["status", ""],
    ] {
        let plain = ctl(&env, words);
        plain.refused(2, "USAGE");
        assert_eq!(plain.out, "", "{words:?}");
        let json = ctl(&env, &[words, &["--json"]].concat());
        json.refused(2, "USAGE");
        assert!(json.json()["error"].is_object(), "{words:?}");
    }
    assert!(harness_tests::living(env.root().to_str().unwrap()).is_empty(), "a refusal must not start a daemon");
}

#[test]
fn a_typo_gets_the_one_word_that_was_meant() {
    let env = TestEnv::new();
    for (typed, meant) in [
        (&["statsu"][..], "did you mean 'status'?"),
        (&["lauch"], "did you mean 'launch'?"),
        (&["status", "--exit-cod"], "--exit-code"),
        (&["explain", "zero_test"], "harnessctl explain ZERO_TESTS"),
        (&["daemon"], "next: harnessctl daemon --help"),
        (&["tasks", "frob"], "next: harnessctl tasks --help"),
    ] {
        let said = ctl(&env, typed);
        assert!(said.err.contains(meant), "{meant}: {said:?}");
    }
    let unknown = ctl(&env, &["status", "--frobnicate"]);
    assert!(!unknown.err.contains("as a value"), "{unknown:?}");
}

#[test]
fn every_code_is_explained_with_the_next_step() {
    let env = TestEnv::new();
    for row in all() {
        let said = ctl(&env, &["explain", row.code]).ended(0);
        assert!(said.out.starts_with(&format!("{}: {}", row.code, row.title)), "{said:?}");
        assert!(said.out.contains(row.what) && said.out.contains("next: "), "{said:?}");
    }
    for blocker in harness_proto::blocker::BLOCKERS {
        ctl(&env, &["explain", blocker.code]).ended(0);
    }
    for typed in ["evidence-failed", "blocked:ZERO_TESTS", "held:needs_human", "pending:local_changes"] {
        ctl(&env, &["explain", typed]).ended(0);
    }
    let listed = ctl(&env, &["explain", "--json"]).ended(0).json();
    let listed: Vec<&str> = listed["codes"].as_array().unwrap().iter().filter_map(|c| c["code"].as_str()).collect();
    for code in CODES {
        assert!(listed.iter().any(|row| row.eq_ignore_ascii_case(code.name)), "{}", code.name);
    }
}

/// URLs fold dot segments: without care `cancel ..` is a request to cancel the whole run.
#[test]
fn a_dot_is_no_task_and_cancels_nothing() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    for verb in ["cancel", "retry", "skip", "show"] {
        for task in ["..", ".", ""] {
            ctl(&env, &[verb, task, "--run", &run, "--json"]).refused(2, "USAGE");
        }
        for task in ["../../x", "%2e%2e", "a/b", "A?b=c#d", "🦀", &"x".repeat(300)] {
            ctl(&env, &[verb, task, "--run", &run, "--json"]).refused(2, "TASK_UNKNOWN");
        }
    }
    assert_eq!(env.store(&run).status()["lifecycle"], "registered");
}

#[test]
fn a_folder_that_is_no_repository_is_refused_with_commands_that_make_it_one() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let folder = env.repo("plain", RepoKind::NoGit);
    let missing = env.path("missing");
    std::fs::write(env.path("file"), "x").unwrap();
    for verb in ["start", "status", "stop", "pause", "events", "wait", "rebuild", "land", "recover"] {
        for path in [&folder, &missing, &env.path("file")] {
            ctl(&env, &[verb, "--repo", path.to_str().unwrap(), "--json"]).refused(2, "REPO_UNUSABLE");
        }
    }
    assert!(ctl(&env, &["status", "--repo", missing.to_str().unwrap()]).err.contains("does not exist"));
    let said = ctl(&env, &launch_args(&folder, &["--json"]));
    said.refused(2, "REPO_UNUSABLE");
    let next = said.json()["error"]["next"].as_str().unwrap().to_owned();
    let made = env.command("sh").args(["-c", &next]).output().unwrap();
    assert!(made.status.success(), "{next}: {made:?}");
    ctl(&env, &launch_args(&folder, &[])).ended(0);
    let other = env.repo("other", RepoKind::NoGit);
    ctl(&env, &launch_args(&other, &["--init-git"])).ended(0);
    let unborn = env.repo("unborn", RepoKind::Unborn);
    ctl(&env, &launch_args(&unborn, &["--json"])).refused(2, "REPO_UNUSABLE");
}
