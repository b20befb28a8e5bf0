//! What can go wrong with the store: a symbolic code, a sentence, and the command that helps.

use std::path::PathBuf;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database was written by a newer daemon.
    #[error("the database has schema {found}, this daemon knows schemas up to {known}")]
    NewerSchema {
        /// Schema of the file.
        found: i64,
        /// Newest schema of this program.
        known: i64,
    },
    /// The file is no healthy database; it is kept as it is.
    #[error("the database {} is damaged: {detail}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        detail: String,
        /// Newest backup beside it.
        backup: Option<PathBuf>,
    },
    /// No space is left; nothing of the refused write is stored.
    #[error("no space is left for the database")]
    Full(#[source] sqlx::Error),
    /// The file or its folder cannot be written.
    #[error("the database cannot be written")]
    ReadOnly(#[source] sqlx::Error),
    /// Another program holds the database for longer than the busy timeout.
    #[error("the database is in use by another program")]
    Busy(#[source] sqlx::Error),
    /// Reading or writing the file failed. The outcome of a write that fails so is unknown: load again.
    #[error("reading or writing the database failed")]
    Io(#[source] sqlx::Error),
    /// The state directory or a file in it cannot be prepared.
    #[error("{} cannot be used", path.display())]
    Path {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The schema could not be brought up to date; the backup made before is named.
    #[error("the database could not be brought to the current schema")]
    Migration {
        /// Why.
        #[source]
        source: MigrateError,
        /// The copy from before.
        backup: Option<PathBuf>,
    },
    /// A stored row is not what this program writes.
    #[error("a row of table {table} cannot be read: {key}")]
    Row {
        /// Table.
        table: &'static str,
        /// Which row.
        key: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A value has no JSON form.
    #[error("a value for table {table} has no stored form")]
    Encode {
        /// Table.
        table: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// No run is named so.
    #[error("no run is named `{0}`")]
    UnknownRun(String),
    /// An idempotency key was used for something else before.
    #[error("the request id `{key}` was used before for another request")]
    RequestConflict {
        /// The key.
        key: String,
    },
    /// The writer ended before it told how the write went: the outcome is unknown, load again.
    #[error("the write `{0}` ended without an answer")]
    Lost(&'static str),
    /// The store is closed.
    #[error("the store is closed")]
    Closed,
    /// SQLite refuses a statement: a bug.
    #[error("the database refused a statement")]
    Sql(#[source] sqlx::Error),
}

impl StoreError {
    /// Symbolic code, as `harnessctl explain` knows it.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::NewerSchema { .. } => "store_newer_schema",
            Self::Corrupt { .. } => "store_corrupt",
            Self::Full(_) => "store_full",
            Self::ReadOnly(_) => "store_read_only",
            Self::Busy(_) => "store_busy",
            Self::Io(_) => "store_io",
            Self::Path { .. } => "store_path",
            Self::Migration { .. } => "store_migration",
            Self::Row { .. } => "store_row",
            Self::Encode { .. } => "store_encode",
            Self::UnknownRun(_) => "unknown_run",
            Self::RequestConflict { .. } => "request_conflict",
            Self::Lost(_) => "store_outcome_unknown",
            Self::Closed => "store_closed",
            Self::Sql(_) => "store_sql",
        }
    }

    /// What the user can do or run next.
    #[must_use]
    pub fn next(&self) -> String {
        match self {
            Self::NewerSchema { .. } => "install the newer harness; downgrading a database is not possible".into(),
            Self::Corrupt { path, .. } if path.is_relative() => "harnessctl doctor".into(),
            Self::Corrupt { path, backup, .. } => restore_command(path, backup.as_deref()),
            Self::Full(_) => {
                "free space on the disk of the state directory; nothing was lost, the run goes on by itself".into()
            }
            Self::ReadOnly(_) | Self::Path { .. } => {
                "make the state directory writable for this user, or set HARNESS_STATE_DIR".into()
            }
            Self::Busy(_) => "close the program that holds harness.db open, then repeat".into(),
            Self::Migration { backup: Some(backup), .. } => {
                format!("report this; the database from before is {}", quoted(backup))
            }
            Self::UnknownRun(_) => "harnessctl list".into(),
            Self::RequestConflict { .. } => "use a new request id".into(),
            Self::Io(_)
            | Self::Migration { backup: None, .. }
            | Self::Row { .. }
            | Self::Encode { .. }
            | Self::Lost(_)
            | Self::Sql(_) => "harnessctl doctor".into(),
            Self::Closed => "harnessctl daemon start".into(),
        }
    }

    /// Whether the same call may succeed later without anybody changing the request.
    #[must_use]
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Full(_) | Self::ReadOnly(_) | Self::Busy(_) | Self::Io(_) | Self::Lost(_))
    }
}

/// The shell command that puts the newest backup in place of a damaged database, keeping the damaged one.
fn restore_command(path: &std::path::Path, backup: Option<&std::path::Path>) -> String {
    let kept = path.with_extension("db.damaged");
    let aside = format!(
        "harnessctl daemon stop; mv {} {}; rm -f {} {}",
        quoted(path),
        quoted(&kept),
        quoted(&path.with_extension("db-wal")),
        quoted(&path.with_extension("db-shm")),
    );
    match backup {
        Some(backup) => format!("{aside}; cp {} {}", quoted(backup), quoted(path)),
        None => format!("{aside}  (there is no backup: the next start begins with an empty store)"),
    }
}

fn quoted(path: &std::path::Path) -> String {
    let text = path.display().to_string();
    shlex::try_quote(&text).map_or_else(|_| format!("{text:?}"), std::borrow::Cow::into_owned)
}

/// Primary and extended result code of an SQLite error.
fn sqlite_code(error: &dyn DatabaseError) -> Option<(i64, i64)> {
    let extended: i64 = error.code()?.parse().ok()?;
    Some((extended & 0xff, extended))
}

/// `SQLITE_IOERR_SHMSIZE`: the shared-memory file could not grow, which a full disk causes.
const IOERR_SHMSIZE: i64 = 10 | (19 << 8);

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let code = match &error {
            sqlx::Error::Database(inner) => sqlite_code(inner.as_ref()),
            sqlx::Error::Io(_) | sqlx::Error::WorkerCrashed => return Self::Io(error),
            sqlx::Error::PoolTimedOut => return Self::Busy(error),
            sqlx::Error::PoolClosed => return Self::Closed,
            _ => None,
        };
        match code {
            Some((13, _) | (_, IOERR_SHMSIZE)) => Self::Full(error),
            Some((8, _)) => Self::ReadOnly(error),
            Some((5 | 6, _)) => Self::Busy(error),
            Some((10 | 14 | 7, _)) => Self::Io(error),
            Some((11 | 26, _)) => {
                Self::Corrupt { path: super::DATABASE.into(), detail: error.to_string(), backup: None }
            }
            _ => Self::Sql(error),
        }
    }
}

/// Why a step was not stored.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The run is driven under another fence: this driver is late and must stop.
    #[error("the run is driven under another fence than {fence}")]
    Fenced {
        /// The fence that the write carried.
        fence: i64,
    },
    /// A driver holds the run: the control belongs into its mailbox.
    #[error("the run is driven; a control goes to its driver")]
    Driven,
    /// The events of the step do not follow the stored ones: a bug.
    #[error("events must follow {stored}, the step brings {first}..={last}")]
    SeqGap {
        /// Last stored.
        stored: i64,
        /// First of the step.
        first: i64,
        /// Last according to the state.
        last: i64,
    },
    /// The step names a row that does not exist: a bug.
    #[error("the step does not fit the stored rows: {0}")]
    Misfit(String),
    /// The store could not write.
    #[error("the step could not be stored")]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for CommitError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl CommitError {
    /// Symbolic code.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Fenced { .. } => "fenced",
            Self::Driven => "run_driven",
            Self::SeqGap { .. } => "seq_gap",
            Self::Misfit(_) => "step_misfit",
            Self::Store(inner) => inner.code(),
        }
    }
}
