//! Several daemons, none, an older one, a newer one.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixListener;
use std::thread;

use harness_tests::{TestEnv, living};

use crate::said::{Said, client, ctl, registered};

#[test]
fn stop_returns_when_the_next_daemon_can_start() {
    let env = TestEnv::new();
    ctl(&env, &["daemon", "status"]).refused(3, "DAEMON_DOWN");
    for _ in 0..3 {
        ctl(&env, &["daemon", "start"]).ended(0);
        ctl(&env, &["daemon", "start"]).ended(0);
        ctl(&env, &["daemon", "status"]).ended(0);
        ctl(&env, &["daemon", "stop"]).ended(0);
        assert_eq!(living(env.root().to_str().unwrap()), [], "the daemon is gone when stop says so");
    }
    ctl(&env, &["daemon", "stop"]).ended(0);
}

#[test]
fn clients_that_start_at_once_share_one_daemon() {
    let env = TestEnv::new();
    let starts: Vec<Said> = thread::scope(|scope| {
        let each = |_| scope.spawn(|| ctl(&env, &["daemon", "start", "--json"]));
        let all: Vec<_> = (0..6).map(each).collect();
        all.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let mut pids: Vec<i64> =
        starts.into_iter().map(|said| said.ended(0).json()["daemon"]["pid"].as_i64().unwrap()).collect();
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    ctl(&env, &["daemon", "stop"]).ended(0);
}

#[test]
fn two_starts_of_a_run_at_once_are_one() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (repo, run) = registered(&env);
    let starts: Vec<Said> = thread::scope(|scope| {
        let each = |_| scope.spawn(|| client(&env, &["start", "--json"]).current_dir(&repo).output().unwrap().into());
        let all: Vec<thread::ScopedJoinHandle<'_, Said>> = (0..4).map(each).collect();
        all.into_iter().map(|start| start.join().unwrap()).collect()
    });
    for said in starts {
        let answer = said.ended(0).json();
        assert_eq!(answer["run_id"], run.as_str(), "{answer}");
    }
    let claimed = env.store(&run).events().into_iter().filter(|e| e["decision"] == "claimed").count();
    assert!(claimed <= 1, "{claimed}");
    let again = ctl(&env, &["start", &run]).ended(0);
    assert!(again.out.contains("already") || again.out.contains("completed"), "{again:?}");
    ctl(&env, &["stop", &run, "--now"]).ended(0);
}

#[test]
fn a_second_daemon_names_the_first() {
    let env = TestEnv::new();
    let daemon = env.daemon();
    let second: Said = env.command(env.bin().join("harnessd")).output().unwrap().into();
    second.refused(10, "STATE_LOCKED");
    assert!(second.err.contains(&daemon.pid().to_string()), "{second:?}");
    let other = env.path("other");
    let elsewhere: Said =
        client(&env, &["daemon", "start", "--json"]).env("HARNESS_STATE_DIR", &other).output().unwrap().into();
    elsewhere.refused(10, "DAEMON_REFUSED");
    assert!(elsewhere.err.contains(env.state_dir().to_str().unwrap()), "{elsewhere:?}");
    ctl(&env, &["daemon", "status"]).ended(0);
}

/// Whatever its verb says, a client of another protocol must not change anything; reading is fine.
#[test]
fn a_client_of_another_protocol_may_look_and_not_touch() {
    let env = TestEnv::new();
    let _daemon = env.daemon();
    let (_, run) = registered(&env);
    for (method, path, status) in [("GET", "", "200"), ("POST", "/start", "426"), ("POST", "/cancel", "426")] {
        let mut stream = std::os::unix::net::UnixStream::connect(env.path("s")).unwrap();
        write!(
            stream,
            "{method} /v1/runs/{run}{path} HTTP/1.1\r\nhost: harnessd\r\nx-harness-protocol: 99 9.9.9\r\n\
             content-length: 0\r\nconnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {path}: {answer}");
        if status == "426" {
            assert!(answer.contains("9.9.9") && answer.contains(env!("CARGO_PKG_VERSION")), "both named: {answer}");
        }
    }
    assert_eq!(env.store(&run).status()["lifecycle"], "registered");
}

#[test]
fn a_daemon_of_another_version_is_named_with_the_way_out() {
    let env = TestEnv::new();
    let listener = UnixListener::bind(env.path("s")).unwrap();
    let old = thread::spawn(move || {
        let answers = [
            ("404 Not Found", r#"{"code":"ROUTE_UNKNOWN","detail":"harnessd 0.0.1 does not know this","status":404}"#),
            ("200 OK", "[what is this]"),
            ("404 Not Found", "<html>not ours</html>"),
        ];
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap();
            assert!(String::from_utf8_lossy(&head[..read]).contains("x-harness-protocol"));
            write!(
                stream,
                "HTTP/1.1 {status}\r\nx-harness-protocol: 0 0.0.1\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
        }
    });
    ctl(&env, &["status", "run_aaaaaaaa", "--json"]).refused(10, "ROUTE_UNKNOWN");
    for _ in 0..2 {
        let said = ctl(&env, &["list", "--json"]);
        said.refused(10, "PROTOCOL_MISMATCH");
        assert!(said.err.contains("0.0.1") && said.err.contains(env!("CARGO_PKG_VERSION")), "{said:?}");
    }
    old.join().unwrap();
}
