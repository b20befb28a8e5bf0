//! The house rules that neither compiler nor clippy checks (style 2.1 to 2.4, 3.4), read from the source text.
//!
//! Each rule is a function from sources to offences; a rule is also tried on a planted offence, because a rule that cannot
//! fail checks nothing. An offence says what is wrong and, after `hint:`, what to do.

mod conformance;
mod crates;
mod layers;
mod migrations;
mod reach;
mod source;
mod text;
mod words;

use source::{Source, repository, rust};

/// Fails with every offence at once.
fn assert_none(offences: &[String]) {
    assert!(offences.is_empty(), "{} offences:\n{}", offences.len(), offences.join("\n"));
}

/// The one planted offence of a rule is found, and the harmless text beside it is not.
fn assert_finds(offences: &[String], part: &str) {
    assert_eq!(offences.len(), 1, "{offences:?}");
    assert!(offences[0].contains(part), "{offences:?}");
}

#[test]
fn every_file_says_what_it_is_and_fits_on_a_few_screens() {
    assert_none(&text::beginnings(&rust()));
    assert_none(&text::lengths(&rust()));
    assert_finds(
        &text::beginnings(&[Source::planted("a.rs", "// no doc\n"), Source::planted("b.rs", "//! doc\n")]),
        "a.rs",
    );
    let long = format!("//! doc\n{}", "// line\n".repeat(text::MAX_LINES));
    assert_finds(&text::lengths(&[Source::planted("a.rs", &long)]), "401 lines");
}

#[test]
fn imports_go_one_way() {
    assert_none(&layers::offences(&rust()));
    let planted = [
        Source::planted(
            "daemon/src/git/x.rs",
            "use crate::runtime::Driver;\nuse crate::process::Child;\n// crate::store is told\n",
        ),
        Source::planted("daemon/src/git/y.rs", "use crate::{failpoint, git::Oid};\n"),
    ];
    assert_finds(&layers::offences(&planted), "`git` may not import `runtime` · hint: move the code down");
    let grouped = [Source::planted("daemon/src/process/x.rs", "use crate::{\n    failpoint,\n    store::Store,\n};\n")];
    assert_finds(&layers::offences(&grouped), "`process` may not import `store`");
    let unknown = [Source::planted("daemon/src/attic/x.rs", "//! Old things.\n")];
    assert_finds(&layers::offences(&unknown), "`attic` is in no layer");
}

#[test]
fn the_core_stays_pure() {
    assert_none(&layers::impurities(&rust()));
    assert_none(&crates::core_dependencies(&repository()));
    let planted = [
        Source::planted("daemon/core/src/x.rs", "let now = std::time::Instant::now();\n// std::fs is not for us\n"),
        Source::planted("daemon/src/x.rs", "use std::fs;\n"),
    ];
    assert_finds(&layers::impurities(&planted), "`std::time::Instant`");
    let manifest = "[dependencies]\nserde.workspace = true\ntokio = \"1\"\n\n[dev-dependencies]\nproptest = \"1\"\n";
    assert_finds(&crates::core_dependencies(&[Source::planted("daemon/core/Cargo.toml", manifest)]), "tokio");
}

#[test]
fn every_crate_takes_the_workspaces_lints() {
    assert_none(&crates::lints(&repository()));
    let planted = [
        Source::planted("a/Cargo.toml", "[package]\nname = \"a\"\n\n[lints]\nworkspace = true\n"),
        Source::planted("b/Cargo.toml", "[package]\nname = \"b\"\n"),
    ];
    assert_finds(&crates::lints(&planted), "b/Cargo.toml");
}

#[test]
fn no_file_is_forgotten() {
    assert_none(&reach::offences(&repository()));
    let planted = [
        Source::planted("t/Cargo.toml", "[package]\n\n[[test]]\nname = \"it\"\npath = \"it/main.rs\"\n"),
        Source::planted("t/it/main.rs", "//! Tests.\nmod first;\n#[path = \"else/where.rs\"]\nmod second;\n"),
        Source::planted("t/it/first.rs", "mod third;\n"),
        Source::planted("t/it/first/third.rs", ""),
        Source::planted("t/it/else/where.rs", ""),
        Source::planted("t/it/forgotten.rs", "//! Never compiled.\n"),
    ];
    assert_finds(&reach::offences(&planted), "t/it/forgotten.rs");
}

#[test]
fn no_code_branches_on_a_profiles_name() {
    assert_none(&words::profile_branches(&rust()));
    let planted = [
        Source::planted("daemon/src/x.rs", "if policy.profile == \"sprint\" {\n"),
        Source::planted("daemon/src/y.rs", "let values = PolicyValues::preset(\"sprint\");\n"),
        Source::planted("proto/src/policy/z.rs", "\"sprint\" => Preset::Sprint,\n"),
    ];
    assert_finds(&words::profile_branches(&planted), "daemon/src/x.rs:1");
}

#[test]
fn names_say_what_a_thing_is() {
    assert_none(&words::empty_names(&rust()));
    let planted = [Source::planted("a.rs", "pub struct RunManager;\nstruct Database;\n// struct OldHelper\n")];
    assert_finds(&words::empty_names(&planted), "RunManager");
}

#[test]
fn nothing_of_one_machine_is_committed() {
    assert_none(&words::machine(&repository()));
    let home = ["see /", "root/x and src/", "root/y"].concat();
    assert_finds(&words::machine(&[Source::planted("README.md", &home)]), "README.md:1");
    let host = ["see https", "://registry.corp.example/x and https", "://github.com/x"].concat();
    assert_finds(&words::machine(&[Source::planted("README.md", &host)]), "registry.corp.example");
    let lock = "source = \"registry+https://github.com/rust-lang/crates.io-index\"\nsource = \"registry+file:///m\"\n";
    assert_finds(&words::machine(&[Source::planted("Cargo.lock", lock)]), "Cargo.lock:2");
}

#[test]
fn no_test_waits_for_a_time() {
    assert_none(&text::sleeps(&rust()));
    let call = ["thread::sle", "ep(x);\n"].concat();
    let planted = [
        Source::planted("tests/a.rs", &format!("fn a() {{}}\n{call}")),
        Source::planted("tests/b.rs", &format!("// why: paces the scan\n{call}")),
        Source::planted("daemon/src/c.rs", &format!("{call}#[cfg(test)]\nmod tests {{}}\n")),
    ];
    assert_finds(&text::sleeps(&planted), "tests/a.rs:2");
}

#[test]
fn every_crash_point_is_used_and_listed() {
    assert_none(&words::crash_points(&rust()));
    let registry = "pub const REGISTRY: &[&str] = &[\n    \"a.before\",\n    \"b.before\",\n];\n";
    let call = ["failpoint::hi", "t(\"a.before\");\n"].concat();
    let planted = [Source::planted("daemon/src/failpoint.rs", registry), Source::planted("daemon/src/git/a.rs", &call)];
    assert_finds(&words::crash_points(&planted), "`b.before`");
}

#[test]
fn merged_migrations_never_change() {
    assert_none(&migrations::offences(&repository()));
    let sums = "0000000000000000000000000000000000000000000000000000000000000000  0001_init.sql\n";
    let planted = [Source::planted("migrations/0001_init.sql", "--\n"), Source::planted("migrations/SHA256SUMS", sums)];
    assert_finds(&migrations::offences(&planted), "0001_init.sql changed");
}

#[test]
fn the_table_of_event_words_is_the_one_in_the_docs() {
    assert_none(&words::event_page(&repository()));
    let page = "| role | status | decision | meaning |\n| --- | --- | --- | --- |\n| user | control | sneeze | x |\n";
    let offences = words::event_page(&[Source::planted("docs/events.md", page)]);
    assert!(offences.iter().any(|o| o.contains("sneeze")), "{offences:?}");
}

#[test]
fn every_row_that_the_core_drafts_has_a_kind() {
    assert_none(&words::drafted_rows(&rust()));
    let call = ["cx.event(dra", "ft(\"run\", \"sneezed\", text));\n"].concat();
    assert_finds(&words::drafted_rows(&[Source::planted("daemon/core/src/supervisor/x.rs", &call)]), "sneezed");
}

#[test]
fn every_row_of_the_catalogue_is_answered() {
    assert_none(&conformance::offences(&repository()));
    let head = "row\tas\twhere\ttests\n";
    let table: String = (2..=conformance::ROWS).map(|n| format!("S4-{n:03}\tseed\t-\tissue 2\n")).collect();
    let with = |line: &str| [Source::planted(conformance::PAGE, &format!("{head}{line}\n{table}"))];
    assert_none(&conformance::offences(&with("S4-001\tseed\t-\tissue 3")));
    assert_finds(&conformance::offences(&with("S4-002\tseed\t-\tissue 3")), "S4-002 twice");
    assert_finds(&conformance::offences(&with("S4-001\tseed\tdocs/conformance.tsv\tno_such_test")), "no_such_test");
    assert_finds(&conformance::offences(&with("S4-001\tseed\tno/such/file.rs\tissue 2")), "no/such/file.rs");
}

#[test]
fn every_blocker_of_the_gate_can_be_explained() {
    let explained: Vec<&str> = harness_proto::blocker::BLOCKERS.iter().map(|word| word.code).collect();
    assert_eq!(
        explained,
        harness_core::gate::CODES,
        "hint: `proto/src/blocker.rs` and the gate's CODES list the same codes"
    );
}
