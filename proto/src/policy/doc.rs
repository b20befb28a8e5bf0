//! The table as the page `docs/policy.md`; a test compares the two.

use std::fmt::Write as _;

use super::field::{Built, PRESETS, Preset};
use super::table::{ALIASES, FIELDS};
use super::value::wanted;

/// The whole page, with a line end.
#[must_use]
pub fn markdown() -> String {
    let mut page = String::from(
        "# Policy of a run\n\n\
         <!-- Made from `proto/src/policy/table.rs`; a test compares. Write it anew with \
         `HARNESS_BLESS=1 cargo test -p harness-proto policy`. -->\n\n\
         `harnessctl create-launch --profile PROFILE --set KEY=VALUE`; the policy is frozen into the run at its first `start`. A value whose\n\
         behaviour does not exist yet is refused as \"not available yet\". Lists are comma separated or a JSON list; commands are one plain\n\
         command or a JSON list of strings or `{cmd|argv, timeout_s, cwd, env, network, expect_tests_min}`.\n\n",
    );
    let columns = PRESETS.map(Preset::as_str).join(" | ");
    page.push_str(&format!(
        "| key | value | {columns} | now | meaning |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    ));
    for field in FIELDS {
        let defaults =
            field.defaults.map(|d| if d.is_empty() { "–".to_owned() } else { d.replace(',', ", ") }).join(" | ");
        let now = match field.built {
            Built::Yes => "yes".to_owned(),
            Built::Only(words) => words.join(", "),
            Built::UpTo(max) => format!("up to {max}"),
            Built::No => "not yet".to_owned(),
        };
        let kind = wanted(field.kind).replace('|', "\\|");
        // Writing to a String cannot fail.
        writeln!(page, "| `{}` | {kind} | {defaults} | {now} | {} |", field.key, field.meaning)
            .expect("a String takes every write");
    }
    page.push_str("\nOther names of the same key: ");
    page.push_str(&ALIASES.iter().map(|(alias, key)| format!("`{alias}` for `{key}`")).collect::<Vec<_>>().join(", "));
    page.push_str(".\n");
    page
}
