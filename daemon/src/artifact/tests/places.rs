//! Where the files lie, what commits may not hold, rotation, and the launch gate.

use std::fs;
use std::path::Path;

use super::super::{
    ArtifactWriter, FileName, GateDecision, Layout, Presence, ReportName, decide, project, read_facts, rotate,
};
use super::sample;

#[test]
fn a_tracked_name_moves_everything_to_its_own_folder() {
    let repo = Path::new("/r");
    let root = Layout::choose(repo, ["src/tasks.json", "README.md", "reportsx/a"]).unwrap();
    assert!(!root.in_own_folder());
    for tracked in ["tasks.json", "plan.md", "reports/sales.csv", "harness-state.json"] {
        let own = Layout::choose(repo, [tracked]).unwrap();
        assert_eq!(own.path(&FileName::Tasks), Path::new("/r/.harness/tasks.json"), "{tracked}");
        assert!(!own.reserves(tracked), "it is the user's own file");
        assert!(own.exclude_patterns().iter().all(|p| p.starts_with("/.harness/")));
    }
    assert!(Layout::choose(repo, ["tasks.json", ".harness/config.json"]).unwrap().in_own_folder());
    assert!(Layout::choose(repo, ["tasks.json", ".harness/plan.md"]).is_err());
    assert!(Layout::choose(repo, ["tasks.json", ".harness"]).is_err());
}

#[test]
fn commits_may_not_hold_our_files() {
    let root = Layout::choose(Path::new("/r"), []).unwrap();
    for path in
        ["tasks.json", "harness-state.json", "reports", "reports/impl-T-1-a1.json", "plan.md/x", ".harness-tmp-1-2"]
    {
        assert!(root.reserves(path), "{path}");
    }
    for path in ["reports/sales.json", "src/tasks.json", "harness.toml", ".harness/x", "report"] {
        assert!(!root.reserves(path), "{path}");
    }
    let own = Layout::choose(Path::new("/r"), ["tasks.json"]).unwrap();
    assert!(
        own.reserves(".harness")
            && own.reserves(".harness/tasks.json")
            && own.reserves(".harness/reports/planner-r001.json")
    );
    assert!(!own.reserves(".harness/config.json") && !own.reserves("plan.md"));
}

#[test]
fn report_names_never_leave_their_folder() {
    assert_eq!(ReportName::planner(7).as_str(), "planner-r007.json");
    for good in ["planner-r1000.json", "impl-T-001-a1.json", "verdict-a-a-a12.json"] {
        assert!(ReportName::parse(good).is_some(), "{good}");
    }
    for bad in [
        "../x.json",
        "impl-../x-a1.json",
        "impl-a/b-a1.json",
        "impl-T-a.json",
        "planner-r.json",
        "planner-r1",
        "x.json",
    ] {
        assert!(ReportName::parse(bad).is_none(), "{bad}");
    }
}

#[test]
fn git_hides_our_files_and_nothing_else() {
    let repo = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let output = std::process::Command::new("git")
            .args(args)
            .current_dir(repo.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    git(&["init", "-q"]);
    let layout = Layout::choose(repo.path(), []).unwrap();
    fs::write(repo.path().join(".git/info/exclude"), layout.exclude_patterns().join("\n")).unwrap();
    fs::create_dir_all(repo.path().join("sub/reports")).unwrap();
    fs::create_dir(repo.path().join("reports")).unwrap();
    let ours = [FileName::Launch, FileName::Events, FileName::Tasks, FileName::Report(ReportName::planner(1))];
    for name in &ours {
        fs::write(layout.path(name), "x").unwrap();
    }
    for users in ["reports/sales.json", "sub/tasks.json", "sub/reports/planner-r001.json"] {
        fs::write(repo.path().join(users), "x").unwrap();
    }
    let seen = git(&["ls-files", "--others", "--exclude-standard"]);
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        ["reports/sales.json", "sub/reports/planner-r001.json", "sub/tasks.json"]
    );
}

#[test]
fn the_next_run_finds_an_empty_place_and_the_old_files_are_kept() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = sample::context(repo.path());
    let report = harness_proto::report::Report::Planner(harness_proto::report::PlannerReport {
        revision: 1,
        summary: "s".into(),
        task_changes: Default::default(),
        planner_requested_reason: String::new(),
    });
    context.reports = vec![(ReportName::planner(1), report)];
    let layout = context.layout.clone();
    let mut writer = ArtifactWriter::open(layout.clone(), run_dir.path()).unwrap();
    writer.write_launch(b"{}\n").unwrap();
    writer.write(&project(&sample::state(), &context));
    fs::write(layout.path(&FileName::Lessons), "lessons").unwrap();
    fs::write(layout.reports().join("sales.json"), "user's").unwrap();
    assert_eq!(rotate(&layout, run_dir.path()).unwrap(), 6);
    assert_eq!(rotate(&layout, run_dir.path()).unwrap(), 0, "a repeat moves nothing");
    let mut left: Vec<_> = fs::read_dir(repo.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["harness-lessons.md", "reports"]);
    assert!(layout.reports().join("sales.json").exists());
    assert!(run_dir.path().join("artifacts/reports/planner-r001.json").exists());
    assert!(run_dir.path().join("artifacts/harness-launch.json").exists());
}

#[test]
fn a_plan_written_for_the_next_run_stays_in_place() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = sample::context(repo.path());
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    writer.write(&project(&sample::state(), &context));
    fs::write(context.layout.path(&FileName::Tasks), "next").unwrap();
    rotate(&context.layout, run_dir.path()).unwrap();
    assert_eq!(fs::read(context.layout.path(&FileName::Tasks)).unwrap(), b"next");
    assert!(context.layout.path(&FileName::Plan).exists());
    assert!(!context.layout.path(&FileName::State).exists());
}

#[test]
fn the_gate_follows_its_table() {
    let repo = tempfile::tempdir().unwrap();
    let layout = Layout::choose(repo.path(), []).unwrap();
    let answer = |running: bool, ignore: bool| {
        let gate = decide(&read_facts(&layout, running).unwrap(), ignore);
        (gate.decision, gate.reason)
    };
    let put = |name: FileName, text: &str| fs::write(layout.path(&name), text).unwrap();
    assert_eq!(answer(false, false), (GateDecision::Fresh, "fresh_start"));
    assert_eq!(answer(true, false), (GateDecision::BlockedStart, "already_running"));
    assert_eq!(answer(true, true), (GateDecision::Fresh, "fresh_start"));
    put(FileName::Plan, "# Plan");
    assert_eq!(answer(false, false), (GateDecision::Recovery, "launch_manifest_missing"));
    put(FileName::Launch, "{");
    assert_eq!(answer(false, false), (GateDecision::Recovery, "invalid_artifact"));
    put(FileName::Launch, "{}");
    assert_eq!(answer(false, false), (GateDecision::Recovery, "incomplete_artifacts"));
    put(FileName::Tasks, "[]");
    assert_eq!(answer(false, false), (GateDecision::Recovery, "invalid_artifact"));
    put(FileName::Tasks, "{}");
    assert_eq!(answer(false, false), (GateDecision::Resumable, "bootstrap_missing_run_local_artifacts"));
    put(FileName::State, "{}");
    put(FileName::Events, "");
    assert_eq!(answer(false, false), (GateDecision::Resumable, "full_resume"));
    let gate = decide(&read_facts(&layout, false).unwrap(), false);
    assert!(gate.may_start());
    assert_eq!(gate.to_value(&layout)["paths"].as_object().unwrap().len(), 10);
    assert_eq!(read_facts(&layout, false).unwrap().launch, Presence::Good);
}
