//! The second layer of a wall: a mount namespace in which everything outside is read-only.
//!
//! Landlock does not mediate `chmod`, `chown`, `utime` and extended attributes, nor anything but TCP of the network.
//! A read-only mount stops the first group for everybody, root included; an empty network namespace stops the rest.
//! Where the system forbids namespaces, Landlock stands alone and [`super::WallSupport`] says so.

use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

use super::wall::{Confined, Network};

const NOTHING: Option<&str> = None;

/// Moves this process into namespaces of its own; `Ok(false)` when the system does not let it, and nothing changed.
///
/// # Errors
/// The namespace exists and could not be furnished; the process is then of no use.
pub(crate) fn isolate(confined: &Confined) -> Result<bool, Errno> {
    let mut flags = CloneFlags::CLONE_NEWNS;
    if confined.network != Network::Allowed {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    let (uid, gid) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if unshare(flags).is_err() {
        match unshare(flags | CloneFlags::CLONE_NEWUSER) {
            Ok(()) => {}
            // There is no other way to a loopback of its own.
            Err(error) if confined.network == Network::Loopback => return Err(error),
            Err(_) => return Ok(false),
        }
        // The same ids inside as outside: no file changes its owner in anybody's eyes.
        let maps = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{uid} {uid} 1")),
            ("gid_map", format!("{gid} {gid} 1")),
        ];
        for (name, text) in maps {
            std::fs::write(format!("/proc/self/{name}"), text).map_err(|_| Errno::EPERM)?;
        }
    }
    furnish(confined)?;
    if confined.network == Network::Loopback {
        raise_loopback()?;
    }
    Ok(true)
}

/// Brings up the loopback of a fresh network namespace, which is interface 1 there.
///
/// Over netlink, because the older way is an ioctl and those need unsafe code.
fn raise_loopback() -> Result<(), Errno> {
    const NEW_LINK: u16 = 16;
    const REQUEST_WITH_ACK: u16 = 0x1 | 0x4;
    const UP: u32 = 1;
    let mut message = Vec::with_capacity(32);
    message.extend(32_u32.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST_WITH_ACK.to_ne_bytes());
    // Sequence number and sender, then family, padding and kind of the interface.
    message.extend([0; 12]);
    message.extend(1_i32.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &message, &kernel, MsgFlags::empty())?;
    let mut answer = [0_u8; 512];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let code: [u8; 4] =
        answer.get(16..20).filter(|_| length >= 20).and_then(|bytes| bytes.try_into().ok()).ok_or(Errno::EPROTO)?;
    match i32::from_ne_bytes(code) {
        0 => Ok(()),
        error => Err(Errno::from_raw(-error)),
    }
}

fn furnish(confined: &Confined) -> Result<(), Errno> {
    mount(NOTHING, "/", NOTHING, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NOTHING)?;
    let writable: Vec<PathBuf> = confined.read_write.iter().filter_map(|path| path.canonicalize().ok()).collect();
    for path in &writable {
        let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(path.as_path()), path.as_path(), NOTHING, bind, NOTHING)?;
    }
    let table = std::fs::read("/proc/self/mountinfo").map_err(|_| Errno::EIO)?;
    for (target, options) in table.split(|byte| *byte == b'\n').filter_map(parse) {
        if writable.iter().any(|path| target.starts_with(path)) {
            continue;
        }
        let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | options;
        match mount(NOTHING, target.as_path(), NOTHING, flags, NOTHING) {
            // Covered by another mount, or a place we may not even look at: unreachable for the program too.
            Ok(()) | Err(Errno::EINVAL | Errno::ENOENT | Errno::EACCES) => {}
            Err(error) if target == Path::new("/") => return Err(error),
            // A mount that the system has locked (autofs, FUSE of another user) stays as Landlock leaves it.
            Err(_) => {}
        }
    }
    Ok(())
}

/// Reads one line of mountinfo: where it is mounted, and the flags that a remount must repeat.
fn parse(line: &[u8]) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let target = unescape(fields.nth(4)?);
    let mut flags = MsFlags::empty();
    for option in fields.next()?.split(|byte| *byte == b',') {
        flags |= match option {
            b"nosuid" => MsFlags::MS_NOSUID,
            b"nodev" => MsFlags::MS_NODEV,
            b"noexec" => MsFlags::MS_NOEXEC,
            b"noatime" => MsFlags::MS_NOATIME,
            b"nodiratime" => MsFlags::MS_NODIRATIME,
            b"relatime" => MsFlags::MS_RELATIME,
            _ => MsFlags::empty(),
        };
    }
    Some((target, flags))
}

/// Undoes the kernel's octal escapes of blanks and backslashes.
fn unescape(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match octal {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

/// What root may keep inside a wall: the rights over its own files and children, nothing over the machine.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::NET_BIND_SERVICE);

/// Gives up every capability but [`KEPT`]; with `no_new_privs` set, no exec brings them back.
pub(crate) fn drop_capabilities() -> rustix::io::Result<()> {
    let held = capabilities(None)?;
    set_capabilities(
        None,
        CapabilitySets {
            effective: held.effective & KEPT,
            permitted: held.permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        },
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn a_mount_is_read_with_its_escapes_and_flags() {
        let line = br"31 23 0:28 / /mnt/a\040b\134c rw,nosuid,relatime shared:1 - tmpfs tmpfs rw";
        let (target, flags) = parse(line).unwrap();
        assert_eq!(target, Path::new(r"/mnt/a b\c"));
        assert_eq!(flags, MsFlags::MS_NOSUID | MsFlags::MS_RELATIME);
        assert!(parse(b"").is_none());
    }
}
