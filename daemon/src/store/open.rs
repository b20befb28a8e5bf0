//! Opening: folder and file modes, pragmas, the schema, the backup before a migration, the check for damage.

use std::fs::{DirBuilder, OpenOptions};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use harness_proto::ids::Millis;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, Connection as _, SqliteConnection};

use super::error::StoreError;
use super::writer::Writer;
use super::{DATABASE, Store};

/// The schema of this program.
pub(super) static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// How long a statement waits for another program that holds the file.
const BUSY: Duration = Duration::from_secs(5);
/// Connections for reads.
const READERS: u32 = 4;
/// Size to which the write-ahead log is cut after it was brought into the database.
const WAL_KEEP: &str = "67108864";

statements! {
    HAS_MIGRATIONS = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = '_sqlx_migrations'";
    QUICK_CHECK = "PRAGMA quick_check(1)";
    VACUUM_INTO = "VACUUM INTO ?1";
    APPLIED = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations";
}

impl Store {
    /// Opens the store of a state directory, creating folder (0700), file (0600) and schema when missing.
    ///
    /// An older database is copied to `harness.db.backup-<schema>-<millis>` before it is migrated.
    ///
    /// # Errors
    /// [`StoreError::NewerSchema`], [`StoreError::Corrupt`], [`StoreError::Path`], [`StoreError::Migration`], or what SQLite says.
    pub async fn open(state_dir: &Path) -> Result<Self, StoreError> {
        let now = Millis(jiff::Timestamp::now().as_millisecond());
        Self::open_with(state_dir, &MIGRATOR, now).await
    }

    /// As [`Store::open`] with another list of migrations and a given time, for tests of upgrades.
    pub(super) async fn open_with(state_dir: &Path, migrator: &Migrator, at: Millis) -> Result<Self, StoreError> {
        let path = prepare_files(state_dir)?;
        let located = |error: StoreError| match error {
            StoreError::Corrupt { detail, .. } => {
                StoreError::Corrupt { path: path.clone(), detail, backup: newest_backup(state_dir) }
            }
            other => other,
        };
        bring_up(&path, migrator, at).await.map_err(located)?;
        let readers = read_pool(&path).await.map_err(|e| located(e.into()))?;
        let writer = Writer::start(path.clone()).await.map_err(located)?;
        Ok(Self::assemble(path, readers, writer))
    }

    /// Copies the database, with every commit so far, to a new file (0600).
    ///
    /// # Errors
    /// [`StoreError::Path`] when `to` exists or cannot be made; what SQLite says. No half copy is left.
    pub async fn backup(&self, to: &Path) -> Result<(), StoreError> {
        copy(self.path(), to).await
    }
}

/// Options of every connection.
pub(super) fn options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY)
        .pragma("journal_size_limit", WAL_KEEP)
        .disable_statement_logging()
}

/// The read-only pool. The hook after release is sqlx rule 2 of deps.md: without it one failed statement can wedge a connection.
async fn read_pool(path: &Path) -> Result<SqlitePool, sqlx::Error> {
    SqlitePoolOptions::new()
        .min_connections(1)
        .max_connections(READERS)
        .acquire_timeout(Duration::from_secs(10))
        .after_release(|conn, _| {
            Box::pin(async move {
                conn.ping().await?;
                Ok(!conn.is_in_transaction())
            })
        })
        .connect_with(options(path).pragma("query_only", "ON"))
        .await
}

fn prepare_files(state_dir: &Path) -> Result<PathBuf, StoreError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Path { path, source }
    };
    if !state_dir.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(state_dir).map_err(fail(state_dir))?;
    }
    std::fs::set_permissions(state_dir, std::fs::Permissions::from_mode(0o700)).map_err(fail(state_dir))?;
    let path = state_dir.join(DATABASE);
    // SQLite gives its side files the mode of the database.
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(fail(&path))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(fail(&path))?;
    Ok(path)
}

async fn bring_up(path: &Path, migrator: &Migrator, at: Millis) -> Result<(), StoreError> {
    let mut conn = options(path).connect().await?;
    let verdict: String = sqlx::query_scalar(QUICK_CHECK).fetch_one(&mut conn).await?;
    if verdict != "ok" {
        return Err(StoreError::Corrupt { path: path.to_owned(), detail: verdict, backup: None });
    }
    let known = migrator.iter().map(|m| m.version).max().unwrap_or(0);
    let found = applied(&mut conn).await?;
    if found > known {
        return Err(StoreError::NewerSchema { found, known });
    }
    let mut backup = None;
    if 0 < found && found < known {
        let to = path.with_file_name(format!("{DATABASE}.backup-{found}-{}", at.0));
        copy(path, &to).await?;
        backup = Some(to);
    }
    if let Err(source) = migrator.run(&mut conn).await {
        return Err(migration_error(source, backup));
    }
    conn.close().await?;
    Ok(())
}

/// Newest schema that was applied, 0 for a new file.
async fn applied(conn: &mut SqliteConnection) -> Result<i64, StoreError> {
    let has: i64 = sqlx::query_scalar(HAS_MIGRATIONS).fetch_one(&mut *conn).await?;
    if has == 0 {
        return Ok(0);
    }
    Ok(sqlx::query_scalar(APPLIED).fetch_one(conn).await?)
}

fn migration_error(source: MigrateError, backup: Option<PathBuf>) -> StoreError {
    match source {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => match StoreError::from(error) {
            StoreError::Sql(error) => StoreError::Migration { source: MigrateError::Execute(error), backup },
            known => known,
        },
        source => StoreError::Migration { source, backup },
    }
}

/// `VACUUM INTO` an empty file that exists already with our mode, then fsync of file and folder.
async fn copy(from: &Path, to: &Path) -> Result<(), StoreError> {
    let fail = |source| StoreError::Path { path: to.to_owned(), source };
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(fail)?;
    let result = copy_into(from, to).await;
    if result.is_err() {
        std::fs::remove_file(to).map_err(fail)?;
        return result;
    }
    file.sync_all().map_err(fail)?;
    if let Some(folder) = to.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::File::open(folder).and_then(|f| f.sync_all()).map_err(fail)?;
    }
    Ok(())
}

async fn copy_into(from: &Path, to: &Path) -> Result<(), StoreError> {
    let name = std::str::from_utf8(to.as_os_str().as_bytes()).map_err(|_| StoreError::Path {
        path: to.to_owned(),
        source: std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is not UTF-8"),
    })?;
    let mut conn = options(from).connect().await?;
    sqlx::query(VACUUM_INTO).bind(name).execute(&mut conn).await?;
    conn.close().await?;
    Ok(())
}

/// Newest `harness.db.backup-*` by the time in its name.
pub(super) fn newest_backup(state_dir: &Path) -> Option<PathBuf> {
    let prefix = format!("{DATABASE}.backup-");
    let found = std::fs::read_dir(state_dir).ok()?.filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let at: i64 = name.strip_prefix(&prefix)?.rsplit('-').next()?.parse().ok()?;
        Some((at, state_dir.join(name)))
    });
    found.max().map(|(_, path)| path)
}
