//! Tries to get out (T10). Each must fail inside the wall and work without it, so that none is denied by accident.

/// One try: a name and a shell script that exits with 0 when it got out.
pub(crate) struct Escape {
    pub(crate) name: &'static str,
    pub(crate) script: &'static str,
    pub(crate) open: Open,
}

/// What the same script does without a wall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    Works,
    /// Only root can do it at all.
    WorksForRoot,
    /// Landlock alone cannot stop it; the namespaces must, where the system has them.
    WorksWithoutNamespaces,
    /// Stopped by the launcher itself, or the machine may not have it.
    Unknown,
}

const fn works(name: &'static str, script: &'static str) -> Escape {
    Escape { name, script, open: Open::Works }
}

const fn root(name: &'static str, script: &'static str) -> Escape {
    Escape { name, script, open: Open::WorksForRoot }
}

const fn second_layer(name: &'static str, script: &'static str) -> Escape {
    Escape { name, script, open: Open::WorksWithoutNamespaces }
}

const fn unknown(name: &'static str, script: &'static str) -> Escape {
    Escape { name, script, open: Open::Unknown }
}

/// Reading what is not ours.
pub(crate) const READS: &[Escape] = &[
    works("ssh key", "cat $H/.ssh/id"),
    works("aws credentials", "cat $H/.aws/credentials"),
    works("gnupg", "cat $H/.gnupg/key"),
    works("config", "cat $H/.config/gh/hosts.yml"),
    works("codex home", "cat $H/.codex/auth.json"),
    works("claude home", "cat $H/.claude/creds"),
    works("cargo credentials beside an open toolchain", "cat $H/.cargo/credentials.toml"),
    works("a file of the home", "cat $H/notes.txt"),
    works("listing the home", "ls $H"),
    works("the database", "cat $S/harness.db"),
    works("listing the state directory", "ls $S"),
    works("another tree", "cat $B/file"),
    works("the user's checkout", "cat $U/file"),
    works("a symlink to a secret", "ln -sf $H/.ssh/id l1 && cat l1"),
    works("a hard link to a secret", "ln $H/.ssh/id l2 && cat l2"),
    works("a relative path", "cat ../../../home/.ssh/id"),
    works("through /proc/self/root", "cat /proc/self/root$H/.ssh/id"),
    works(
        "through a descriptor of /",
        r#"python3 -c "
import os
root = os.open('/', os.O_PATH)
os.open(os.environ['H'][1:] + '/.ssh/id', os.O_RDONLY, dir_fd=root)""#,
    ),
    works(
        "reopening through /proc/self/fd",
        r#"python3 -c "
import os
fd = os.open(os.environ['H'] + '/.ssh/id', os.O_PATH)
open(f'/proc/self/fd/{fd}').read()""#,
    ),
    works("executing a program of the home", "$H/bin/tool"),
    works("listing /tmp", "ls /tmp"),
    root("password hashes", "cat /etc/shadow"),
    works("the daemon's environment", "cat /proc/$D/environ"),
    works("the daemon's memory", "head -c1 /proc/$D/mem; [ $? = 1 ] && exec 3</proc/$D/mem"),
    works("the daemon's root", "cat /proc/$D/root$H/.ssh/id"),
    works("the daemon's working directory", "ls /proc/$D/cwd/"),
    works("the daemon's descriptors", "readlink /proc/$D/fd/1"),
    works("the launcher's environment", "cat /proc/$PPID/environ"),
    unknown("a raw disk", "head -c1 /dev/$(awk 'NR>2 {print $4; exit}' /proc/partitions)"),
    unknown("kernel memory", "head -c1 /proc/kcore"),
    unknown("physical memory", "head -c1 /dev/mem"),
];

/// Changing what is not ours; the last ones destroy what the others need.
pub(crate) const WRITES: &[Escape] = &[
    works("appending to the shell's start file", "echo x >> $H/.bashrc"),
    works("creating a file in the home", "echo x > $H/new"),
    works("creating a folder in the home", "mkdir $H/dir"),
    works("a fifo outside", "mkfifo $H/fifo"),
    works(
        "a socket outside",
        r#"python3 -c "
import os, socket
socket.socket(socket.AF_UNIX).bind(os.environ['H'] + '/sock')""#,
    ),
    works("a symlink outside", "ln -s x $H/symlink"),
    works("a hard link outside", "echo x > x && ln x $H/link"),
    works("a rename outwards", "echo x > y && mv -T y $H/moved && test -e $H/moved"),
    works("appending to the database", "echo x >> $S/harness.db"),
    works("a hook of the mirror", "echo x > $M/hooks/post-commit"),
    works("the mirror's config", "git config --file $M/config core.fsmonitor evil"),
    works("the mirror's main", "git update-ref refs/heads/main HEAD && echo x > $M/refs/heads/main.x"),
    works("a new branch of the mirror", "git branch evil"),
    works("another run's ref", "git update-ref refs/harness/run_other/head HEAD"),
    works("packed refs", "echo '# x' >> $M/packed-refs"),
    works("attributes of the mirror", "echo '* filter=x' > $M/info/attributes"),
    works("another tree's HEAD", "echo x >> $M/worktrees/b/HEAD"),
    works("another tree's file", "echo x >> $B/file"),
    works("the user's file", "echo x >> $U/file"),
    works("the user's git config", "echo x >> $U/.git/info/exclude"),
    works("the user's branch", "echo x > $U/.git/refs/heads/evil"),
    works("the user's objects", "echo x > $U/.git/objects/evil"),
    works("the user's hook", "echo x > $U/.git/hooks/pre-commit"),
    works("a file in /tmp", "f=/tmp/hp-evil-$$; echo x > $f && rm $f"),
    works("shared memory", "f=/dev/shm/hp-evil-$$; echo x > $f && rm $f"),
    root("a program of the system", "f=/usr/local/bin/hp-evil-$$; echo x > $f && rm $f"),
    root("a setting of the kernel", "cat /proc/sys/kernel/domainname > /proc/sys/kernel/domainname"),
    second_layer("mode of a file outside", "chmod 777 $H/notes.txt"),
    second_layer("mode of a readable file outside", "chmod 777 $M/config"),
    second_layer("owner of a file outside", "chown $(id -u) $H/notes.txt"),
    second_layer("times of a file outside", "touch -d 2001-01-01 -c $H/notes.txt"),
    second_layer(
        "extended attributes outside",
        r#"python3 -c "
import os
os.setxattr(os.environ['M'] + '/config', 'user.x', b'1')""#,
    ),
    root("a device node", "mknod dev b 254 0 && rm dev"),
    works("truncating the database", "truncate -s 0 $S/harness.db"),
    works("deleting", "rm $H/.aws/credentials"),
    works("a rename inwards", "mv $H/notes.txt n && cat n"),
];

/// Processes, network, and the machine itself.
pub(crate) const OTHERS: &[Escape] = &[
    works("a signal to the daemon", "kill -CONT $D"),
    works("a signal to a stranger", "kill -CONT $V"),
    works("a signal to the launcher", "kill -CONT $PPID"),
    works(
        "ptrace",
        r#"python3 -c "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
seized = libc.ptrace(0x4206, int(os.environ['V']), None, None)
raise SystemExit(seized != 0)""#,
    ),
    works(
        "reading another process",
        r#"python3 -c "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
vm = next(l for l in open('/proc/' + os.environ['V'] + '/maps')).split('-')[0]
class V(ctypes.Structure): _fields_ = [('b', ctypes.c_void_p), ('n', ctypes.c_size_t)]
buffer = ctypes.create_string_buffer(4)
here, there = V(ctypes.addressof(buffer), 4), V(int(vm, 16), 4)
n = libc.process_vm_readv(int(os.environ['V']), ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
raise SystemExit(n != 4)""#,
    ),
    works(
        "tcp connect",
        r#"python3 -c "
import os, socket
socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 5)""#,
    ),
    works(
        "tcp bind",
        r#"python3 -c "
import socket
socket.socket().bind(('0.0.0.0', 0))""#,
    ),
    second_layer(
        "udp",
        r#"python3 -c "
import os, socket
socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', int(os.environ['UDP'])))""#,
    ),
    works(
        "an abstract socket",
        r#"python3 -c "
import os, socket
socket.socket(socket.AF_UNIX).connect('\0' + os.environ['ABSTRACT'])""#,
    ),
    root("a mount", "mkdir -p m && unshare -m mount -t tmpfs none m"),
    root("a bind mount in a user namespace", "mkdir -p m && unshare -Urm sh -c 'mount --bind $H/.ssh m && cat m/id'"),
    root("making mounts writable again", "unshare -m mount -o remount,bind,rw /"),
    root("the daemon's mount namespace", "nsenter -t $D -m cat $H/.ssh/id"),
    root("the daemon's network namespace", "nsenter -t $D -n true"),
    root("chroot", "chroot / true"),
    root(
        "the host's name",
        r#"python3 -c "
import socket
socket.sethostname(socket.gethostname())""#,
    ),
    root(
        "a raw socket",
        r#"python3 -c "
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)""#,
    ),
    root("priority above others", "nice -n -5 true 2>&1 | grep . && exit 1; [ $(nice -n -5 nice) = -5 ]"),
    unknown(
        "the daemon's terminal",
        r#"python3 -c "
import fcntl, os, termios
fcntl.ioctl(os.open('/dev/tty', os.O_RDWR), termios.TIOCSTI, b'x')""#,
    ),
    works("a new terminal", "exec 3<>/dev/ptmx"),
];
