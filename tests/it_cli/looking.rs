//! Looking at runs: names, conditions, pipes, signals, terminals.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;

use harness_tests::TestEnv;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::said::{Said, client, ctl, launch_args, registered};

fn in_folder(env: &TestEnv, folder: &Path, args: &[&str]) -> Said {
    client(env, args).current_dir(folder).output().unwrap().into()
}

#[test]
fn a_run_is_found_by_id_prefix_last_folder_and_subfolder() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (repo, first) = registered(&env);
    let second = ctl(&env, &launch_args(&repo, &["--quiet"])).ended(0).out.trim().to_owned();
    let sub = repo.join("a/b");
    std::fs::create_dir_all(&sub).unwrap();
    for name in [first.as_str(), &first[..9], &first[4..], &first[4..9]] {
        assert_eq!(ctl(&env, &["status", name, "--json"]).ended(0).json()["run_id"], first.as_str(), "{name}");
    }
    for args in [&["wait", "--timeout", "0s", "--json"][..], &["status", "@last", "--json"]] {
        assert_eq!(in_folder(&env, &sub, args).json()["run_id"], second.as_str(), "{args:?}");
    }
    assert!(in_folder(&env, &sub, &["status"]).ended(0).out.contains(&second));
    let ambiguous = ctl(&env, &["status", "run_", "--json"]);
    ambiguous.refused(2, "RUN_AMBIGUOUS");
    assert!(ambiguous.err.contains(&first) && ambiguous.err.contains(&second), "{ambiguous:?}");
    ctl(&env, &["status", "run_00000000", "--json"]).refused(2, "RUN_UNKNOWN");
    let all = ctl(&env, &["list", "--all", "--json"]).ended(0).json();
    assert_eq!(all["runs"].as_array().unwrap().len(), 2);
    ctl(&env, &["list", "--state", "frob", "--json"]).refused(2, "USAGE");
}

#[test]
fn exit_codes_follow_the_table() {
    let env = TestEnv::new();
    let daemon = env.daemon();
    let (_, run) = registered(&env);
    let code = |args: &[&str]| ctl(&env, args).code;
    assert_eq!(code(&["status", &run]), 0);
    assert_eq!(code(&["status", &run, "--exit-code"]), 8);
    assert_eq!(code(&["wait", &run, "--timeout", "0s"]), 8);
    ctl(&env, &["wait", &run, "--timeout", "300ms", "--json"]).refused(124, "WAIT_TIMEOUT");
    ctl(&env, &["wait", &run, "--timeout", "soon", "--json"]).refused(2, "USAGE");
    assert_eq!(code(&["wait", &run, "--for", "idle", "--timeout", "0s"]), 0);
    assert_eq!(code(&["run", &run]), 0, "in the foreground until everything is accepted");
    for condition in ["done", "landed", "accepted", "idle", "progress"] {
        assert_eq!(code(&["wait", &run, "--for", condition, "--timeout", "0s"]), 0, "{condition}");
    }
    ctl(&env, &["wait", &run, "--expect-head", "0000", "--json"]).refused(6, "HEAD_MISMATCH");
    assert_eq!(code(&["status", &run, "--exit-code"]), 0);
    let shown = ctl(&env, &["show", "T-001", "--run", &run]).ended(0);
    assert!(shown.out.contains("PASS exit 0") && shown.out.contains("verdict accept"), "{shown:?}");
    let started = ctl(&env, &["start", &run]).ended(0);
    assert!(started.out.contains("completed"), "{started:?}");
    let stopped = ctl(&env, &["stop", &run]).ended(0);
    assert!(!stopped.out.contains("continue:"), "a completed run does not go on: {stopped:?}");
    for verb in [&["retry", "T-001", "--run"][..], &["skip", "T-001", "--run"], &["pause"], &["cancel", "--yes"]] {
        ctl(&env, &[verb, &[run.as_str(), "--json"]].concat()).refused(2, "STATE_REFUSED");
    }
    assert_eq!(daemon.terminate(), 0);
    ctl(&env, &["wait", &run, "--json"]).refused(3, "DAEMON_DOWN");
    assert_eq!(code(&["status", &run]), 3);
}

#[test]
fn a_closed_pipe_is_silent() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    for args in [&["events", &run][..], &["config", "show"], &["completions", "bash"], &["explain"]] {
        let mut child =
            client(&env, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("harnessctl starts");
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let status = child.wait().unwrap();
        assert_eq!(err, "", "{args:?}");
        assert!(status.code() == Some(141) || status.signal() == Some(13), "{args:?}: {status}");
    }
}

#[test]
fn ctrl_c_ends_the_client_only_and_says_so() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    for (signal, code) in [(Signal::SIGINT, 130), (Signal::SIGTERM, 143)] {
        for args in [&["events", &run, "-f"][..], &["status", &run, "-w"]] {
            let mut child = client(&env, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut out = BufReader::new(child.stdout.take().unwrap());
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert!(!line.is_empty());
            kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
            let rest = thread::spawn(move || out.read_to_end(&mut Vec::new()));
            let done: Said = child.wait_with_output().unwrap().into();
            rest.join().unwrap().unwrap();
            assert_eq!(done.code, code, "{args:?}: {done:?}");
            assert!(done.err.contains("continues"), "{args:?}: {done:?}");
        }
    }
    assert_eq!(env.store(&run).status()["lifecycle"], "registered");
}

/// In a terminal: colors unless told otherwise.
#[test]
fn a_terminal_gets_colors_unless_told_otherwise() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    ctl(&env, &["run", &run]).ended(0);
    let shown = |args: &str, set: &[(&str, &str)]| {
        let words = format!("stty cols 80 2>/dev/null; {} {args}", env.bin().join("harnessctl").display());
        let mut command = env.command("script");
        command
            .args(["-qec", &words, "/dev/null"])
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(set.iter().copied());
        let done: Said = command.output().expect("script of util-linux").into();
        done.out
    };
    if env.command("script").arg("--version").output().is_err() {
        eprintln!("SKIPPED: script of util-linux is not here");
        return;
    }
    assert!(shown(&format!("status {run}"), &[]).contains("\x1b["));
    for off in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        assert!(!shown(&format!("status {run}"), &[off]).contains("\x1b["), "{off:?}");
    }
    assert!(!shown(&format!("status {run} --color never"), &[]).contains("\x1b["));
    for args in ["list --all".to_owned(), format!("events {run}")] {
        assert!(!shown(&args, &[("NO_COLOR", "1")]).contains('\u{1b}'), "{args}");
    }
}
