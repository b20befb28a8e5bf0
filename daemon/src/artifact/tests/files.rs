//! Writing: only what changed, never over a human's edit, lines whole and once.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use harness_core::step::Lesson;
use harness_proto::doc::lessons::read_lessons;
use harness_proto::ids::Seq;

use super::super::{ArtifactWriter, FileName, LineError, LineLog, append_lessons, last_seq, project, write_atomic};
use super::sample;

#[test]
fn a_file_is_replaced_with_mode_0644_and_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let (path, victim) = (dir.path().join("f"), dir.path().join("victim"));
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, &path).unwrap();
    write_atomic(&path, b"ours").unwrap();
    assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"mine".to_vec(), b"ours".to_vec()));
    assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777, 0o644);
    assert!(write_atomic(&dir.path().join("absent/f"), b"").is_err());
    fs::create_dir(dir.path().join("folder")).unwrap();
    assert!(write_atomic(&dir.path().join("folder"), b"x").is_err(), "a folder is never replaced");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "a failed write leaves no temporary file");
}

#[test]
fn only_changed_files_are_written_and_lost_ones_come_back() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = sample::context(repo.path());
    let mut state = sample::state();
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    let first = writer.write(&project(&state, &context));
    assert_eq!((first.written, first.failures.len()), (4, 0), "{first:?}");
    assert_eq!(writer.write(&project(&state, &context)).written, 0);
    state.head.seq = Seq(8);
    assert_eq!(writer.write(&project(&state, &context)).written, 1, "only the snapshot holds the sequence");
    state.head.updated_at = state.head.updated_at.plus(5_000);
    assert_eq!(writer.write(&project(&state, &context)).written, 2, "a time alone is no change of the plan");
    let path = context.layout.path(&FileName::State);
    fs::remove_file(&path).unwrap();
    assert_eq!(writer.write(&project(&state, &context)).written, 1);
    assert_eq!(fs::read(&path).unwrap(), fs::read(run_dir.path().join("state.json")).unwrap());
    fs::write(context.layout.path(&FileName::Servers), "{}").unwrap();
    writer.write(&project(&state, &context));
    assert!(!context.layout.path(&FileName::Servers).exists(), "no living server, no file");
}

#[test]
fn a_users_prose_is_never_replaced_by_the_first_text() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut context = sample::context(repo.path());
    context.prose = None;
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    let path = context.layout.path(&FileName::Plan);
    writer.write(&project(&sample::state(), &context));
    assert_eq!(fs::read_to_string(&path).unwrap(), "# Plan\n\nGoal: Grüße schreiben\n");
    fs::write(&path, "mine").unwrap();
    writer.write(&project(&sample::state(), &context));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    context.prose = Some("a planner's".into());
    writer.write(&project(&sample::state(), &context));
    assert_eq!(fs::read(&path).unwrap(), b"a planner's");
}

#[test]
fn a_humans_plan_is_reported_and_not_overwritten() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = sample::context(repo.path());
    let mut state = sample::state();
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    writer.write_launch(b"{}\n").unwrap();
    writer.write(&project(&state, &context));
    assert_eq!(writer.edits().unwrap(), super::super::Edits::default());
    let path = context.layout.path(&FileName::Tasks);
    fs::write(&path, "edited").unwrap();
    fs::write(context.layout.path(&FileName::Launch), "{ }").unwrap();
    state.head.plan_revision = 2;
    // Also after a restart: the copy of what was written last is on disk.
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    let edits = writer.edits().unwrap();
    assert_eq!((edits.plan.as_deref(), edits.launch), (Some(&b"edited"[..]), true));
    let summary = writer.write(&project(&state, &context));
    assert_eq!(summary.edited_plan.as_deref(), Some(&b"edited"[..]));
    assert_eq!(fs::read(&path).unwrap(), b"edited");
    writer.accept_plan(b"edited").unwrap();
    assert_eq!(writer.write(&project(&state, &context)).edited_plan, None);
    assert!(fs::read_to_string(&path).unwrap().contains("\"planner_revision\": 2"));
    assert_eq!(writer.edits().unwrap().plan, None);
}

#[test]
fn a_failing_projection_is_told_and_made_up_for() {
    let (repo, run_dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let context = sample::context(repo.path());
    let path = context.layout.path(&FileName::State);
    let mut writer = ArtifactWriter::open(context.layout.clone(), run_dir.path()).unwrap();
    // A folder in the way fails for root as well, where a read-only mode would not.
    fs::create_dir(&path).unwrap();
    let files = project(&sample::state(), &context);
    let summary = writer.write(&files);
    assert_eq!((summary.written, summary.failures.len()), (3, 1), "the others are written");
    fs::remove_dir(&path).unwrap();
    let again = writer.write(&files);
    assert_eq!((again.written, again.failures.len()), (1, 0));
    assert!(path.is_file());
}

#[test]
fn a_torn_line_is_dropped_and_nothing_is_doubled_or_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("harness-events.tsv");
    let events: Vec<_> = (1..=4).map(sample::event).collect();
    let mut log = LineLog::open_tsv(&path).unwrap();
    assert_eq!(log.append(&events[..2]).unwrap(), 2);
    let whole = fs::read(&path).unwrap();
    for cut in 1..=whole.len() {
        fs::write(&path, &whole[..whole.len() - cut]).unwrap();
        let mut log = LineLog::open_tsv(&path).unwrap();
        let last = log.last_seq().0;
        assert!(last < 2, "cut {cut}: the last row is torn");
        assert_eq!(log.append(&events[..2]).unwrap(), usize::try_from(2 - last).unwrap());
        assert_eq!(fs::read(&path).unwrap(), whole, "cut {cut}");
    }
    assert!(matches!(LineLog::open_tsv(&path).unwrap().append(&events[3..]), Err(LineError::Gap { .. })));
    assert_eq!(LineLog::open_tsv(&path).unwrap().append(&events).unwrap(), 2);
    assert_eq!(last_seq(&path).unwrap(), Seq(4));
    let mut log = LineLog::open_tsv(&path).unwrap();
    log.rewrite(&events[..1]).unwrap();
    assert_eq!((log.last_seq(), log.append(&events).unwrap()), (Seq(1), 3));
}

#[test]
fn the_last_number_of_a_predecessors_history_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("e.tsv");
    assert_eq!(last_seq(&path).unwrap(), Seq(0));
    let rows = "seq\ttimestamp\trole\ttask_id\tattempt\tcommit\tstatus\tdecision\tdescription\r\n\
                12\t2026-11-30T19:06:58+00:00\tplanner\t-\t0\t-\tplan\tdispatch\t\"first\r\n99\tno row\"\r\n\
                3\t2026-11-30T19:06:58+00:00\tplanner\t-\t0\t-\tplan\tdispatch\tx\r\n";
    fs::write(&path, rows).unwrap();
    assert_eq!(last_seq(&path).unwrap(), Seq(12));
}

fn lesson(n: i64) -> Lesson {
    Lesson {
        title: format!("Accepted task T-{n}"),
        category: "task".into(),
        strategy: "s".into(),
        outcome: "accept".into(),
        insight: "first line\nsecond line".into(),
        role: "verifier".into(),
        iteration: n,
        at: sample::AT,
    }
}

#[test]
fn lessons_are_appended_once_beside_whatever_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.md");
    let foreign = b"# My notes\n### L-7: torn by hand\nfree \xff text without an end";
    fs::write(&path, foreign).unwrap();
    let brief = sample::head().brief;
    assert_eq!(append_lessons(&path, &brief, &[lesson(1), lesson(2)]).unwrap(), 2);
    assert_eq!(
        append_lessons(&path, &brief, &[lesson(1), lesson(2), lesson(3)]).unwrap(),
        1,
        "a repeat adds only the new one"
    );
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.starts_with(foreign), "the user's bytes stay");
    let text = String::from_utf8_lossy(&bytes);
    assert!(
        text.contains("\n\n### L-2: Accepted task T-1\n") && text.contains("\n\n### L-4: Accepted task T-3\n"),
        "{text}"
    );
    assert_eq!(read_lessons(&text).len(), 4);
}

#[test]
fn a_lesson_torn_by_a_crash_is_made_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("l.md");
    let brief = sample::head().brief;
    append_lessons(&path, &brief, &[lesson(1), lesson(2)]).unwrap();
    let whole = fs::read(&path).unwrap();
    let second = whole.windows(6).rposition(|w| w == b"### L-").unwrap();
    for cut in second + 8..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        append_lessons(&path, &brief, &[lesson(2)]).unwrap();
        assert_eq!(
            String::from_utf8(fs::read(&path).unwrap()).unwrap(),
            String::from_utf8(whole.clone()).unwrap(),
            "{cut}"
        );
    }
}
