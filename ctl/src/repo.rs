//! Paths and programs as the client sees them, made absolute for the daemon.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use harness_proto::error::Problem;

/// The absolute text of a folder; the current one when none is named.
pub(crate) fn absolute(path: Option<&Path>) -> Result<String, Problem> {
    let path = path.unwrap_or_else(|| Path::new("."));
    let failed =
        |e: std::io::Error| Problem::new("IO", format!("`{}` cannot be used", path.display())).why(e.to_string());
    let full = match path.canonicalize() {
        Ok(full) => full,
        // It may not exist yet; the daemon says so with the command that helps.
        Err(_) => std::path::absolute(path).map_err(failed)?,
    };
    full.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::new("PATH_NOT_UTF8", format!("`{}` is not UTF-8", full.display()))
            .why("paths go to the daemon as JSON text")
            .next("use a folder whose name is UTF-8")
    })
}

/// The program of that name as an absolute path, looked up in this PATH.
pub(crate) fn program(name: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if name.contains('/') {
        return std::path::absolute(name).ok().filter(|full| is_program(full));
    }
    std::env::split_paths(path?).map(|folder| folder.join(name)).find(|full| full.is_absolute() && is_program(full))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// `--codex-bin` made absolute: the daemon may have another PATH than this shell.
pub(crate) fn codex(name: &str) -> Result<String, Problem> {
    let path = std::env::var_os("PATH");
    let found = program(name, path.as_deref()).ok_or_else(|| {
        Problem::new("AGENT_MISSING", format!("Codex executable is not available: {name}"))
            .why("it is no executable file and not on PATH")
            .next("harnessctl start --codex-bin /path/to/codex")
    })?;
    absolute_text(&found)
}

fn absolute_text(path: &Path) -> Result<String, Problem> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Problem::new("PATH_NOT_UTF8", format!("`{}` is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_path_or_by_path() {
        let path = OsStr::new("relative:/bin:/usr/bin");
        assert!(program("sh", Some(path)).is_some_and(|p| p.is_absolute()));
        assert!(program("/bin/sh", None).is_some());
        assert_eq!(program("no-such-program", Some(path)), None);
        assert_eq!(program("/etc/passwd", None), None, "a file that cannot be executed is no program");
        assert_eq!(program("sh", None), None);
    }
}
