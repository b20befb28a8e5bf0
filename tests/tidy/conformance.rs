//! `docs/conformance.tsv`: which row of the catalogue's section S4 is met how, where, and by which tests.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::source::{Source, repository};

/// The table.
pub(crate) const PAGE: &str = "docs/conformance.tsv";
/// Rows of the catalogue's section S4.
pub(crate) const ROWS: usize = 78;

static TEST: LazyLock<Regex> = LazyLock::new(|| {
    let attribute = r"#\[(?:tokio::)?test[^\]]*\]";
    let more = r"(?:\s*#\[(?:[^\[\]]|\[[^\]]*\])*\]|\s*//[^\n]*)*";
    Regex::new(&format!(r"{attribute}{more}\s*(?:pub )?(?:async )?fn (\w+)")).expect("a regular expression")
});

/// Names of all test functions.
fn tests(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources.iter().filter(|s| s.is_rust()) {
        found.extend(TEST.captures_iter(&source.text).map(|name| name[1].to_owned()));
    }
    found
}

/// Rows that are missing, doubled or name what is not there.
pub(crate) fn offences(sources: &[Source]) -> Vec<String> {
    let Some(page) = sources.iter().find(|s| s.path == PAGE) else {
        return vec![format!("{PAGE} is missing")];
    };
    // A planted page is judged against the real repository.
    let real = repository();
    let tests = tests(&real);
    let mut lines = page.text.lines();
    let mut offences = Vec::new();
    if lines.next() != Some("row\tas\twhere\ttests") {
        offences.push(format!("{PAGE} does not begin with its column names"));
    }
    let mut seen = BTreeSet::new();
    for line in lines {
        let columns: Vec<&str> = line.split('\t').collect();
        let [row, reading, places, names] = columns[..] else {
            offences.push(format!("`{line}` has not four columns"));
            continue;
        };
        if !seen.insert(row.to_owned()) {
            offences.push(format!("{row} twice"));
            // The row that it hides would be told as missing as well.
            continue;
        }
        if reading.is_empty() {
            offences.push(format!("{row} does not say how it is read"));
        }
        let later = matches!(names, "issue 2" | "issue 3");
        for place in places.split(", ").filter(|place| !(later && *place == "-")) {
            let there = real.iter().any(|s| s.path == place || s.path.starts_with(&format!("{place}/")));
            if !there {
                offences.push(format!("{row}: `{place}` is not there"));
            }
        }
        if names == "pending" {
            offences.push(format!("{row} is met and not proven yet · hint: write the test and name it"));
            continue;
        }
        for name in names.split(", ").filter(|_| !later) {
            if !tests.contains(name) {
                offences.push(format!(
                    "{row}: no test is called `{name}` · hint: name a test function, or `issue 2`, `issue 3`"
                ));
            }
        }
    }
    let twice = offences.iter().any(|offence| offence.ends_with(" twice"));
    let wanted = (1..=ROWS).map(|n| format!("S4-{n:03}"));
    offences.extend(wanted.filter(|row| !twice && !seen.contains(row)).map(|row| format!("{row} is missing")));
    let strange = seen.iter().filter(|row| !(row.len() == 6 && row.starts_with("S4-")));
    offences.extend(strange.map(|row| format!("`{row}` is no row of section S4")));
    offences
}
