//! Daemons that end, come again, meet a second one, or are of another version (DESIGN 4, 5, 11, 12).

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Stdio;

use harness_tests::living;

use crate::bench::World;

/// S4-009: `daemon stop` leaves the lifecycle as it is; the next daemon goes on by itself.
#[test]
fn daemon_stop_ends_everything_and_the_next_daemon_goes_on_by_itself() {
    let world = World::new();
    let daemon = world.env.daemon();
    world.set(&[("DELAY_IMPLEMENTER", "60")]);
    let run = world.start(&[]);
    world.begun("implementer", 1);
    let done = world.ctl(&["daemon", "stop", "--json"]).success().json();
    assert_eq!(done["continues"][0], run.as_str(), "{done:#}");
    assert_eq!(daemon.terminate(), 0);
    assert_eq!(living(&format!("HARNESS_RUN={run}")), []);
    let down = world.ctl(&["status", &run, "--json"]);
    assert_eq!((down.code, &down.json()["lifecycle"]), (3, &"running".into()), "{down:?}");
    world.set(&[("DELAY_IMPLEMENTER", "0")]);
    let _daemon = world.env.daemon();
    let status = world.completed(&run);
    assert_eq!(status["counts"]["reverts"], 0);
}

/// weaknesses 24: killed with turns in flight again and again; nothing is integrated twice, no attempt is lost.
#[test]
fn a_daemon_killed_in_every_role_goes_on() {
    let world = World::new();
    let mut daemon = world.env.daemon();
    world.faults("delay=60@planner:x1;delay=60@implementer:x1;delay=60@verifier:x1");
    let run = world.start(&[]);
    for role in ["planner", "implementer", "verifier"] {
        world.begun(role, 1);
        daemon.kill();
        harness_tests::wait_for("its children are gone", || {
            living(&format!("HARNESS_RUN={run}")).is_empty().then_some(())
        });
        daemon = world.env.daemon();
    }
    let status = world.completed(&run);
    assert_eq!(status["counts"]["reverts"], 0);
    assert_eq!(world.events(&run, "turn", "lost").len(), 3, "{}", world.history(&run));
    drop(daemon);
}

/// A stopped run is not restarted by a new daemon.
#[test]
fn a_stopped_run_stays_stopped_over_a_restart() {
    let world = World::new();
    let daemon = world.env.daemon();
    world.set(&[("DELAY_IMPLEMENTER", "60")]);
    let run = world.start(&[]);
    world.begun("implementer", 1);
    world.ctl(&["stop", &run, "--now"]).success();
    assert_eq!(daemon.terminate(), 0);
    let before = world.turns("").len();
    let _daemon = world.env.daemon();
    assert_eq!(world.wait(&run, "done").0, 5);
    assert_eq!((world.status(&run)["lifecycle"].clone(), world.turns("").len()), ("stopped".into(), before));
}

/// weaknesses 28, T12: one daemon per state directory; the second names the first.
#[test]
fn a_second_daemon_on_one_state_directory_ends_with_10_and_names_the_first() {
    let world = World::new();
    let daemon = world.env.daemon();
    let mut command = world.env.command(world.env.bin().join("harnessd"));
    let second = command.env("HARNESS_SOCKET", world.env.path("s2")).stdout(Stdio::null()).output().unwrap();
    assert_eq!(second.status.code(), Some(10), "{second:?}");
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains(&daemon.pid().to_string()) && said.contains("next:"), "{said}");
    assert_eq!(world.ctl(&["daemon", "status"]).code, 0, "the first goes on");
}

/// A stale socket of a killed daemon is no obstacle.
#[test]
fn a_killed_daemons_socket_is_taken_over() {
    let world = World::new();
    world.env.daemon().kill();
    assert!(world.env.path("s").exists());
    let daemon = world.env.daemon();
    assert_eq!(daemon.terminate(), 0);
}

/// create-launch and start bring the daemon up when none runs, and say so (corrections 7).
#[test]
fn the_first_verb_starts_the_daemon_and_says_so() {
    let world = World::new();
    let refused = world.create(&["--no-autostart"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    let done = world.create(&[]).success();
    assert!(done.stderr.contains("harnessd started"), "{done:?}");
    world.ctl(&["start", "@last"]).success();
    world.completed("@last");
    world.ctl(&["daemon", "stop"]).success();
}

fn ask(world: &World, request: &str) -> String {
    let mut socket = UnixStream::connect(world.env.path("s")).unwrap();
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

/// A client of another protocol is told so with 426, and what to do; nothing is done.
#[test]
fn a_client_of_another_protocol_is_refused_with_the_next_step() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let run = world.register(&[]);
    for version in ["0 0.0.1", "2 9.9.9"] {
        let answer = ask(
            &world,
            &format!(
                "POST /v1/runs/{run}/cancel HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: 2\r\nx-harness-protocol: {version}\r\nconnection: close\r\n\r\n{{}}"
            ),
        );
        assert!(answer.starts_with("HTTP/1.1 426"), "{answer}");
        assert!(answer.contains("PROTOCOL_MISMATCH") && answer.contains("\"next\""), "{answer}");
    }
    assert_eq!(world.status(&run)["lifecycle"], "registered", "nothing was done");
    let answer = ask(
        &world,
        "GET /v1/nothing-like-this HTTP/1.1\r\nhost: h\r\nx-harness-protocol: 1 0.1.0\r\nconnection: close\r\n\r\n",
    );
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("ROUTE_UNKNOWN"), "{answer}");
}

/// weaknesses 32: a process of another program that has the recorded pid is never touched.
#[test]
fn a_stranger_with_a_recorded_pid_is_never_killed() {
    let world = World::new();
    let _daemon = world.env.daemon();
    let (run, _) = world.complete(&[]);
    let mut stranger = world.env.command("sleep").arg("600").spawn().unwrap();
    let servers = world.repo.join("harness-servers.json");
    std::fs::write(&servers, format!("{{\"pids\": [{}]}}\n", stranger.id())).unwrap();
    world.ctl(&["stop", &run]);
    world.settle();
    world.complete(&[]);
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger lives");
    stranger.kill().unwrap();
    stranger.wait().unwrap();
}
