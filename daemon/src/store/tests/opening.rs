//! Opening: modes, upgrades with a backup, newer and damaged files, two at once.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sqlx::migrate::Migrator;

use super::super::{DATABASE, StoreError};
use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// Our migrations and one more that the program of the test knows.
async fn later_schema(folder: &Path) -> Migrator {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../migrations");
    for entry in std::fs::read_dir(ours).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
    }
    std::fs::write(folder.join("9000_later.sql"), "CREATE TABLE later (id INTEGER PRIMARY KEY) STRICT;").unwrap();
    Migrator::new(folder).await.unwrap()
}

#[tokio::test]
async fn a_new_store_is_private() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("a/state");
    let store = Store::open(&dir).await.unwrap();
    claimed(&store, 1).await;
    assert_eq!(mode(&dir), 0o700);
    for name in [DATABASE, "harness.db-wal", "harness.db-shm"] {
        assert_eq!(mode(&dir.join(name)), 0o600, "{name}");
    }
    let copy = outer.path().join("copy.db");
    store.backup(&copy).await.unwrap();
    assert_eq!(mode(&copy), 0o600);
    assert!(matches!(store.backup(&copy).await, Err(StoreError::Path { .. })), "a backup overwrites nothing");
    // The copy is a whole store.
    let other = outer.path().join("b");
    std::fs::create_dir(&other).unwrap();
    std::fs::rename(&copy, other.join(DATABASE)).unwrap();
    let copied = Store::open(&other).await.unwrap();
    assert_eq!(copied.run(&run(1)).await.unwrap().unwrap().run, run(1));
}

#[tokio::test]
async fn the_pragmas_hold() {
    let (_dir, store) = fresh().await;
    let mut conn = super::super::writer::connect(store.path()).await.unwrap();
    for (sql, wanted) in [
        ("PRAGMA journal_mode", "wal"),
        ("PRAGMA synchronous", "2"),
        ("PRAGMA foreign_keys", "1"),
        ("PRAGMA busy_timeout", "5000"),
        ("PRAGMA query_only", "0"),
    ] {
        let row = sqlx::query(sql).fetch_one(&mut conn).await.unwrap();
        let found = sqlx::Row::try_get_unchecked::<String, _>(&row, 0).unwrap();
        assert_eq!(found, wanted, "{sql}");
    }
    let refused = sqlx::query("DELETE FROM runs").execute(store.readers()).await;
    assert!(refused.is_err(), "a reader wrote");
    let loose: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND strict = 0
         AND name NOT LIKE 'sqlite_%' AND name <> '_sqlx_migrations'",
    )
    .fetch_one(&mut conn)
    .await
    .unwrap();
    assert_eq!(loose, 0, "every table is STRICT");
}

#[tokio::test]
async fn an_older_database_is_copied_before_it_is_migrated_and_an_older_program_refuses_it() {
    let (dir, store) = fresh().await;
    claimed(&store, 1).await;
    store.close().await;
    let folder = tempfile::tempdir().unwrap();
    let later = later_schema(folder.path()).await;
    let store = Store::open_with(dir.path(), &later, Millis(77)).await.unwrap();
    let backup = dir.path().join("harness.db.backup-1-77");
    assert_eq!(mode(&backup), 0o600);
    store.close().await;

    let refused = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(refused, StoreError::NewerSchema { found: 9000, known: 1 }), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("9000") && said.contains('1'), "{said}");
    assert!(!refused.next().is_empty());

    // Opening again with the same program copies nothing.
    Store::open_with(dir.path(), &later, Millis(78)).await.unwrap().close().await;
    assert!(!dir.path().join("harness.db.backup-1-78").exists());
    // The copy is the store as it was, with the old schema.
    let old = tempfile::tempdir().unwrap();
    std::fs::copy(&backup, old.path().join(DATABASE)).unwrap();
    let store = Store::open(old.path()).await.unwrap();
    assert_eq!(store.load(&run(1)).await.unwrap().fence, Fence(1));
}

#[tokio::test]
async fn a_failing_migration_changes_nothing_and_names_the_backup() {
    let (dir, store) = fresh().await;
    store.close().await;
    let folder = tempfile::tempdir().unwrap();
    later_schema(folder.path()).await;
    std::fs::write(folder.path().join("9000_later.sql"), "CREATE TABLE x (a INTEGER) STRICT; SELECT nonsense;")
        .unwrap();
    let broken = Migrator::new(folder.path()).await.unwrap();
    let error = Store::open_with(dir.path(), &broken, Millis(5)).await.unwrap_err();
    assert!(matches!(error, StoreError::Migration { backup: Some(_), .. }), "{error:?}");
    assert!(error.next().contains("harness.db.backup-1-5"));
    Store::open(dir.path()).await.unwrap();
}

#[tokio::test]
async fn a_damaged_file_is_kept_and_the_restore_command_works() {
    let (dir, store) = fresh().await;
    claimed(&store, 1).await;
    store.backup(&dir.path().join("harness.db.backup-1-5")).await.unwrap();
    store.close().await;
    let path = dir.path().join(DATABASE);
    let mut bytes = std::fs::read(&path).unwrap();
    for byte in bytes.iter_mut().skip(100).step_by(7) {
        *byte ^= 0xa5;
    }
    std::fs::write(&path, &bytes).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the damaged file is kept as it is");
    let command = error.next().replace("harnessctl daemon stop", "true");
    assert!(super::faults::shell(&command), "{command}");
    let store = Store::open(dir.path()).await.unwrap();
    assert_eq!(store.run(&run(1)).await.unwrap().unwrap().run, run(1));
    assert_eq!(std::fs::read(path.with_extension("db.damaged")).unwrap(), bytes);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(DATABASE), "this is no database, it is a text\n".repeat(200)).unwrap();
    let error = Store::open(dir.path()).await.unwrap_err();
    assert_eq!(error.code(), "store_corrupt");
    assert!(error.to_string().contains(DATABASE), "{error}");
}

#[tokio::test]
async fn two_stores_on_one_file_share_the_queue() {
    let (dir, first) = fresh().await;
    let second = Store::open(dir.path()).await.unwrap();
    for n in 1..=20 {
        let store = if n % 2 == 0 { &first } else { &second };
        store.register(new_run(&run(n), &format!("r{n}"))).await.unwrap();
        store.enqueue(&run(n), Millis(0), T0).await.unwrap();
    }
    let mut claims = std::collections::BTreeSet::new();
    for _ in 0..10 {
        let (a, b) = tokio::join!(first.claim("a", T0), second.claim("b", T0));
        assert!(claims.insert(a.unwrap().unwrap().run));
        assert!(claims.insert(b.unwrap().unwrap().run));
    }
    assert_eq!(claims.len(), 20);
}

#[tokio::test]
async fn the_check_finds_what_is_broken() {
    let (_dir, store) = fresh().await;
    let lease = claimed(&store, 1).await;
    advance(&store, &lease.run, lease.fence, Lifecycle::Running).await;
    let mut conn = super::super::writer::connect(store.path()).await.unwrap();
    let healthy = store.check().await.unwrap();
    assert!(healthy.is_healthy() && healthy.rows >= 3, "{healthy:?}");
    for (sql, undo, says) in [
        ("UPDATE runs SET seq = 5", "UPDATE runs SET seq = 1", "without a gap"),
        ("UPDATE runs SET inputs = 5", "UPDATE runs SET inputs = 1", "inputs"),
        ("UPDATE inputs SET fence = 99", "UPDATE inputs SET fence = 1", "fence"),
        ("UPDATE runs SET lease_owner = ''", "UPDATE runs SET lease_owner = 'x'", "place in the queue"),
        ("UPDATE events SET body = '{}'", "UPDATE runs SET seq = 1", "cannot be read"),
    ] {
        sqlx::query(sql).execute(&mut conn).await.unwrap();
        let found = store.check().await.unwrap();
        assert!(found.problems.iter().any(|p| p.contains(says)), "{sql}: {found:?}");
        sqlx::query(undo).execute(&mut conn).await.unwrap();
    }
}
