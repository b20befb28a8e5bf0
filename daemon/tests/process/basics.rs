//! Start, input, output, exit, and every way in which a start fails.

use std::time::Duration;

use harnessd::process::{Cause, ExitRecord, Limits, OutputMode, SpawnError, StdinMode, alive};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Bench, refused, run, start};

#[tokio::test]
async fn output_and_exit_are_recorded() {
    let bench = Bench::new();
    let spec = bench.sh("echo to out; echo to err >&2; exit 7");
    let record = spec.record.clone();
    let exit = run(spec).await;
    assert_eq!(
        (exit.code, exit.signal, exit.cause),
        (Some(7), None, Cause::Exited)
    );
    assert_eq!(bench.text("out"), "to out\n");
    assert_eq!(bench.text("err"), "to err\n");
    let stored = ExitRecord::load(&record).unwrap().unwrap();
    assert_eq!(stored.code, Some(7));
    assert_eq!(stored.stdout.bytes_total, 7);
    assert_eq!(stored.stderr.bytes_total, 7);
    assert!(!stored.stdout.truncated);
    let left = std::fs::read_dir(bench.path("scratch")).unwrap().count();
    assert_eq!(left, 0, "the launcher's own files");
    bench.nothing_lives();
}

#[tokio::test]
async fn a_signal_is_told_from_an_exit() {
    let bench = Bench::new();
    let exit = run(bench.sh("kill -SEGV $$")).await;
    assert_eq!(
        (exit.code, exit.signal, exit.cause),
        (None, Some(11), Cause::Signalled)
    );
}

#[tokio::test]
async fn the_environment_is_exactly_the_given_one() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["env"]);
    spec.env.push(("GIVEN".into(), "1".into()));
    let nonce = spec.marker.nonce.clone();
    run(spec).await;
    let mut names: Vec<String> = bench
        .text("out")
        .lines()
        .map(|line| line.split('=').next().unwrap().to_owned())
        .collect();
    names.sort();
    let wanted = "GIVEN HARNESS_ATTEMPT HARNESS_NONCE HARNESS_ROLE HARNESS_RUN HARNESS_TASK PATH";
    assert_eq!(names.join(" "), wanted);
    assert!(
        bench
            .text("out")
            .contains(&format!("HARNESS_NONCE={nonce}\n"))
    );
}

#[tokio::test]
async fn pipes_carry_input_and_output() {
    let bench = Bench::new();
    let mut spec = bench.spec(&["cat"]);
    spec.stdin = StdinMode::Pipe;
    spec.stdout = OutputMode::Pipe;
    let mut child = start(spec).await;
    let mut stdin = child.take_stdin().unwrap();
    let mut stdout = child.take_stdout().unwrap();
    stdin.write_all(b"there and back").await.unwrap();
    drop(stdin);
    let mut text = String::new();
    stdout.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "there and back");
    assert_eq!(child.wait().await.unwrap().code, Some(0));
}

#[tokio::test]
async fn input_that_is_given_whole_arrives_whole() {
    let bench = Bench::new();
    let mut spec = bench.sh("wc -c; exit 0");
    spec.stdin = StdinMode::Bytes(vec![b'x'; 3_000_000]);
    run(spec).await;
    assert_eq!(bench.text("out").trim(), "3000000");
}

#[tokio::test]
async fn input_that_is_never_read_blocks_nothing() {
    let bench = Bench::new();
    let mut spec = bench.sh("exit 3");
    spec.stdin = StdinMode::Bytes(vec![b'x'; 3_000_000]);
    assert_eq!(run(spec).await.code, Some(3));
}

#[tokio::test]
async fn each_failed_start_says_what_failed() {
    let bench = Bench::new();
    let missing = refused(bench.spec(&["no-such-program"])).await;
    assert!(
        matches!(missing, SpawnError::MissingProgram { .. }),
        "{missing}"
    );
    let missing = refused(bench.spec(&["/no/such/program"])).await;
    assert!(
        matches!(missing, SpawnError::MissingProgram { .. }),
        "{missing}"
    );

    std::fs::write(bench.path("plain"), "no program").unwrap();
    let plain = bench.path("plain");
    let denied = refused(bench.spec(&[plain.to_str().unwrap()])).await;
    assert!(
        matches!(denied, SpawnError::NotExecutable { .. }),
        "{denied}"
    );
    let script = bench.path("script");
    std::fs::write(&script, "#!/no/such/interpreter\n").unwrap();
    make_executable(&script);
    let lost = refused(bench.spec(&[script.to_str().unwrap()])).await;
    let text = lost.to_string();
    assert!(text.contains("interpreter"), "{text}");
    let mut spec = bench.sh("true");
    spec.cwd = bench.path("nowhere");
    let cwd = refused(spec).await;
    assert!(matches!(cwd, SpawnError::BadCwd { .. }), "{cwd}");
    let mut spec = bench.sh("true");
    spec.stdout = bench.file("no/such/folder", 10);
    let output = refused(spec).await;
    assert!(matches!(output, SpawnError::BadOutput { .. }), "{output}");
    let empty = refused(bench.spec(&[])).await;
    assert!(matches!(empty, SpawnError::EmptyCommand), "{empty}");
    bench.nothing_lives();
}

fn make_executable(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn the_backstop_ends_a_tree_that_runs_too_long() {
    let bench = Bench::new();
    let mut spec = bench.sh("sleep 600");
    spec.limits.max_wall = Some(Duration::from_millis(300));
    let exit = run(spec).await;
    assert_eq!((exit.signal, exit.cause), (Some(9), Cause::MaxWall));
    assert!(
        exit.duration < Duration::from_secs(3),
        "{:?}",
        exit.duration
    );
    bench.nothing_lives();
}

#[tokio::test]
async fn limits_bind() {
    let bench = Bench::new();
    let mut spec = bench
        .sh("ulimit -c; ulimit -n; head -c 3000000 /dev/zero > big; ls -l big | cut -d' ' -f5");
    spec.limits = Limits {
        max_file_bytes: Some(1 << 20),
        max_open_files: Some(99),
        ..Limits::default()
    };
    run(spec).await;
    assert_eq!(std::fs::metadata(bench.path("big")).unwrap().len(), 1 << 20);
    assert!(
        bench.text("out").starts_with("0\n99\n"),
        "{}",
        bench.text("out")
    );

    let mut spec = bench.sh("for i in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait");
    spec.limits.max_processes = Some(5);
    let exit = run(spec).await;
    assert_eq!(exit.cause, Cause::TooManyProcesses);
    bench.nothing_lives();
}

#[tokio::test]
async fn termination_is_asked_for_before_it_is_forced() {
    let bench = Bench::new();
    let script = "trap 'echo bye; exit 0' TERM; echo up > up; while :; do sleep 0.05; done";
    let mut child = start(bench.sh(script)).await;
    bench.appears("up").await;
    assert!(alive(child.identity()));
    let exit = child.terminate(Duration::from_secs(5)).await.unwrap();
    assert_eq!((exit.code, exit.cause), (Some(0), Cause::KilledByUs));
    assert_eq!(bench.text("out"), "bye\n");
    assert!(exit.duration < Duration::from_secs(4));
    assert!(!alive(child.identity()));
    assert_eq!(child.wait().await.unwrap(), exit);
}
