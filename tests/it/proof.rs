//! Setup, baseline and what counts as a proof (DESIGN 8).

use std::fs;

use serde_json::json;

use crate::bench::{World, read_json, task, text};

/// A setup that fails on the base parks the run before any agent is paid, and `start` tries again.
#[test]
fn a_failing_setup_parks_the_run_before_any_agent_is_paid() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let ready = world.env.path("ready");
    let setup = format!("echo no such compiler >&2; test -f {}", ready.display());
    let run = world.start(&["--setup", &setup, "--set", "execution_policy=danger_full_access"]);
    world.event(&run, "run", "held:parked");
    let status = world.status(&run);
    assert_eq!(status["hold"]["reason"], "environment_not_ready", "{status:#}");
    assert_eq!(status["usage"]["turns"], 0, "nobody was paid");
    assert_eq!(world.log("start").len(), 0);
    assert!(text(&status["hold"]["detail"]).contains("no such compiler"), "{status:#}");
    fs::write(ready, "").unwrap();
    world.ctl(&["start", &run]).success();
    world.completed(&run);
    assert!(!world.events(&run, "setup", "pass").is_empty());
}

/// corrections 48: nothing that would prove anything is refused at once, with both ways out.
#[test]
fn a_plan_that_nothing_can_prove_is_refused_unless_it_is_said_so() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let plan = json!({"version": 1, "goal": "", "planner_revision": 0, "tasks": [task("A", &[], &[])]});
    fs::write(world.repo.join("tasks.json"), plan.to_string()).unwrap();
    let bare = world.ctl(&[
        "create-launch",
        "--repo",
        world.repo.to_str().unwrap(),
        "--original-goal",
        "g",
        "--goal",
        "g",
        "--scope",
        ".",
    ]);
    assert_eq!(bare.code, 2, "{bare:?}");
    for word in ["NO_VERIFICATION", "--verify", "--no-verification"] {
        assert!(bare.stderr.contains(word), "{word}: {bare:?}");
    }
    assert!(!world.repo.join("harness-launch.json").exists());
    let (run, status) = world.complete(&["--no-verification"]);
    assert_eq!(
        (&status["no_verification"], &status["tasks"][0]["unproven"]),
        (&true.into(), &true.into()),
        "{status:#}"
    );
    let message = world.git(&["log", "-1", "--format=%B", "main"]);
    assert!(message.to_lowercase().contains("unproven") || message.contains("Harness-Verification: none"), "{message}");
    let shown = world.ctl(&["status", &run]).success();
    assert!(shown.stdout.to_lowercase().contains("unproven") || shown.stdout.contains("no verification"), "{shown:?}");
    let tasks = read_json(&world.repo.join("tasks.json"));
    assert_eq!(tasks["tasks"][0]["status"], "done");
}

/// A planner's plan without a command is no better.
#[test]
fn a_planners_plan_that_nothing_can_prove_is_sent_back() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let (repo, codex) = (world.repo.to_string_lossy(), world.env.path("codex"));
    let args = ["create-launch", "--json", "--repo", &repo, "--original-goal", "g", "--goal", "g", "--scope", "."];
    let done = world.ctl(&[&args[..], &["--codex-bin", codex.to_str().unwrap()]].concat()).success().json();
    let run = text(&done["run_id"]);
    world.ctl(&["start", &run]).success();
    let (code, status) = world.wait(&run, "done");
    assert_eq!((code, &status["hold"]["reason"]), (7, &"plan_invalid".into()), "{status:#}");
    assert_eq!((world.turns("planner").len(), world.turns("implementer").len()), (2, 0));
    assert!(text(&world.turns("planner")[1]["prompt"]).contains("verification"));
}

/// Zero tests, a missing program, a signal, a timeout: each fails closed.
#[test]
fn what_proves_nothing_fails_closed() {
    for (check, code, failure) in [
        ("python3 -m unittest discover -s work -p 'test_*.py'", "ZERO_TESTS", ""),
        ("echo 'Ran 0 tests in 0.000s'; python3 -m unittest discover -p 'nothing_*.py' || true", "ZERO_TESTS", ""),
        ("no-such-program-anywhere", "", ""),
        ("kill -9 $$", "EVIDENCE_FAILED", ""),
        ("sleep 60", "EVIDENCE_TIMED_OUT", "TIMEOUT"),
    ] {
        let world = World::new();
        let _daemon = world.env.daemon();
        let extra = ["--verify", check, "--max-task-attempts", "1", "--set", "on_exhausted=pause"];
        let run = world.start(&[&extra[..], &["--set", "evidence.timeout_s=2"]].concat());
        harness_tests::wait_for(&format!("{check} fails closed"), || {
            (!world.status(&run)["hold"].is_null()).then_some(())
        });
        let status = world.status(&run);
        assert_ne!(status["lifecycle"], "completed", "{check}: {status:#}");
        assert_eq!(world.landed("main"), Vec::<String>::new(), "{check}");
        assert_eq!(world.turns("verifier").len(), 0, "{check}: nobody is asked about what is not proven");
        if !code.is_empty() {
            assert!(
                !world.events(&run, "gate", &format!("blocked:{code}")).is_empty(),
                "{check}\n{}",
                world.history(&run)
            );
        }
        if !failure.is_empty() {
            let shown = world.env.store(&run).task("T-001");
            assert_eq!(shown["attempts"][0]["evidence"][0]["failure"], failure, "{shown:#}");
        }
    }
}

/// Evidence is collected in a clean tree of the commit, never in the attempt's own.
#[test]
fn evidence_sees_the_commit_and_not_what_an_agent_left_ignored() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.env.commit(&world.repo, ".gitignore", "*.cache\n");
    world.settle();
    // The agent leaves a file that is ignored: it is in its tree and in no commit.
    world.set(&[("FILE", "left.cache")]);
    world.faults("no_commit@implementer");
    let run =
        world.start(&["--verify", "test ! -e left.cache", "--max-task-attempts", "1", "--set", "on_exhausted=pause"]);
    assert_eq!(world.wait(&run, "done").0, 7, "{}", world.history(&run));
    assert!(!world.events(&run, "gate", "blocked:NO_CHANGE").is_empty(), "{}", world.history(&run));
}

/// P5: each done task tells its commit, commands with exit codes and tree, and who accepted.
#[test]
fn show_explains_a_done_task() {
    let world = World::new();
    let _daemon = world.env.daemon();
    world.plan(&json!([task("A", &[], &["test -f work/A.txt"])]));
    let (run, _) = world.complete(&[]);
    let shown = world.env.store(&run).task("A");
    let attempt = &shown["attempts"][0];
    assert_eq!((&attempt["verdict"], &attempt["outcome"]), (&"accept".into(), &"accepted".into()), "{shown:#}");
    let commands: Vec<String> = attempt["evidence"].as_array().unwrap().iter().map(|e| text(&e["command"])).collect();
    assert!(commands.contains(&"test -f work/A.txt".to_owned()) && commands.len() >= 2, "{commands:?}");
    for record in attempt["evidence"].as_array().unwrap() {
        assert_eq!((&record["exit_code"], &record["result"]), (&0.into(), &"PASS".into()));
        assert_eq!(record["tree"], world.git(&["rev-parse", "main^{tree}"]).as_str());
        assert!(std::path::Path::new(record["output"].as_str().unwrap()).is_file());
    }
}
