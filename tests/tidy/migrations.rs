//! Merged migrations never change: a changed one stops every installed daemon at its next start (style 4.8).

use sha2::{Digest as _, Sha256};

use crate::source::Source;

const SUMS: &str = "migrations/SHA256SUMS";

/// Migrations that differ from their pin, have none, or are gone.
pub(crate) fn offences(sources: &[Source]) -> Vec<String> {
    let sums = sources.iter().find(|s| s.path == SUMS).map_or("", |s| s.text.as_str());
    let pins: Vec<(&str, &str)> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    let mut offences = Vec::new();
    let mut names = Vec::new();
    for source in sources {
        let Some(name) = source.path.strip_prefix("migrations/").filter(|name| name.ends_with(".sql")) else {
            continue;
        };
        names.push(name);
        let sum = hex(&Sha256::digest(source.text.as_bytes()));
        match pins.iter().find(|(pinned, _)| *pinned == name) {
            None => offences.push(format!("{name} is not pinned · hint: append `{sum}  {name}` to {SUMS}")),
            Some((_, pin)) if *pin != sum => offences.push(format!(
                "{name} changed · hint: write a new migration; only one that never left this branch may be pinned anew as {sum}"
            )),
            Some(_) => {}
        }
    }
    let gone = pins.iter().filter(|(name, _)| !names.contains(name));
    offences.extend(gone.map(|(name, _)| format!("{name} is pinned and gone · hint: migrations are never removed")));
    let in_order = pins.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if !in_order {
        offences.push(format!("{SUMS} is not in order · hint: append only"));
    }
    offences
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
