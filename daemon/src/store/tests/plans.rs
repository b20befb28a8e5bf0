//! Every statement prepares; the plans of the hot ones are pinned (T22).

use sqlx::{Executor as _, SqlSafeStr as _, SqliteConnection};

use super::super::writer::connect;
use super::super::{check, commit, history, lease, load, open, processes, read, requests, rows, runs, writer};
use super::*;

fn statements() -> Vec<(&'static str, &'static str)> {
    [
        check::STATEMENTS,
        commit::STATEMENTS,
        history::STATEMENTS,
        lease::STATEMENTS,
        load::STATEMENTS,
        open::STATEMENTS,
        processes::STATEMENTS,
        read::STATEMENTS,
        requests::STATEMENTS,
        rows::STATEMENTS,
        runs::STATEMENTS,
        writer::STATEMENTS,
    ]
    .concat()
}

#[tokio::test]
async fn every_statement_prepares_on_a_fresh_database() {
    let (_dir, store) = fresh().await;
    let mut conn = connect(store.path()).await.unwrap();
    let all = statements();
    assert!(all.len() > 60, "the list is complete");
    for (name, sql) in all {
        let prepared = (&mut conn).prepare(sql.into_sql_str()).await;
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

#[test]
fn every_sql_text_is_in_a_list() {
    // A statement outside `statements!` would not be prepared by the test above.
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for call in ["query(\"", "query_as(\"", "query_scalar(\"", "execute(\""] {
            assert!(!text.contains(call), "{} runs an SQL text that is no const", path.display());
        }
    }
}

/// What must be in the plan of a hot statement, and what must not.
const PINNED: &[(&str, &[&str])] = &[
    ("CLAIM_ONE", &["runs USING COVERING INDEX runs_claim", "INTEGER PRIMARY KEY"]),
    ("NEXT_DUE", &["COVERING INDEX runs_due"]),
    ("TAKE_OVER", &["INDEX runs_leased"]),
    ("FRONT", &["INDEX runs_front (repo=?)"]),
    ("PICK_DUE", &["COVERING INDEX runs_waiting (repo=?)"]),
    ("PICK_LATER", &["COVERING INDEX runs_later (repo=?)"]),
    ("PLACE_OF", &["(id=?)"]),
    ("GUARD_STEP", &["(id=?)"]),
    ("GUARD_CONTROL", &["(id=?)"]),
    ("END_EFFECT", &["(run=? AND id=?)"]),
    ("END_TURN", &["(run=? AND turn=?)"]),
    ("LOAD_TASKS", &["(run=?)"]),
    ("LOAD_ATTEMPTS", &["INDEX attempts_open (run=?)"]),
    ("LOAD_EFFECTS", &["INDEX effects_pending (run=?)"]),
    ("EVENTS_SINCE", &["(run=? AND seq>?)"]),
    ("EVENTS_LAST", &["(run=?)"]),
    ("INPUTS_SINCE", &["(run=? AND ord>?)"]),
    ("TURNS_OF_TASK", &["INDEX turns_task (run=? AND task=?)"]),
    ("EVIDENCE_OF_TASK", &["INDEX evidence_task (run=? AND task=?)"]),
    ("RUN_BY_ID", &["(id=?)"]),
    ("RUN_BY_PREFIX", &["(id>? AND id<?)"]),
    ("RUN_ACTIVE", &["(repo=?)"]),
    ("LIST", &["(rowid<?)"]),
    ("LIST_REPO", &["(repo=? AND ord<?)"]),
    ("LIST_LIFECYCLE", &["(lifecycle=? AND ord<?)"]),
    ("GET_REQUEST", &["(key=?)"]),
];

async fn check_plans(conn: &mut SqliteConnection, when: &str) {
    let all = statements();
    for (name, wanted) in PINNED {
        let (_, sql) = all.iter().find(|(n, _)| n == name).unwrap();
        let explain = format!("EXPLAIN QUERY PLAN {sql}");
        let rows: Vec<(i64, i64, i64, String)> =
            sqlx::query_as(sqlx::AssertSqlSafe(explain)).fetch_all(&mut *conn).await.unwrap();
        let plan: Vec<&str> = rows.iter().map(|r| r.3.as_str()).collect();
        let text = plan.join("\n");
        for part in *wanted {
            assert!(text.contains(part), "{name}, {when}: `{part}` is not in\n{text}");
        }
        assert!(!text.contains("TEMP B-TREE"), "{name}, {when}:\n{text}");
        for line in plan.iter().filter(|l| l.starts_with("SCAN")) {
            let named = ["runs_claim", "runs_due", "runs_leased"].iter().any(|i| line.contains(i));
            assert!(named, "{name}, {when}: a scan without an index\n{text}");
        }
    }
}

#[tokio::test]
async fn plans_of_the_hot_statements_are_pinned() {
    let (_dir, store) = fresh().await;
    let mut conn = connect(store.path()).await.unwrap();
    check_plans(&mut conn, "empty").await;
    // 100,000 runs in 1,000 repositories; 1,000 of them are ready.
    for sql in [
        "PRAGMA foreign_keys = OFF",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
         INSERT INTO repos (id, key, path, created_at) SELECT i, 'r' || i, x'2f', 0 FROM n",
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
         INSERT INTO runs SELECT i, 'run_' || i, i % 1000 + 1, 'queued', '', iif(i <= 1000, 'ready', 'waiting'), i % 7, 0, i, 0, 0, '',
         0, 0, 0, 0, '{}', '{}', '{}', '{}' FROM n",
        "INSERT INTO events SELECT runs.id, s.value, 0, '{}' FROM runs, json_each('[1,2,3]') s WHERE ord <= 20000",
        "INSERT INTO effects SELECT id, 1, 'x', iif(ord % 9, 'done', 'pending'), 0, '{}' FROM runs WHERE ord <= 20000",
        "INSERT INTO attempts SELECT id, 'T-1', 1, iif(ord % 9, 'accepted', ''), 0, '{}' FROM runs WHERE ord <= 20000",
    ] {
        sqlx::query(sql).execute(&mut conn).await.unwrap();
    }
    check_plans(&mut conn, "100k runs").await;
    sqlx::query("ANALYZE").execute(&mut conn).await.unwrap();
    check_plans(&mut conn, "after ANALYZE").await;
}
