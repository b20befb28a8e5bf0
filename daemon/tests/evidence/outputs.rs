//! What was printed: all of it on the disk, the end of it in the record, no secret in either.

use harness_core::evidence::CommandExit;
use harness_proto::plan::Check;
use harnessd::evidence::{OUTPUT_CAP_BYTES, TAIL_CHARS, allowed_environment};
use harnessd::redact::Redactor;
use sha2::{Digest as _, Sha256};

use crate::support::{Bench, argv, daemon};

#[tokio::test]
async fn a_hundred_megabytes_are_capped_and_their_end_is_kept() {
    let bench = Bench::new();
    let run = bench.sh("yes 0123456789abcde | head -c 100000000; echo; echo the end").await;
    assert_eq!(run.exit, CommandExit::Code(0));
    assert_eq!(run.output_bytes, 100_000_009);
    assert_eq!(run.stdout.chars().count(), TAIL_CHARS);
    assert!(run.stdout.ends_with("\nthe end\n"));
    let kept = bench.output(&run);
    assert!((kept.len() as u64) < OUTPUT_CAP_BYTES / 2 + 200 && kept.len() as u64 >= OUTPUT_CAP_BYTES / 2);
    let gap = b"bytes dropped here";
    assert!(kept.windows(gap.len()).any(|window| window == gap), "the gap is marked");
    let digest: String = Sha256::digest(&kept).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, run.output, "named by its content");
}

#[tokio::test]
async fn both_streams_are_kept_and_bytes_that_are_no_text_stay() {
    let bench = Bench::new();
    let run = bench.sh(r"printf 'a\377\000b\n'; printf 'err\n' >&2; exit 2").await;
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("a\u{fffd}\0b\n", "err\n"));
    assert_eq!(bench.output(&run), b"a\xff\0b\nerr\n");
    let again = bench.sh(r"printf 'a\377\000b\n'; printf 'err\n' >&2; exit 2").await;
    assert_eq!(
        (again.output, again.fingerprint),
        (run.output, run.fingerprint),
        "same tree and command: same evidence"
    );
}

#[tokio::test]
async fn secrets_are_neither_given_nor_kept() {
    let bench = Bench::new();
    let mut env = daemon();
    env.push(("DEPLOY_TOKEN".into(), "planted-secret-2".into()));
    let mut check = Check::shell(
        "env; echo planted-secret-1; echo $DEPLOY_TOKEN $DB_PASSWORD; echo planted-secret-2 >&2; \
         head -c 2000000 /dev/zero | tr '\\0' x; echo; echo $DEPLOY_TOKEN",
    );
    check.env.insert("DB_PASSWORD".into(), "planted-secret-3".into());
    let mut spec = bench.spec(vec![check]);
    spec.env = allowed_environment(env.clone(), &["DEPLOY_TOKEN".to_owned()]);
    spec.redactor = Redactor::of_environment(&env);
    let run = bench.collect(spec).await.unwrap().runs.remove(0);
    let kept = String::from_utf8(bench.output(&run)).unwrap();
    assert!(!kept.contains("OPENAI_API_KEY") && !kept.contains("GIT_DIR"), "not given");
    assert!(kept.contains("DEPLOY_TOKEN="), "given because it was named");
    for text in [&kept, &run.stdout, &run.stderr, &run.command] {
        assert!(!text.contains("planted-secret"), "{text:.2000}");
    }
    assert_eq!(run.stderr, "[redacted]\n");
}

#[tokio::test]
async fn the_environment_says_where_it_is() {
    let bench = Bench::new();
    let mut check = argv(&["env"]);
    check.env.insert("MINE".into(), "1".into());
    check.env.insert("HARNESS_ROLE".into(), "planner".into());
    let run = bench.one(check).await;
    let run_line = format!("HARNESS_RUN={}", bench.run);
    let tmp = format!("TMPDIR={}", bench.path("tmp").display());
    for line in [&run_line, "HARNESS_TASK=T-1", "HARNESS_ATTEMPT=1", "HARNESS_ROLE=evidence", "CI=1", "MINE=1", &tmp] {
        assert!(run.stdout.lines().any(|found| found == line), "{line} in {}", run.stdout);
    }
}

#[tokio::test]
async fn nothing_is_left_beside_the_outputs() {
    let bench = Bench::new();
    let runs = bench.runs(vec![Check::shell("echo a"), argv(&["no-such-program-x"])]).await;
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(bench.path(folder)).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let mut digests: Vec<_> = runs.iter().map(|run| run.output.clone()).collect();
    digests.sort();
    assert_eq!(names("outputs"), digests);
    assert!(names("scratch").iter().all(|name| name == "launcher"), "{:?}", names("scratch"));
}

#[tokio::test]
async fn a_full_disk_is_no_evidence() {
    let bench = Bench::new();
    // A file where the folder of the outputs must be: nothing can be kept.
    std::fs::write(bench.path("outputs"), "").unwrap();
    assert!(bench.collect(bench.spec(vec![Check::shell("true")])).await.is_err());
}
