//! The death of daemon and launcher, reaping by identity, strangers, and who is below a launcher.

use std::process::{Command, Stdio};
use std::time::Duration;

use harnessd::process::{
    Identity, Marker, ProcessError, alive, boot_id, has_launcher_ancestor, processes_of_run, reap_orphans,
};

use crate::support::{Bench, start, until};

/// Set for the copy of this test binary that plays the daemon; names its folder.
const DAEMON: &str = "HARNESS_TEST_DAEMON";

/// Started again by the tests below as a process of its own, so that it can be killed.
#[tokio::test]
async fn a_daemon_that_will_be_killed() {
    let Some(folder) = std::env::var_os(DAEMON) else {
        return;
    };
    let bench = Bench::inside(std::path::Path::new(&folder));
    let mut spec = bench.python(
        "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('ready', 'w').write('x')
        time.sleep(600)
    os._exit(0)
time.sleep(600)",
    );
    spec.cwd = folder.clone().into();
    let child = start(spec).await;
    let ready = std::path::Path::new(&folder).join("ready");
    until("both live", || ready.exists() && processes_of_run(&bench.run).len() >= 3).await;
    let identity = serde_json::to_vec(child.identity()).unwrap();
    let partial = std::path::Path::new(&folder).join("partial");
    std::fs::write(&partial, identity).unwrap();
    std::fs::rename(&partial, std::path::Path::new(&folder).join("identity")).unwrap();
    std::future::pending::<()>().await;
}

#[expect(clippy::disallowed_methods, reason = "the test plays init")]
fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

async fn daemon(bench: &Bench) -> (std::process::Child, Identity) {
    let daemon = command(std::env::current_exe().unwrap())
        .args(["--exact", "orphans::a_daemon_that_will_be_killed"])
        .env(DAEMON, bench.path(""))
        .spawn()
        .unwrap();
    let identity = bench.appears("identity").await;
    (daemon, serde_json::from_str(&identity).unwrap())
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

#[tokio::test]
async fn the_tree_dies_with_a_killed_daemon() {
    let bench = Bench::new();
    let (mut daemon, identity) = daemon(&bench).await;
    assert!(alive(&identity));
    assert!(processes_of_run(&identity.marker.run).len() >= 3);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    let begun = std::time::Instant::now();
    until("the tree is gone", || processes_of_run(&identity.marker.run).is_empty()).await;
    assert!(begun.elapsed() < Duration::from_secs(2));
    assert!(!alive(&identity));
}

#[tokio::test]
async fn what_survives_daemon_and_launcher_is_reaped_by_its_identity() {
    let bench = Bench::new();
    let (mut daemon, identity) = daemon(&bench).await;
    signal(identity.pid, rustix::process::Signal::KILL);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    until("the launcher is gone", || !alive(&identity)).await;
    assert!(processes_of_run(&identity.marker.run).len() >= 2);
    let report = reap_orphans(std::slice::from_ref(&identity));
    assert!(report.killed >= 2 && report.left.is_empty(), "{report:?}");
    assert_eq!(processes_of_run(&identity.marker.run), vec![]);
    let again = reap_orphans(&[identity]);
    assert_eq!((again.killed, again.gone), (0, 1));
}

#[tokio::test]
async fn a_killed_launcher_is_an_error_and_leaves_nothing() {
    let bench = Bench::new();
    let mut child = start(bench.sh("setsid sleep 600 & echo up > up; sleep 600")).await;
    bench.appears("up").await;
    signal(child.identity().pid, rustix::process::Signal::KILL);
    let error = child.wait().await.unwrap_err();
    assert!(matches!(error, ProcessError::LauncherDied { .. }), "{error}");
    bench.nothing_lives();
}

#[tokio::test]
async fn a_stopped_launcher_does_not_hold_up_the_end() {
    let bench = Bench::new();
    let mut child = start(bench.sh("echo up > up; sleep 600")).await;
    bench.appears("up").await;
    signal(child.identity().pid, rustix::process::Signal::STOP);
    let report = reap_orphans(std::slice::from_ref(child.identity()));
    assert!(report.left.is_empty());
    assert!(child.wait().await.is_err());
    bench.nothing_lives();
}

#[tokio::test]
async fn a_stranger_with_the_same_pid_is_never_killed() {
    let mut stranger = command("sleep").arg("600").spawn().unwrap();
    let mut identity = Identity {
        pid: stranger.id(),
        start_time: 1,
        boot_id: boot_id().to_owned(),
        marker: Marker::new("run_x", "T1", 1, "implementer"),
    };
    assert!(!alive(&identity));
    assert_eq!(reap_orphans(&[identity.clone()]).gone, 1);
    // The right start time, but of another boot.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", stranger.id())).unwrap();
    let after = stat.rsplit(')').next().unwrap();
    identity.start_time = after.split_ascii_whitespace().nth(19).unwrap().parse().unwrap();
    identity.boot_id = "another".into();
    assert!(!alive(&identity));
    assert_eq!(reap_orphans(&[identity.clone()]).killed, 0);
    assert!(stranger.try_wait().unwrap().is_none(), "the stranger was killed");
    // The proof that only the identity kept it alive.
    identity.boot_id = boot_id().to_owned();
    assert!(alive(&identity));
    assert_eq!(reap_orphans(&[identity.clone()]).killed, 1);
    assert!(!alive(&identity), "a zombie counts as dead");
    stranger.wait().unwrap();
}

#[tokio::test]
async fn who_is_below_a_launcher_is_known() {
    let bench = Bench::new();
    let script = "
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('pid', 'w').write(str(os.getpid()))
        os.execve('/bin/sleep', ['sleep', '600'], {})
    os._exit(0)
os.wait()
time.sleep(600)
";
    let mut child = start(bench.python(script)).await;
    let pid: u32 = bench.appears("pid").await.parse().unwrap();
    assert!(has_launcher_ancestor(pid));
    assert!(has_launcher_ancestor(child.identity().pid));
    child.kill().await.unwrap();
    assert!(has_launcher_ancestor(pid), "one that vanished counts as below");
    assert!(!has_launcher_ancestor(std::process::id()));
    let parent = std::os::unix::process::parent_id();
    assert!(!has_launcher_ancestor(parent));
}

/// The launcher dies between the end of the tree and its record, before or after the rename.
#[cfg(feature = "failpoints")]
#[tokio::test]
async fn a_launcher_that_dies_around_its_record_leaves_all_or_nothing() {
    for (point, recorded) in [("before", false), ("after", true)] {
        let bench = Bench::new();
        let mut spec = bench.sh("exit 4");
        let record = spec.record.clone();
        let name = format!("process.record.{point}_rename");
        spec.env.push(("HARNESS_FAILPOINT".into(), name.clone().into()));
        spec.env.push(("HARNESS_FAILPOINT_LOG".into(), bench.path("log").into()));
        let ended = start(spec).await.wait().await;
        assert!(bench.text("log").ends_with(&format!("{name}\n")), "{ended:?}");
        let stored = harnessd::process::ExitRecord::load(&record).unwrap();
        assert_eq!(stored.is_some(), recorded);
        match ended {
            Ok(exit) => assert_eq!((exit.code, recorded), (Some(4), true)),
            Err(ProcessError::LauncherDied { .. }) => assert!(!recorded),
            Err(error) => panic!("{error}"),
        }
        bench.nothing_lives();
    }
}
