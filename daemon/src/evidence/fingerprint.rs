//! When two pieces of evidence are the same (DESIGN 8): same tree, same command, same environment.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use harness_proto::plan::{Check, CommandLine};
use sha2::{Digest as _, Sha256};

/// Variables whose values differ from run to run without meaning anything.
const VOLATILE: &[&str] = &["TMPDIR"];

/// sha256 of the tree, the setup commands before it, the command with its folder, the environment, whether it was walled and
/// whether it had the network. Places on the disk are no part of it.
#[must_use]
pub fn fingerprint(
    tree_id: &str,
    setup: &[Check],
    check: &Check,
    env: &[(OsString, OsString)],
    walled: bool,
    network: bool,
) -> String {
    let mut hash = Hash(Sha256::new());
    hash.part(b"harness.evidence/1");
    hash.part(tree_id.as_bytes());
    hash.number(setup.len());
    for before in setup {
        hash.command(before);
    }
    hash.command(check);
    hash.part(&[u8::from(walled), u8::from(network)]);
    let mut env: Vec<_> = env.iter().filter(|(name, _)| !VOLATILE.iter().any(|volatile| name == *volatile)).collect();
    env.sort();
    hash.number(env.len());
    for (name, value) in env {
        hash.part(name.as_bytes());
        hash.part(value.as_bytes());
    }
    hex(&hash.0.finalize())
}

/// Lowercase hexadecimal text.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Hashes parts with their lengths, so that no two lists of parts run together to the same bytes.
struct Hash(Sha256);

impl Hash {
    fn number(&mut self, n: usize) {
        self.0.update((n as u64).to_be_bytes());
    }

    fn part(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    fn command(&mut self, check: &Check) {
        match &check.command {
            CommandLine::Cmd(text) => {
                self.part(b"cmd");
                self.part(text.as_bytes());
            }
            CommandLine::Argv(words) => {
                self.part(b"argv");
                self.number(words.len());
                for word in words {
                    self.part(word.as_bytes());
                }
            }
        }
        self.part(check.cwd.as_deref().unwrap_or_default().as_bytes());
        self.number(check.env.len());
        for (name, value) in &check.env {
            self.part(name.as_bytes());
            self.part(value.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_counts_and_places_do_not() {
        let env = |path: &str, tmp: &str| vec![("PATH".into(), path.into()), ("TMPDIR".into(), tmp.into())];
        let check = Check::shell("make");
        let base = fingerprint("t", &[], &check, &env("/bin", "/a"), true, false);
        assert_eq!(base, fingerprint("t", &[], &check, &env("/bin", "/b"), true, false));
        let mut other_env = check.clone();
        other_env.env.insert("A".into(), "1".into());
        let argv = Check { command: CommandLine::Argv(vec!["make".into()]), ..check.clone() };
        let others = [
            fingerprint("u", &[], &check, &env("/bin", "/a"), true, false),
            fingerprint("t", std::slice::from_ref(&check), &check, &env("/bin", "/a"), true, false),
            fingerprint("t", &[], &other_env, &env("/bin", "/a"), true, false),
            fingerprint("t", &[], &argv, &env("/bin", "/a"), true, false),
            fingerprint("t", &[], &Check { cwd: Some("x".into()), ..check.clone() }, &env("/bin", "/a"), true, false),
            fingerprint("t", &[], &check, &env("/usr/bin", "/a"), true, false),
            fingerprint("t", &[], &check, &env("/bin", "/a"), false, false),
            fingerprint("t", &[], &check, &env("/bin", "/a"), true, true),
        ];
        for (place, other) in others.iter().enumerate() {
            assert_ne!(&base, other, "{place}");
        }
    }
}
