//! Walls: what a tree of processes may touch, enforced by Landlock.
//!
//! A wall names what is allowed; everything else is denied: the rest of the home, other trees, the state directory,
//! `/tmp`, raw devices, signals to processes outside, ptrace, and with [`Network::Denied`] TCP.
//!
//! Not enforced here, because Landlock cannot: connecting to path-named Unix sockets (the socket checks its peers);
//! UDP, and mode, owner and times of files outside, which the second layer stops (`wall_namespace`).

use std::path::{Path, PathBuf};
use std::process::Stdio;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};

use super::launcher::{PROBE, PROBE_YES};
use super::spec::raw_paths;

/// The rights this daemon knows; a newer kernel is asked for no more.
const KNOWN: ABI = ABI::V7;
/// The oldest kernel on which a wall counts: before it, files outside can be truncated (Linux 6.2).
const LEAST: ABI = ABI::V3;

/// What a tree may touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wall {
    /// Everything the user may (`danger_full_access`).
    Open,
    /// Only what is named, and the system's own folders for reading.
    Confined(Confined),
}

/// The inside of a wall. Paths that do not exist are skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confined {
    /// Files and folders with all rights but those of devices.
    #[serde(with = "raw_paths")]
    pub read_write: Vec<PathBuf>,
    /// Files and folders to read and execute.
    #[serde(with = "raw_paths")]
    pub read_only: Vec<PathBuf>,
    /// What it may reach.
    pub network: Network,
}

/// What a tree may reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// Everything.
    Allowed,
    /// A loopback of its own and nothing else, so that a test can start a server and talk to it. Needs namespaces.
    Loopback,
    /// Neither connect nor bind over TCP, localhost included; with namespaces no other protocol either.
    Denied,
}

/// What this kernel can enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallSupport {
    /// Landlock's version as far as its rights are known here (6 at most); 0 without Landlock.
    pub abi: i32,
    /// Reads, writes, renames and truncation.
    pub filesystem: bool,
    /// TCP connect and bind.
    pub network: bool,
    /// Signals and abstract Unix sockets.
    pub scopes: bool,
    /// Mode, owner and times of files outside, and all of the network: the second layer, by namespaces.
    pub namespaces: bool,
}

/// Why a wall could not be raised.
#[derive(Debug, thiserror::Error)]
pub enum WallError {
    /// The kernel cannot enforce it.
    #[error("this kernel cannot confine {what} (Landlock version {abi})")]
    Unsupported {
        /// What cannot be confined.
        what: &'static str,
        /// Landlock's version; 0 without Landlock.
        abi: i32,
    },
    /// The kernel refused a rule.
    #[error("Landlock refused the wall: {detail}")]
    Refused {
        /// What it said.
        detail: String,
    },
}

/// Returns what this kernel can enforce.
pub fn probe() -> WallSupport {
    WallSupport { namespaces: probe_namespaces(), ..probe_landlock() }
}

fn probe_landlock() -> WallSupport {
    let files = |abi| strict().handle_access(AccessFs::from_all(abi));
    let steps = [
        (ABI::V1, creates(files(ABI::V1))),
        (ABI::V2, creates(files(ABI::V2))),
        (ABI::V3, creates(files(ABI::V3))),
        (ABI::V4, creates(strict().handle_access(AccessNet::from_all(ABI::V4)))),
        (ABI::V5, creates(files(ABI::V5))),
        (ABI::V6, creates(strict().scope(Scope::Signal))),
    ];
    let reached = steps.iter().take_while(|(_, there)| *there).last();
    let abi = reached.map_or(0, |(abi, _)| *abi as i32);
    WallSupport {
        abi,
        filesystem: abi >= LEAST as i32,
        network: abi >= ABI::V4 as i32,
        scopes: abi >= ABI::V6 as i32,
        namespaces: false,
    }
}

/// Asks a launcher to isolate itself. Without one (unit tests) the answer is no.
#[expect(clippy::disallowed_methods, reason = "a probe of the launcher, joined at once")]
fn probe_namespaces() -> bool {
    let Ok(launcher) = super::spawn::launcher() else {
        return false;
    };
    std::process::Command::new(launcher)
        .arg(PROBE)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.code() == Some(i32::from(PROBE_YES)))
}

fn strict() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

fn creates(ruleset: Result<Ruleset, landlock::RulesetError>) -> bool {
    ruleset.is_ok_and(|ruleset| ruleset.create().is_ok())
}

/// Folders of the system that every program may read and execute.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/proc",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
    "/run/systemd/resolve",
    "/run/current-system",
];

/// Entries of `/etc` that hold secrets; the others are readable.
const ETC_SECRET: &[&str] = &[
    "shadow",
    "shadow-",
    "gshadow",
    "gshadow-",
    "sudoers",
    "sudoers.d",
    "ssh",
    "krb5.keytab",
    "security",
    "NetworkManager",
    "wireguard",
    "docker",
    "kubernetes",
];

/// Devices that every program may read and write.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Confines this process and all its descendants; there is no way back.
pub(crate) fn raise(wall: &Wall) -> Result<(), WallError> {
    let Wall::Confined(confined) = wall else {
        return Ok(());
    };
    require(confined)?;
    let refused = |detail: String| WallError::Refused { detail };
    let ruleset = rules(confined).map_err(|error| refused(error.to_string()))?;
    let status = ruleset.restrict_self().map_err(|error| refused(error.to_string()))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => Ok(()),
        other => Err(refused(format!("{other:?}"))),
    }
}

/// Refuses a wall of which this kernel could only enforce a part that matters.
fn require(confined: &Confined) -> Result<(), WallError> {
    let support = probe_landlock();
    let lacking = |what| Err(WallError::Unsupported { what, abi: support.abi });
    if !support.filesystem {
        return lacking("the file system");
    }
    if confined.network == Network::Denied && !support.network {
        return lacking("the network");
    }
    Ok(())
}

fn rules(confined: &Confined) -> Result<RulesetCreated, landlock::RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .scope(Scope::AbstractUnixSocket)?
        .scope(Scope::Signal)?;
    if confined.network == Network::Denied {
        ruleset = ruleset.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut created = ruleset.create()?;
    let read = AccessFs::from_read(KNOWN);
    for path in SYSTEM.iter().map(Path::new) {
        created = allow(created, path, read)?;
    }
    created = allow(created, Path::new("/etc"), AccessFs::ReadDir.into())?;
    for path in readable_etc() {
        created = allow(created, &path, read)?;
    }
    for path in &confined.read_only {
        created = allow(created, path, read)?;
    }
    for path in DEVICES.iter().map(Path::new) {
        created = allow(created, path, AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    // Device nodes and ioctl on devices are never part of anybody's work.
    let write = AccessFs::from_all(KNOWN) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    for path in &confined.read_write {
        created = allow(created, path, write)?;
    }
    Ok(created)
}

/// Adds one rule; what does not exist needs none, and a plain file takes no rights of folders.
fn allow(
    created: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, landlock::RulesetError> {
    let Ok(fd) = PathFd::new(path) else {
        return Ok(created);
    };
    let access = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_dir() => access & AccessFs::from_file(KNOWN),
        Ok(_) | Err(_) => access,
    };
    created.add_rule(PathBeneath::new(fd, access))
}

fn readable_etc() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/etc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            !ETC_SECRET.iter().any(|secret| name == *secret)
        })
        .map(|entry| entry.path())
        .collect()
}
