//! Which paths a change may touch.

use super::rules::Blocker;

/// What the runtime writes into the target repository (DESIGN 10). A change that brings one of these can never land.
pub const HARNESS_FILES: [&str; 9] = [
    "harness-events.tsv",
    "harness-launch.json",
    "harness-lessons.md",
    "harness-runtime.json",
    "harness-runtime.log",
    "harness-servers.json",
    "harness-state.json",
    "plan.md",
    "tasks.json",
];
/// Folders of the same kind.
const HARNESS_FOLDERS: [&str; 2] = [".harness", ".harness-worktrees"];
/// Most paths that are named in one blocker.
const NAMED_MAX: usize = 20;

/// Blockers of the changed paths. The runtime's own names are refused even where the repository tracks one of them: there its files
/// move to `.harness/`, and a tracked `tasks.json` changed by an agent would look like a plan to whoever reads it next.
#[must_use]
pub fn path_blockers(changed: &[String], protected: &[String]) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    let harness: Vec<&str> = changed.iter().map(String::as_str).filter(|path| is_harness_file(path)).collect();
    if !harness.is_empty() {
        blockers.push(Blocker::new(
            "HARNESS_FILE_CHANGED",
            &format!("the change touches files of the runtime: {}", named(&harness)),
            "leave these paths out of the commit; write product files elsewhere",
        ));
    }
    let forbidden: Vec<&str> = changed
        .iter()
        .map(String::as_str)
        .filter(|path| protected.iter().any(|pattern| glob_matches(pattern, path)))
        .collect();
    if !forbidden.is_empty() {
        blockers.push(Blocker::new(
            "PROTECTED_PATH",
            &format!("the change touches protected paths: {}", named(&forbidden)),
            "do the task without these paths; the user names them in policy `protected_paths`",
        ));
    }
    blockers
}

fn is_harness_file(path: &str) -> bool {
    HARNESS_FILES.contains(&path)
        || HARNESS_FOLDERS.iter().any(|folder| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/')))
}

fn named(paths: &[&str]) -> String {
    let mut text = paths.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED_MAX {
        text.push_str(&format!(" and {} more", paths.len() - NAMED_MAX));
    }
    text
}

/// Whether a path matches a pattern as people write them in ignore files: `*` and `?` inside one folder, `**` across folders, a
/// pattern without `/` at any depth, a pattern that names a folder for everything below it. Case counts.
#[must_use]
pub fn glob_matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim();
    let anchored = pattern.trim_end_matches('/').contains('/');
    let pattern = pattern.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
    if pattern.is_empty() {
        return false;
    }
    let parts: Vec<&str> = path.split('/').collect();
    let pattern: Vec<&str> = pattern.split('/').collect();
    let starts = if anchored { 1 } else { parts.len() };
    (0..starts).any(|start| (start + 1..=parts.len()).rev().any(|end| folders_match(&pattern, &parts[start..end])))
}

/// Whether the whole pattern matches all given parts; linear in both thanks to one remembered `**`.
fn folders_match(pattern: &[&str], parts: &[&str]) -> bool {
    let (mut p, mut s, mut star) = (0, 0, None);
    while s < parts.len() {
        if pattern.get(p) == Some(&"**") {
            star = Some((p, s));
            p += 1;
        } else if pattern.get(p).is_some_and(|word| word_matches(word, parts[s])) {
            p += 1;
            s += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            s = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|word| *word == "**")
}

fn word_matches(pattern: &str, word: &str) -> bool {
    let (pattern, word): (Vec<char>, Vec<char>) = (pattern.chars().collect(), word.chars().collect());
    let (mut p, mut s, mut star) = (0, 0, None);
    while s < word.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, s));
            p += 1;
        } else if pattern.get(p).is_some_and(|c| *c == '?' || *c == word[s]) {
            p += 1;
            s += 1;
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            p = at + 1;
            s = from + 1;
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}
