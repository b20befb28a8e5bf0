//! Every Rust file is compiled: a file that no `mod` line and no manifest leads to is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;

/// Files that nothing leads to.
pub(crate) fn offences(sources: &[Source]) -> Vec<String> {
    let rust: BTreeMap<&str, &Source> = sources.iter().filter(|s| s.is_rust()).map(|s| (s.path.as_str(), s)).collect();
    let mut open: Vec<(String, bool)> = roots(sources, &rust).into_iter().map(|path| (path, true)).collect();
    let mut reached = BTreeSet::new();
    while let Some((path, root)) = open.pop() {
        let Some(source) = rust.get(path.as_str()) else { continue };
        if reached.insert(path.clone()) {
            open.extend(children(source, root).into_iter().map(|child| (child, false)));
        }
    }
    let hint = "hint: add a `mod` line, or a target with `path` to the manifest";
    let forgotten = rust.keys().filter(|path| !reached.contains(**path));
    forgotten.map(|path| format!("{path} is never compiled · {hint}")).collect()
}

/// Crate roots: those that manifests name, and those that cargo finds by itself.
fn roots(sources: &[Source], rust: &BTreeMap<&str, &Source>) -> Vec<String> {
    let mut found = Vec::new();
    for manifest in sources.iter().filter(|s| s.path.ends_with("Cargo.toml") && s.text.contains("[package]")) {
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        for name in ["src/lib.rs", "src/main.rs", "build.rs"] {
            found.push(format!("{folder}{name}"));
        }
        for line in manifest.text.lines().map(str::trim) {
            if let Some(path) = line.strip_prefix("path = \"").and_then(|rest| rest.strip_suffix('"')) {
                found.push(format!("{folder}{path}"));
            }
        }
        if !manifest.text.contains("autotests = false") {
            let tests = format!("{folder}tests/");
            let own = |path: &&&str| {
                path.strip_prefix(tests.as_str()).is_some_and(|rest| {
                    !rest.contains('/') || rest.ends_with("/main.rs") && rest.matches('/').count() == 1
                })
            };
            found.extend(rust.keys().filter(own).map(|path| (*path).to_owned()));
        }
    }
    found
}

/// The files that the `mod` lines of a file mean; both places where a module may stand.
fn children(source: &Source, root: bool) -> Vec<String> {
    let (folder, name) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let own =
        if root || name == "mod.rs" { folder.to_owned() } else { format!("{folder}/{}", name.trim_end_matches(".rs")) };
    let mut found = Vec::new();
    let mut path = None;
    for line in source.text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.strip_suffix("\"]").map(|file| format!("{folder}/{file}"));
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [.., "mod", name] = words[..]
            && let Some(name) = name.strip_suffix(';')
        {
            match path.take() {
                Some(file) => found.push(file),
                None => found.extend([format!("{own}/{name}.rs"), format!("{own}/{name}/mod.rs")]),
            }
        }
    }
    found
}
