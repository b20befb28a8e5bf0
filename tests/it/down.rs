//! What the client says when no daemon runs (S4-064; ux.md sections 3 and 5).

use harness_tests::TestEnv;

#[test]
fn verbs_without_a_daemon_say_so_in_three_lines_and_start_none() {
    let env = TestEnv::new();
    for verb in [&["status"][..], &["list"], &["events", "@last"], &["stop", "@last"], &["daemon", "status"]] {
        let done = env.harnessctl(verb);
        assert_eq!(done.code, 3, "{verb:?}: {done:?}");
        assert!(done.stderr.contains("next: "), "{verb:?}: {done:?}");
    }
    let json = env.harnessctl(&["list", "--json"]);
    assert_eq!(json.code, 3, "{json:?}");
    assert!(json.json().is_object(), "{json:?}");
    assert!(
        harness_tests::living(env.root().to_str().unwrap()).is_empty(),
        "a verb that only looks must not start a daemon"
    );
}

#[test]
fn what_cannot_be_typed_is_refused_with_the_next_command() {
    let env = TestEnv::new();
    for words in [&["frobnicate"][..], &["status", "--frobnicate"], &["start", "--repo"], &["daemon"]] {
        let done = env.harnessctl(words);
        assert_eq!(done.code, 2, "{words:?}: {done:?}");
        assert!(done.stderr.starts_with("error["), "{words:?}: {done:?}");
        assert!(done.stderr.contains("next: "), "{words:?}: {done:?}");
        assert_eq!(done.stdout, "", "{words:?}");
    }
}

#[test]
fn every_code_is_explained_without_a_daemon() {
    let env = TestEnv::new();
    let all = env.harnessctl(&["explain", "--json"]).success().json();
    let codes = |member: &str| -> Vec<String> {
        all[member].as_array().unwrap().iter().map(|word| word["code"].as_str().unwrap().to_owned()).collect()
    };
    let (errors, blockers) = (codes("codes"), codes("blockers"));
    assert!(blockers.len() >= 17 && errors.len() >= 40, "{all:#}");
    for code in blockers.iter().chain(&errors) {
        let done = env.harnessctl(&["explain", code]).success();
        assert!(done.stdout.contains(code), "{done:?}");
    }
    assert!(env.harnessctl(&["explain", "zero-tests"]).success().stdout.contains("next: "));
    assert_eq!(env.harnessctl(&["explain", "NONSENSE"]).code, 2);
}
