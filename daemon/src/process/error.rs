//! What can go wrong with a child.

use std::path::PathBuf;

/// Why a program did not start.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// `argv` is empty.
    #[error("no program was named")]
    EmptyCommand,
    /// The program is nowhere in `PATH`, or its path does not exist.
    #[error("program `{program}` was not found: {detail}")]
    MissingProgram {
        /// The program as asked for.
        program: String,
        /// Where it was looked for.
        detail: String,
    },
    /// The file exists and cannot be executed (no permission, no format the system knows, missing interpreter).
    #[error("program `{program}` cannot be executed: {detail}")]
    NotExecutable {
        /// The program as asked for.
        program: String,
        /// What the system said.
        detail: String,
    },
    /// The working directory cannot be entered.
    #[error("working directory `{}` cannot be entered: {detail}", cwd.display())]
    BadCwd {
        /// The directory.
        cwd: PathBuf,
        /// What the system said.
        detail: String,
    },
    /// The kernel cannot raise the wall that was asked for.
    #[error("the sandbox cannot be set up here: {detail}")]
    WallUnavailable {
        /// What is missing.
        detail: String,
    },
    /// An output file cannot be opened.
    #[error("output file cannot be opened: {detail}")]
    BadOutput {
        /// What the system said.
        detail: String,
    },
    /// A resource limit was refused.
    #[error("a resource limit was refused: {detail}")]
    BadLimit {
        /// What the system said.
        detail: String,
    },
    /// The launcher could not be prepared or started.
    #[error("launcher: {operation} failed")]
    Launcher {
        /// What was being done.
        operation: &'static str,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The launcher ended before it had started the program.
    #[error("the launcher ended before it started the program: {detail}")]
    LauncherFailed {
        /// What it said.
        detail: String,
    },
}

/// Why the end of a child could not be told.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// Waiting for the launcher failed.
    #[error("waiting for launcher {pid} failed")]
    Wait {
        /// The launcher.
        pid: u32,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The launcher was killed before it wrote the exit record; its tree has been killed.
    #[error("launcher {pid} ended without an exit record ({status})")]
    LauncherDied {
        /// The launcher.
        pid: u32,
        /// How it ended.
        status: String,
    },
    /// The exit record cannot be read.
    #[error("exit record `{}` cannot be read", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Descendants could not be killed (uninterruptible sleep).
    #[error("{count} processes of launcher {pid} could not be killed")]
    Unkillable {
        /// The launcher.
        pid: u32,
        /// How many.
        count: u32,
    },
}
