//! Rules of the manifests.

use crate::source::Source;

/// What the core may depend on (style 2.1): nothing that does I/O.
const CORE: &[&str] = &["harness-proto", "serde", "serde_json", "thiserror", "sha2", "regex"];

/// Crates without the workspace's lints.
pub(crate) fn lints(sources: &[Source]) -> Vec<String> {
    let package = |s: &&Source| s.path.ends_with("Cargo.toml") && s.text.contains("[package]");
    let without = |s: &&Source| !section(&s.text, "[lints]").contains(&"workspace = true");
    let offence =
        |s: &Source| format!("{} does not take the lints · hint: add `[lints]` and `workspace = true`", s.path);
    sources.iter().filter(package).filter(without).map(offence).collect()
}

/// Dependencies of the core that are not in the list.
pub(crate) fn core_dependencies(sources: &[Source]) -> Vec<String> {
    let Some(manifest) = sources.iter().find(|s| s.path == "daemon/core/Cargo.toml") else {
        return vec!["daemon/core/Cargo.toml is missing".into()];
    };
    let name = |line: &&str| line.split(['.', '=', ' ']).next().unwrap_or_default().to_owned();
    section(&manifest.text, "[dependencies]")
        .iter()
        .map(name)
        .filter(|name| !CORE.contains(&name.as_str()))
        .map(|name| format!("the core depends on {name} · hint: what does I/O belongs into harnessd"))
        .collect()
}

/// Lines of a section, without blanks and comments.
fn section<'a>(manifest: &'a str, title: &str) -> Vec<&'a str> {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != title).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}
