//! Trees that do not want to die (T8): zero survivors within two seconds.

use std::time::{Duration, Instant};

use harnessd::process::{Cause, Child, processes_of_run};

use crate::support::{Bench, run, start};

/// T8's bound for a cancel.
const TWO_SECONDS: Duration = Duration::from_secs(2);

async fn killed_in_time(bench: &Bench, mut child: Child) {
    let crowd = crowd();
    let begun = Instant::now();
    let exit = child.kill().await.unwrap();
    let took = begun.elapsed();
    bench.nothing_lives();
    let bound = TWO_SECONDS.mul_f64(crowd);
    assert!(took < bound, "{took:?} of {bound:?}");
    assert_eq!(exit.cause, Cause::KilledByUs);
}

/// How many runnable processes share a processor, at least one: on a crowded machine two seconds of ours are fewer.
fn crowd() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load: f64 = text.split(' ').next().unwrap().parse().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    (load / f64::from(u32::try_from(processors).unwrap())).max(1.0)
}

/// Double fork with a new session, and an environment without the marker.
const DAEMONIZE: &str = "
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open('pid', 'w').write(str(os.getpid()))
        os.execve('/bin/sleep', ['sleep', '600'], {})
    os._exit(0)
os.wait()
";

fn lives(pid: &str) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat.rsplit(')').next().unwrap().trim_start().starts_with('Z')
}

#[tokio::test]
async fn a_daemonized_grandchild_dies_on_cancel() {
    let bench = Bench::new();
    let child = start(bench.python(&format!("{DAEMONIZE}\ntime.sleep(600)"))).await;
    let pid = bench.appears("pid").await;
    assert!(lives(&pid));
    killed_in_time(&bench, child).await;
    assert!(!lives(&pid));
}

#[tokio::test]
async fn a_daemonized_grandchild_dies_with_the_program() {
    let bench = Bench::new();
    let exit = run(bench.python(DAEMONIZE)).await;
    assert_eq!((exit.code, exit.survivors_killed), (Some(0), 1));
    assert!(!lives(&bench.text("pid")));
}

#[tokio::test]
async fn a_fork_storm_dies() {
    let bench = Bench::new();
    // A thousand processes, half of them in sessions of their own; twenty fork on and on.
    let storm = "
import os, time
def live(n):
    if n % 2: os.setsid()
    os.write(fd, b'.')
    while True:
        time.sleep(0.02)
        if n % 50 == 0 and os.fork() == 0:
            if n % 100: os.setsid()
            time.sleep(600)
fd = os.open('count', os.O_CREAT | os.O_APPEND | os.O_WRONLY)
for group in range(20):
    if os.fork() == 0:
        for n in range(50):
            if os.fork() == 0: live(n)
        time.sleep(600)
time.sleep(600)
";
    let child = start(bench.python(storm)).await;
    let path = bench.path("count");
    crate::support::until("a thousand live", || std::fs::metadata(&path).is_ok_and(|found| found.len() >= 1000)).await;
    let many = processes_of_run(&bench.run).len();
    assert!(many >= 1000, "only {many}");
    killed_in_time(&bench, child).await;
}

#[tokio::test]
async fn a_terminate_ignorer_dies_after_the_grace() {
    let bench = Bench::new();
    let script = "trap '' TERM HUP INT; echo up > up; while :; do sleep 0.05; done";
    let mut child = start(bench.sh(script)).await;
    bench.appears("up").await;
    let begun = Instant::now();
    let exit = child.terminate(Duration::from_millis(300)).await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(begun.elapsed() < TWO_SECONDS, "{:?}", begun.elapsed());
    assert_eq!((exit.signal, exit.cause), (Some(9), Cause::KilledByUs));
    bench.nothing_lives();
}

#[tokio::test]
async fn a_stopped_process_dies() {
    let bench = Bench::new();
    let child = start(bench.sh("(sleep 600; :) & echo $! > pid; kill -STOP $!; kill -STOP $$")).await;
    let pid = bench.appears("pid").await;
    crate::support::until("it is stopped", || {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| stat.contains(") T "))
    })
    .await;
    killed_in_time(&bench, child).await;
}

#[tokio::test]
async fn a_stopped_process_hears_the_polite_end_too() {
    let bench = Bench::new();
    let script = "trap 'echo bye; exit 0' TERM; echo up > up; kill -STOP $$; sleep 1";
    let mut child = start(bench.sh(script)).await;
    bench.appears("up").await;
    let exit = child.terminate(Duration::from_secs(5)).await.unwrap();
    assert_eq!(exit.cause, Cause::KilledByUs);
    assert_eq!(bench.text("out"), "bye\n");
}

#[tokio::test]
async fn a_process_whose_first_thread_ended_is_not_taken_for_dead() {
    let bench = Bench::new();
    // The state shows `Z`, the other thread runs on.
    let script = "
import ctypes, os, threading, time
if os.fork() == 0:
    def beat():
        open('pid', 'w').write(str(os.getpid()))
        while True: time.sleep(0.01)
    threading.Thread(target=beat).start()
    ctypes.CDLL(None).syscall(60, 0)
time.sleep(600)
";
    let child = start(bench.python(script)).await;
    let pid = bench.appears("pid").await;
    crate::support::until("its first thread ended", || !lives(&pid)).await;
    assert!(std::path::Path::new(&format!("/proc/{pid}/task")).exists());
    killed_in_time(&bench, child).await;
    let rows = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    assert_eq!(rows, 0, "its threads live on");
}

#[tokio::test]
async fn who_holds_the_output_open_delays_the_end_by_the_grace_at_most() {
    let bench = Bench::new();
    let begun = Instant::now();
    let exit = run(bench.sh("echo early; sleep 600 & exit 0")).await;
    let took = begun.elapsed();
    assert_eq!((exit.code, exit.cause), (Some(0), Cause::OutputHolderKilled));
    assert_eq!(exit.survivors_killed, 1);
    assert!(took >= Duration::from_millis(900) && took < TWO_SECONDS, "{took:?}");
    bench.nothing_lives();

    // What comes within the grace is kept, and the end comes as soon as the last writer is gone.
    let begun = Instant::now();
    let exit = run(bench.sh("(sleep 0.2; echo late) & exit 0")).await;
    assert_eq!((exit.cause, exit.survivors_killed), (Cause::Exited, 0));
    assert_eq!(bench.text("out"), "late\n");
    assert!(begun.elapsed() < Duration::from_millis(900));
}

#[tokio::test]
async fn a_dropped_child_dies() {
    let bench = Bench::new();
    let child = start(bench.python(&format!("{DAEMONIZE}\ntime.sleep(600)"))).await;
    bench.appears("pid").await;
    assert!(processes_of_run(&bench.run).len() >= 2);
    drop(child);
    crate::support::until("the tree is gone", || processes_of_run(&bench.run).is_empty()).await;
    assert!(!lives(&bench.text("pid")));
}
