//! Making room for the next run of a repository (DESIGN 10).

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::atomic::{FileError, on, remove_leftovers, remove_synced, sync_folder, write_atomic};
use super::paths::{FileName, Layout, ReportName};
use super::writer::read;
use crate::failpoint;

/// Moves the previous run's files to `<previous_run_dir>/artifacts`; lessons stay. A `tasks.json` or `plan.md` that a human
/// changed or made since is copied there and stays as well: it is the plan of the next run. Repeat freely; returns how many
/// files moved.
///
/// # Errors
/// [`FileError`]; what was moved stays moved, nothing is lost.
pub fn rotate(layout: &Layout, previous_run_dir: &Path) -> Result<usize, FileError> {
    let target = previous_run_dir.join("artifacts");
    let reports = target.join("reports");
    for folder in [&target, &reports] {
        remove_leftovers(folder)?;
    }
    let mut moved = 0;
    let whole = [
        FileName::Launch,
        FileName::Runtime,
        FileName::RuntimeLog,
        FileName::State,
        FileName::Events,
        FileName::Servers,
    ];
    for name in whole {
        moved += usize::from(relocate(&layout.path(&name), &target.join(name.relative()), true)?);
    }
    let plan = read(&layout.path(&FileName::Tasks))?;
    let ours = plan.is_none() || plan == read(&previous_run_dir.join("projected").join("tasks.json"))?;
    for name in [FileName::Tasks, FileName::Plan] {
        moved += usize::from(relocate(&layout.path(&name), &target.join(name.relative()), ours)?);
    }
    for name in report_names(&layout.reports())? {
        let name = FileName::Report(name);
        moved += usize::from(relocate(&layout.path(&name), &target.join(name.relative()), true)?);
    }
    // Only an empty folder goes; one that holds something of the user's stays.
    match fs::remove_dir(layout.reports()) {
        Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) => {
            tracing::debug!(%error, "the folder of the reports stays");
        }
        _ => {}
    }
    Ok(moved)
}

fn report_names(folder: &Path) -> Result<Vec<ReportName>, FileError> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(on("read", folder)(error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(on("read", folder))?;
        names.extend(entry.file_name().to_str().and_then(ReportName::parse));
    }
    names.sort();
    Ok(names)
}

/// Moves or copies one file; false when there is none. A rename where both lie on one file system, else a durable copy first.
fn relocate(from: &Path, to: &Path, remove: bool) -> Result<bool, FileError> {
    let Some(folder) = to.parent() else { return Ok(false) };
    match from.symlink_metadata() {
        Ok(found) if found.is_file() => {}
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(on("look at", from)(error)),
    }
    fs::create_dir_all(folder).map_err(on("create", folder))?;
    failpoint::hit("artifact.rotate.before");
    if !remove || fs::rename(from, to).is_err() {
        // The log may be larger than what `read` allows.
        let bytes = fs::read(from).map_err(on("read", from))?;
        write_atomic(to, &bytes)?;
        if remove {
            remove_synced(from)?;
        }
    } else {
        sync_folder(folder)?;
        from.parent().map_or(Ok(()), sync_folder)?;
    }
    failpoint::hit("artifact.rotate.after");
    Ok(true)
}
