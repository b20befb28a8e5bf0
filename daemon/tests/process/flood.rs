//! Output abuse (T9): memory stays bounded, kept bytes are exactly the cap, truncation is recorded.

use harnessd::process::{Cause, OutputMode};

use crate::support::{Bench, run, start};

/// What T9 allows a process to grow by.
const GROWTH_MAX_KIB: u64 = 16 * 1024;

/// The peak of resident memory, in KiB.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[tokio::test]
async fn ten_gigabytes_without_a_line_break() {
    let bench = Bench::new();
    let cap = 1_000_001;
    let mut spec = bench.sh("head -c 10000000000 /dev/zero; echo; echo the end");
    spec.stdout = bench.file("out", cap);
    let before = peak(std::process::id()).unwrap();
    let mut child = start(spec).await;
    let launcher = child.identity().pid;
    let mut highest = 0;
    let exit = loop {
        tokio::select! {
            // Cancel safe, as `wait` says.
            exit = child.wait() => break exit.unwrap(),
            // why: samples the memory while the flood runs
            () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {
                highest = peak(launcher).unwrap_or(0).max(highest);
            }
        }
    };
    assert_eq!(exit.cause, Cause::Exited);
    assert_eq!(exit.stdout.bytes_total, 10_000_000_009);
    assert_eq!(exit.stdout.bytes_kept, cap);
    assert!(exit.stdout.truncated);
    let kept = bench.read("out");
    let mark = format!("\n[... {} bytes dropped here ...]\n", 10_000_000_009_u64 - cap);
    assert_eq!(kept.len(), usize::try_from(cap).unwrap() + mark.len());
    assert!(kept.ends_with(b"\0\nthe end\n"));
    assert!(highest > 0 && highest < GROWTH_MAX_KIB, "launcher: {highest} KiB");
    let grown = peak(std::process::id()).unwrap() - before;
    assert!(grown < GROWTH_MAX_KIB, "daemon: {grown} KiB");
}

#[tokio::test]
async fn bytes_that_are_no_text_are_kept_as_they_are() {
    let bench = Bench::new();
    let exit = run(bench.sh(r"printf '\377\376\000\033[31m\r\n\300'; printf '\377' >&2")).await;
    assert_eq!(bench.read("out"), b"\xff\xfe\0\x1b[31m\r\n\xc0");
    assert_eq!(bench.read("err"), b"\xff");
    assert!(!exit.stdout.truncated);
}

#[tokio::test]
async fn single_bytes_arrive_in_order() {
    let bench = Bench::new();
    let script = "
import os
for n in range(60000): os.write(1, bytes([n % 251]))
for n in range(60000): os.write(2, bytes([n % 251]))
";
    let mut spec = bench.python(script);
    spec.stdout = bench.file("out", 100);
    let exit = run(spec).await;
    assert_eq!((exit.stdout.bytes_total, exit.stdout.bytes_kept), (60_000, 100));
    assert_eq!(exit.stderr.bytes_kept, 60_000);
    let wanted: Vec<u8> = (0..60_000_u32).map(|n| (n % 251) as u8).collect();
    assert!(bench.read("err") == wanted);
    let kept = bench.read("out");
    assert_eq!(kept[..50], wanted[..50]);
    assert_eq!(kept[kept.len() - 50..], wanted[59_950..]);
}

#[tokio::test]
async fn an_output_file_that_cannot_be_written_does_not_stop_the_program() {
    let bench = Bench::new();
    let mut spec = bench.sh("head -c 5000000 /dev/zero; echo done > done");
    spec.stdout = OutputMode::File { path: "/dev/full".into(), cap_bytes: 1 << 20 };
    let exit = run(spec).await;
    assert_eq!(bench.text("done"), "done\n");
    assert!(exit.stdout.truncated);
    assert_eq!((exit.stdout.bytes_total, exit.stdout.bytes_kept), (5_000_000, 0));
}

#[tokio::test]
async fn a_full_error_pipe_blocks_nobody() {
    let bench = Bench::new();
    let mut spec = bench.sh("head -c 1000000 /dev/zero >&2; echo done");
    spec.stderr = OutputMode::Discard;
    assert_eq!(run(spec).await.code, Some(0));
    assert_eq!(bench.text("out"), "done\n");
}
