//! The shapes on disk, byte for byte; a change here is a change for users' scripts.

use std::path::Path;

use harness_core::step::Lesson;
use harness_proto::doc::servers::ServerDoc;
use harness_proto::doc::{LaunchDoc, RuntimeDoc, StateDoc, render};
use harness_proto::report::{ImplementerReport, Report};
use serde_json::Value;

use super::super::{FileName, LineLog, ReportName, append_lessons, project};
use super::sample;

/// Compares with the stored file; `HARNESS_BLESS=1` writes one that is missing (files are added, never edited).
fn check(name: &str, found: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/wire/v1").join(name);
    if !path.exists() && std::env::var_os("HARNESS_BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let want = std::fs::read(&path).unwrap();
    assert_eq!(String::from_utf8_lossy(found), String::from_utf8_lossy(&want), "{name}");
}

#[test]
fn every_document_has_its_shape() {
    let mut state = sample::state();
    state.head.incident = Some(sample::incident());
    let mut context = sample::context(Path::new("/r"));
    context.servers = vec![ServerDoc {
        boot_id: "b".into(),
        marker: "run_abcdefgh/4".into(),
        pid: 32334,
        program: "codex app-server".into(),
        start_time: 99,
    }];
    let report = Report::Implementer(ImplementerReport {
        task_id: "T-002".into(),
        attempt: 1,
        commit: "d".repeat(40),
        summary: "Wrote it.".into(),
        files_changed: vec!["a.txt".into()],
        checks_run: vec![],
        proposed_tasks: vec![],
    });
    context.reports = vec![(ReportName::implementer(&sample::task_id("T-002"), 1), report)];
    check("harness-launch.json", render(&context.launch).as_bytes());
    let files = project(&state, &context);
    assert_eq!(files.len(), 6);
    for (name, bytes) in &files {
        let file = name.relative().to_string_lossy().replace('/', "-");
        check(&file, bytes.as_deref().unwrap());
    }
    assert_eq!(project(&state, &context), files, "same state, same bytes");
}

#[test]
fn histories_and_lessons_have_their_shape() {
    let dir = tempfile::tempdir().unwrap();
    let tsv = dir.path().join("e.tsv");
    LineLog::open_tsv(&tsv).unwrap().append(&[sample::event(1), sample::event(2)]).unwrap();
    check("harness-events.tsv", &std::fs::read(&tsv).unwrap());
    let jsonl = dir.path().join("e.log");
    LineLog::open_jsonl(&jsonl, &sample::run()).unwrap().append(&[sample::event(1)]).unwrap();
    check("events.log", &std::fs::read(&jsonl).unwrap());
    let lessons = dir.path().join("l.md");
    let lesson = |n| Lesson {
        title: format!("Accepted task T-00{n}"),
        category: "task".into(),
        strategy: "Wrote it.\nTwice.".into(),
        outcome: "accept".into(),
        insight: "Grüße".into(),
        role: "verifier".into(),
        iteration: n,
        at: sample::AT,
    };
    append_lessons(&lessons, &sample::head().brief, &[lesson(1), lesson(2)]).unwrap();
    check("harness-lessons.md", &std::fs::read(&lessons).unwrap());
}

#[test]
fn what_is_written_is_read_back() {
    let state = sample::state();
    let context = sample::context(Path::new("/r"));
    assert_eq!(LaunchDoc::read(&render(&context.launch)), Ok(context.launch.clone()));
    for (name, bytes) in project(&state, &context) {
        let Some(text) = bytes.map(|bytes| String::from_utf8(bytes).unwrap()) else { continue };
        match name {
            FileName::State => assert_eq!(render(&StateDoc::read(&text).unwrap()), text),
            FileName::Runtime => assert_eq!(render(&RuntimeDoc::read(&text).unwrap()), text),
            FileName::Tasks => {
                let value: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(value["tasks"][0]["owner_note"]["kept"], true, "unknown members are kept");
                assert_eq!(value["tasks"][0]["verification"][0], "test -f a.txt");
            }
            _ => {}
        }
    }
}
