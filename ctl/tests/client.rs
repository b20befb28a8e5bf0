//! The real client against a fake daemon on a real Unix socket: what is asked, what is printed, which code it ends with.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "fake/daemon.rs"]
mod daemon;

use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use harness_proto::api::answer::{ControlAnswer, DaemonView, EventPage, RunList, StartAnswer, StopAnswer};
use harness_proto::api::view::{EventView, HoldView, RunView, TaskView};
use harness_proto::error::Problem;
use serde_json::Value;

use daemon::{World, ok, refuse};

const RUN: &str = "run_aaaaaaaa";

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", text(&output.stdout)))
}

fn view(state: &str) -> RunView {
    RunView {
        schema: "harness.status/1".into(),
        run_id: RUN.into(),
        state: state.into(),
        status: "running".into(),
        goal: "notes".into(),
        repo: "/r".into(),
        integration_head: "abc123".into(),
        updated_at: "2026-11-30T19:06:58+00:00".into(),
        tasks: vec![TaskView {
            id: "T-1".into(),
            state: "verifying".into(),
            title: "bad\u{1b}[2Jtitle".into(),
            ..TaskView::default()
        }],
        ..RunView::default()
    }
}

#[test]
fn without_a_daemon_it_is_3_and_three_lines() {
    let world = World::without_daemon();
    let output = world.run(&["list"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let error = text(&output.stderr);
    let lines: Vec<&str> = error.lines().collect();
    assert!(
        lines[0].starts_with("error[DAEMON_DOWN]: ") && lines[1].starts_with("why:") && lines[2].starts_with("next:"),
        "{error}"
    );
    let output = world.run(&["list", "--json"]);
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_str()), (Some(3), Some("DAEMON_DOWN")));
}

#[test]
fn without_a_daemon_status_shows_what_is_stored_and_says_so() {
    let world = World::without_daemon();
    let daemon = DaemonView { pid: 4711, alive: true, ..DaemonView::default() };
    let list = RunList { schema: "harness.list/1".into(), daemon, runs: vec![view("running")] };
    std::fs::write(world.state().join("status.json"), serde_json::to_string(&list).unwrap()).unwrap();
    let output = world.run(&["status", "aaaa"]);
    assert_eq!(output.status.code(), Some(3));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("not running") && shown.contains("4711") && shown.contains("stale") && shown.contains("T-1"),
        "{shown}"
    );
    let output = world.run(&["status", "--json", "--repo", "/r"]);
    let value = json(&output);
    assert_eq!(
        (output.status.code(), &value["stale"], &value["runtime_running"]),
        (Some(3), &Value::Bool(true), &Value::Bool(false))
    );
    assert_eq!(value["daemon"]["alive"], false);
    assert_eq!(world.run(&["status", "zzzz"]).status.code(), Some(3));
}

#[test]
fn a_running_record_without_a_process_is_the_runtimes_to_recover() {
    let world = World::without_daemon();
    let running = RunView { status: "running".into(), ..view("running") };
    let ended = RunView { run_id: "run_bbbbbbbb".into(), status: "terminal".into(), ..view("completed") };
    let list = RunList { schema: "harness.list/1".into(), runs: vec![running, ended], ..RunList::default() };
    std::fs::write(world.state().join("status.json"), serde_json::to_string(&list).unwrap()).unwrap();
    let value = json(&world.run(&["status", "--json", "aaaa"]));
    assert_eq!((&value["status"], &value["terminal_reason"]), (&"recovery".into(), &"runtime_process_missing".into()));
    let recovery = &value["recovery"];
    assert_eq!((&recovery["status"], &recovery["owner"]), (&"pending".into(), &"runtime".into()), "{value}");
    assert_eq!(recovery["reason"], "runtime_process_missing");
    assert_eq!(json(&world.run(&["status", "--json", "bbbb"]))["status"], "terminal");
}

#[test]
fn usage_errors_are_2_and_json_when_asked() {
    let world = World::without_daemon();
    let output = world.run(&["statsu"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("status"), "{}", text(&output.stderr));
    let output = world.run(&["--json", "stop", "--nonsense"]);
    assert_eq!((output.status.code(), json(&output)["error"]["code"].as_str()), (Some(2), Some("USAGE")));
    let output = world.command().arg(std::ffi::OsStr::from_bytes(b"\xff\xfe")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let bad = world.folder.path().join(std::ffi::OsStr::from_bytes(b"\xff"));
    std::fs::create_dir(&bad).unwrap();
    let output = world.command().arg("status").arg("--repo").arg(&bad).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("PATH_NOT_UTF8"));
    assert_eq!(world.run(&["--help"]).status.code(), Some(0));
    assert_eq!(world.run(&["version"]).status.code(), Some(0));
}

#[test]
fn no_arguments_are_the_next_steps() {
    let output = World::without_daemon().run(&[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("harnessctl doctor"));
}

#[test]
fn a_view_is_shown_without_control_characters_and_with_exit_codes() {
    let hold = HoldView {
        kind: "needs_human".into(),
        owner: "user".into(),
        next: "harnessctl retry T-1".into(),
        ..HoldView::default()
    };
    let held = RunView { hold: Some(hold), next: "harnessctl retry T-1".into(), ..view("needs-human") };
    let world = World::new(move |asked| if asked.line.contains("held") { ok(&held) } else { ok(&view("running")) });
    let output = world.run(&["status", RUN]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0));
    assert!(!shown.contains('\u{1b}') && shown.contains("verifying"), "{shown}");
    assert_eq!(world.run(&["status", RUN, "--exit-code"]).status.code(), Some(8));
    let output = world.run(&["status", "held", "--exit-code"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(text(&output.stdout).contains("next: harnessctl retry T-1"));
    assert_eq!(text(&world.run(&["-q", "status", RUN]).stdout), format!("{RUN}\n"));
    assert!(text(&world.run(&["--color", "always", "status", RUN]).stdout).contains('\u{1b}'));
    let asked = world.asked.lock().unwrap()[0].clone();
    assert!(asked.head.contains("x-harness-protocol: 1 "), "{}", asked.head);
}

#[test]
fn the_repository_is_named_absolutely_and_encoded() {
    let world = World::new(|_| ok(&view("running")));
    let folder = world.folder.path().join("a b&c");
    std::fs::create_dir(&folder).unwrap();
    world.run(&["status", "--repo", "a b&c"]);
    let line = world.lines().remove(0);
    assert!(line.starts_with("GET /v1/runs/@repo?repo=%2F") && line.ends_with("a%20b%26c"), "{line}");
}

#[test]
fn a_repository_without_a_run_is_idle_as_with_the_predecessor() {
    let world = World::new(|_| refuse(&Problem::new("RUN_UNKNOWN", "no run")));
    let output = world.run(&["status", "--repo", ".", "--json"]);
    assert_eq!((output.status.code(), json(&output)["status"].as_str()), (Some(0), Some("idle")));
    assert_eq!(world.run(&["status", "zzz"]).status.code(), Some(2));
}

#[test]
fn start_sends_an_absolute_codex_and_tells_what_helps() {
    let world = World::new(|_| {
        ok(&StartAnswer { run_id: RUN.into(), pid: 7, status: "running".into(), ..StartAnswer::default() })
    });
    let output = world.run(&["go", RUN, "--codex-bin", "sh", "--sleep-seconds", "5"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("pid 7") && text(&output.stdout).contains("harnessctl stop"));
    assert!(text(&output.stderr).contains("--sleep-seconds"));
    let asked = world.asked.lock().unwrap()[0].clone();
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    assert!(Path::new(body["codex_bin"].as_str().unwrap()).is_absolute());
    assert!(asked.line.ends_with("/start") && asked.head.contains("x-harness-request: "));
    let output = world.run(&["start", RUN, "--codex-bin", "no-such-codex"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("Codex executable is not available: no-such-codex"));
}

#[test]
fn a_refusal_keeps_its_code_and_an_older_daemon_is_named() {
    let world = World::new(|asked| {
        if asked.line.contains("pause") {
            let problem =
                Problem::new("RUN_ACTIVE", "another run is active").why("one at a time").next("harnessctl status");
            return refuse(&problem);
        }
        (200, "application/json", "7".into())
    });
    let output = world.run(&["pause", RUN, "--json"]);
    assert_eq!((output.status.code(), json(&output)["error"]["next"].as_str()), (Some(10), Some("harnessctl status")));
    let output = world.run(&["status", RUN]);
    assert_eq!(output.status.code(), Some(10));
    let error = text(&output.stderr);
    assert!(error.contains("9.9.9") && error.contains(env!("CARGO_PKG_VERSION")), "{error}");
}

#[test]
fn stop_is_0_only_when_nothing_lives() {
    let world = World::new(|asked| {
        let living = if asked.line.contains("bad") { vec![5] } else { Vec::new() };
        ok(&StopAnswer { run_id: RUN.into(), living, ..StopAnswer::default() })
    });
    let output = world.run(&["halt", RUN, "--now"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stdout).contains("nothing left running"));
    assert_eq!(world.asked.lock().unwrap()[0].body, r#"{"now":true}"#);
    assert_eq!(world.run(&["stop", "bad"]).status.code(), Some(1));
}

#[test]
fn cancelling_a_run_off_a_terminal_needs_yes() {
    let world = World::new(|_| ok(&ControlAnswer { note: "cancelled".into(), ..ControlAnswer::default() }));
    assert_eq!(world.run(&["cancel", RUN]).status.code(), Some(2));
    assert!(world.lines().is_empty());
    assert_eq!(world.run(&["cancel", RUN, "--yes"]).status.code(), Some(0));
    assert_eq!(world.run(&["cancel", "T-1", "--run", RUN]).status.code(), Some(0));
    assert_eq!(world.lines(), [format!("POST /v1/runs/{RUN}/cancel"), format!("POST /v1/runs/{RUN}/tasks/T-1/cancel")]);
}

fn event(seq: i64) -> EventView {
    EventView {
        seq,
        timestamp: "2026-11-30T19:06:58+00:00".into(),
        role: "runtime".into(),
        task_id: "-".into(),
        commit: "-".into(),
        status: "run".into(),
        decision: "queued".into(),
        description: "tab\there".into(),
        run_id: RUN.into(),
        ..EventView::default()
    }
}

#[test]
fn events_are_read_page_by_page_as_tsv_and_json_lines() {
    let world = World::new(|asked| {
        if !asked.line.contains("/events") {
            return ok(&view("running"));
        }
        let since: i64 = asked.line.split("since=").nth(1).unwrap().parse().unwrap();
        let events: Vec<EventView> = (since + 1..=3).take(2).map(event).collect();
        ok(&EventPage { events, ..EventPage::default() })
    });
    let output = world.run(&["events", RUN]);
    let shown = text(&output.stdout);
    assert_eq!(shown.lines().count(), 4, "{shown}");
    assert!(shown.lines().all(|l| l.split('\t').count() == 9) && shown.contains("tab\\there"), "{shown}");
    let output = world.run(&["events", RUN, "--format", "jsonl", "--since", "2"]);
    assert_eq!(json(&output)["seq"], 3);
}

#[test]
fn a_broken_stream_goes_on_after_the_last_event() {
    let world = World::new(|asked| {
        if !asked.line.contains("/stream") {
            return ok(&view("running"));
        }
        let message = |seq| format!("id: {RUN}:{seq}\ndata: {}\n\n", serde_json::to_string(&event(seq)).unwrap());
        let body = if asked.head.contains(&format!("last-event-id: {RUN}:2")) {
            format!("{}event: end\ndata: {{\"reason\":\"run_ended\"}}\n\n", message(3))
        } else {
            format!("{}{}", message(1), message(2))
        };
        (200, "text/event-stream", body)
    });
    let output = world.run(&["events", RUN, "-f", "--format", "jsonl"]);
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    let seqs: Vec<Value> = shown.lines().map(|l| serde_json::from_str::<Value>(l).unwrap()["seq"].clone()).collect();
    assert_eq!(seqs, [1, 2, 3]);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let world = World::new(|asked| {
        if !asked.line.contains("/events") {
            return ok(&view("running"));
        }
        let since: i64 = asked.line.split("since=").nth(1).unwrap().parse().unwrap();
        ok(&EventPage { events: (since + 1..=since + 500).map(event).collect(), ..EventPage::default() })
    });
    let mut child =
        world.command().args(["events", RUN]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert!(first.starts_with("seq\t"));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn wait_asks_once_with_0s_and_checks_the_head() {
    let world = World::new(|asked| ok(&view(if asked.line.contains("done") { "done" } else { "running" })));
    assert_eq!(world.run(&["wait", RUN, "--for", "done", "--timeout", "0s"]).status.code(), Some(8));
    assert_eq!(world.run(&["wait", "done", "--expect-head", "abc"]).status.code(), Some(0));
    assert_eq!(world.run(&["wait", "done", "--expect-head", "def"]).status.code(), Some(6));
    assert_eq!(world.run(&["wait", RUN, "--timeout", "soon"]).status.code(), Some(2));
}

#[test]
fn a_plan_that_is_too_large_is_never_sent() {
    let world = World::new(|_| ok(&Value::Null));
    std::fs::write(world.folder.path().join("tasks.json"), vec![b' '; 16 << 20]).unwrap();
    let output = world.run(&["tasks", "validate"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("PLAN_TOO_LARGE"));
    assert!(world.lines().is_empty());
}

#[test]
fn a_daemon_that_refuses_to_start_is_quoted() {
    let world = World::without_daemon();
    let bin = world.folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let ctl = bin.join("harnessctl");
    std::fs::copy(env!("CARGO_BIN_EXE_harnessctl"), &ctl).unwrap();
    let daemon = bin.join("harnessd");
    let script = "#!/bin/sh\necho 'error[STATE_LOCKED]: the state directory is locked' >&2\necho 'why:  pid 1 holds it' >&2\nexit 10\n";
    std::fs::write(&daemon, script).unwrap();
    std::fs::set_permissions(&daemon, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let mut command = Command::new(&ctl);
        command.env_clear().env("HARNESS_STATE_DIR", world.state()).env("HARNESS_SOCKET", world.socket());
        command.args(args).output().unwrap()
    };
    let output = run(&["daemon", "start"]);
    assert_eq!(output.status.code(), Some(10));
    let error = text(&output.stderr);
    assert!(
        error.contains("error[STATE_LOCKED]: the state directory is locked") && error.contains("pid 1 holds it"),
        "{error}"
    );
    assert_eq!(run(&["start", RUN, "--no-autostart"]).status.code(), Some(3));
    assert_eq!(run(&["start", RUN]).status.code(), Some(10));
}
