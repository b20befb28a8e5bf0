//! Rules about words: names of types, names of profiles, places of one machine, crash points, rows of history.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use harness_proto::event_words::EVENT_WORDS;
use regex::Regex;

use crate::source::Source;

fn rule(text: &str) -> Regex {
    Regex::new(text).expect("a rule is a regular expression")
}

static EMPTY: LazyLock<Regex> = LazyLock::new(|| {
    rule(r"\b(?:struct|enum|trait|type|union)\s+(\w*(?:Manager|Helper|Util|Utils|Data|Info)(?:[A-Z]\w*)?)\b")
});
static PROFILE: LazyLock<Regex> = LazyLock::new(|| {
    rule(
        r#"(?:(?:==|!=)\s*"(?:dag|app-builder|sprint|scored)"|"(?:dag|app-builder|sprint|scored)"\s*(?:==|!=|=>|\|)|\bPreset::(?:Dag|AppBuilder|Sprint|Scored)\b)"#,
    )
});
static URL: LazyLock<Regex> = LazyLock::new(|| rule(r"https?://([A-Za-z0-9.-]+)"));
static DRAFT: LazyLock<Regex> = LazyLock::new(|| rule(r#"\bdraft\(\s*"([^"]+)",\s*(?:&format!\()?"([^"{]*)(\{)?"#));

/// Hosts that a page of this repository may name.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "github.com",
    "docs.rs",
    "doc.rust-lang.org",
    "git-scm.com",
    "sqlite.org",
    "www.apache.org",
    "opensource.org",
    "rustup.rs",
    "sh.rustup.rs",
    "json-schema.org",
    "keepachangelog.com",
    "semver.org",
];

/// Type names that say nothing.
pub(crate) fn empty_names(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    // The tidy tests plant what they look for.
    for source in sources.iter().filter(|s| !s.path.starts_with("tests/tidy/")) {
        for (n, line) in source.code() {
            for found in EMPTY.captures_iter(line) {
                let hint = "hint: name what it owns or decides";
                offences.push(format!("{}:{n}: `{}` · {hint}", source.path, &found[1]));
            }
        }
    }
    offences
}

/// Code that asks which profile it is. A profile is a column of the policy table; code asks the policy's fields.
pub(crate) fn profile_branches(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    let table = |s: &&Source| !s.path.starts_with("proto/src/policy") && !s.path.starts_with("tests/tidy/");
    for source in sources.iter().filter(table) {
        for (n, line) in source.code().filter(|(_, line)| PROFILE.is_match(line)) {
            let hint = "hint: ask the field of the policy that the profile sets";
            offences.push(format!("{}:{n}: `{}` · {hint}", source.path, line.trim()));
        }
    }
    offences
}

/// Absolute paths of one machine, hosts nobody else can reach, packages from elsewhere.
pub(crate) fn machine(sources: &[Source]) -> Vec<String> {
    // In pieces, so that this file does not break its own rule.
    let places: Vec<String> = ["root", "work", "tmp/wt", "opt/agent"].iter().map(|name| format!("/{name}/")).collect();
    let mut offences = Vec::new();
    for source in sources {
        for (n, line) in source.text.lines().enumerate().map(|(n, line)| (n + 1, line)) {
            if let Some(place) = places.iter().find(|place| begins_path(line, place)) {
                offences.push(format!(
                    "{}:{n}: `{place}` is a place of one machine · hint: use a relative path",
                    source.path
                ));
            }
            let lock = source.path == "Cargo.lock";
            let index = "registry+https://github.com/rust-lang/crates.io-index";
            if lock && line.starts_with("source = ") && !line.contains(index) {
                offences.push(format!("{}:{n}: a package from elsewhere · hint: lock against crates.io", source.path));
            }
            for found in URL.captures_iter(line) {
                let host = &found[1];
                let reserved =
                    host.ends_with(".invalid") || host.ends_with(".example") && host.matches('.').count() == 1;
                let code = source.is_rust() && !source.path.ends_with("main.rs");
                if !reserved && !code && !HOSTS.contains(&host.trim_end_matches('.')) {
                    offences.push(format!(
                        "{}:{n}: host {host} · hint: add it to HOSTS if everybody can reach it",
                        source.path
                    ));
                }
            }
        }
    }
    offences
}

/// Whether an absolute path in the line begins with this place.
fn begins_path(line: &str, place: &str) -> bool {
    line.match_indices(place)
        .any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/})*\\".contains(c)))
}

/// Crash points that are listed and not used, or used and not listed.
pub(crate) fn crash_points(sources: &[Source]) -> Vec<String> {
    let call = ["hi", "t(\""].concat();
    let quoted = |text: &str| text.split('"').next().unwrap_or_default().to_owned();
    let mut used = BTreeSet::new();
    let mut listed = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with("daemon/src/")) {
        used.extend(source.text.split(&call).skip(1).map(quoted));
        if source.path.ends_with("/failpoint.rs") {
            let table = source.text.split("REGISTRY: &[&str] = &[").nth(1).unwrap_or_default().split("];").next();
            listed.extend(
                table.unwrap_or_default().split(",").filter_map(|item| item.split('"').nth(1)).map(str::to_owned),
            );
        }
    }
    let set: BTreeSet<String> = listed.iter().cloned().collect();
    let mut offences: Vec<String> = Vec::new();
    if listed.is_empty() {
        offences.push("no crash point is listed · hint: the registry moved, look for it elsewhere".into());
    }
    offences.extend(set.difference(&used).map(|name| format!("`{name}` is listed and never hit · hint: take it out")));
    offences
        .extend(used.difference(&set).map(|name| format!("`{name}` is hit and not listed · hint: add it to REGISTRY")));
    if set.len() != listed.len() {
        offences.push("a crash point is listed twice".into());
    }
    offences
}

/// Differences between `docs/events.md` and the table in `harness-proto`.
pub(crate) fn event_page(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|s| s.path == "docs/events.md") else {
        return vec!["docs/events.md is missing".into()];
    };
    let is_row = |line: &&str| line.starts_with("| ") && !line.starts_with("| role ") && !line.starts_with("| ---");
    let shown: Vec<&str> = page.text.lines().filter(is_row).collect();
    let wanted: Vec<String> =
        EVENT_WORDS.iter().map(|w| format!("| {} | {} | {} | {} |", w.role, w.status, w.decision, w.meaning)).collect();
    let mut offences: Vec<String> = Vec::new();
    let missing = wanted.iter().filter(|row| !shown.contains(&row.as_str()));
    offences.extend(missing.map(|row| format!("docs/events.md lacks `{row}`")));
    let strange = shown.iter().filter(|row| !wanted.iter().any(|wanted| wanted == *row));
    offences.extend(strange.map(|row| format!("docs/events.md has `{row}`, proto/src/event_words.rs does not")));
    if offences.is_empty() && shown.len() != wanted.len() {
        offences.push("docs/events.md has a row twice".into());
    }
    offences
}

/// Rows that the core drafts in words that no kind covers. The role is given later in a chain, so words alone are compared.
pub(crate) fn drafted_rows(sources: &[Source]) -> Vec<String> {
    let mut offences = Vec::new();
    for source in sources.iter().filter(|s| s.path.starts_with("daemon/core/src/")) {
        for found in DRAFT.captures_iter(&source.text) {
            let (status, decision, open) = (&found[1], &found[2], found.get(3).is_some());
            let covered = EVENT_WORDS.iter().any(|w| {
                w.status == status
                    && if open {
                        w.decision == format!("{decision}*") || w.decision == "*"
                    } else {
                        w.covers_decision(decision)
                    }
            });
            if !covered {
                let hint = "hint: add a line to proto/src/event_words.rs and docs/events.md";
                offences.push(format!("{}: a row `{status} {decision}` · {hint}", source.path));
            }
        }
    }
    offences
}
