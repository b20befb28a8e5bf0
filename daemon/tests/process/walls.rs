//! The wall holds (T10: all of the escapes denied) and does not stand in the way (all of the work allowed).

use harnessd::process::{Cause, Marker, Network, SpawnError, Wall, has_launcher_ancestor, probe};

use crate::escapes::{Escape, OTHERS, Open, READS, WRITES};
use crate::support::{refused, run, start};
use crate::world::World;

async fn works(world: &World, script: &str, wall: Wall) -> bool {
    let exit = run(world.spec(script, wall)).await;
    exit.code == Some(0)
}

async fn all_denied(world: &World, escapes: &[Escape]) {
    let namespaces = probe().namespaces;
    let before = world.picture();
    let mut wrong = Vec::new();
    for escape in escapes {
        if escape.open == Open::WorksWithoutNamespaces && !namespaces {
            continue;
        }
        if works(world, escape.script, world.wall(Network::Denied)).await {
            wrong.push(format!("got out: {}", escape.name));
        }
    }
    assert!(world.picture() == before, "something outside changed: {wrong:?}");
    let root = nix::unistd::geteuid().is_root();
    for escape in escapes {
        let expected = match escape.open {
            Open::Works | Open::WorksWithoutNamespaces => true,
            Open::WorksForRoot => root,
            Open::Unknown => false,
        };
        if expected && !works(world, escape.script, Wall::Open).await {
            let why = world.bench.text("err");
            wrong.push(format!("proves nothing: {}: {}", escape.name, why.trim()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn nothing_outside_is_read() {
    all_denied(&World::new(), READS).await;
}

#[tokio::test]
async fn nothing_outside_is_changed() {
    all_denied(&World::new(), WRITES).await;
}

#[tokio::test]
async fn no_process_network_or_machine_is_touched() {
    all_denied(&World::new(), OTHERS).await;
}

#[test]
fn there_are_enough_escapes() {
    assert!(READS.len() + WRITES.len() + OTHERS.len() >= 40);
}

#[test]
fn this_kernel_can_confine() {
    let _bench = crate::support::Bench::new();
    let support = probe();
    assert!(support.filesystem && support.network && support.scopes, "{support:?}");
}

/// A system that forbids namespaces, played by a user namespace in which no other can be made.
///
/// Where even that is forbidden, the other tests have just run without namespaces themselves.
#[tokio::test]
async fn without_namespaces_landlock_stands_alone() {
    let bench = crate::support::Bench::new();
    let script = "unshare -Ur true || exit 0
exec unshare -Ur sh -c 'cd /proc/sys/user && for kind in user mnt net; do echo 0 > max_${kind}_namespaces; done
    cd / && exec \"$TEST\" --exact walls::nothing_outside_is_read walls::the_second_layer_is_asked_for'";
    let mut spec = bench.sh(script);
    let test = std::env::current_exe().unwrap();
    spec.env = std::env::vars_os().collect();
    spec.env.push(("TEST".into(), test.into_os_string()));
    let exit = run(spec).await;
    assert_eq!(exit.code, Some(0), "{}", bench.text("out"));
}

#[tokio::test]
async fn the_second_layer_is_asked_for() {
    let world = World::new();
    let spec = world.spec("exit 0", world.wall(Network::Loopback));
    if probe().namespaces {
        assert_eq!(run(spec).await.code, Some(0));
    } else {
        let refused = refused(spec).await;
        assert!(matches!(refused, SpawnError::WallUnavailable { .. }), "{refused}");
    }
}

/// Ordinary work: each must succeed inside the wall.
const WORK: &[(&str, &str)] = &[
    ("write", "echo x > new && mkdir -p d/e && mv new d/e/ && rm -r d"),
    ("temporary files", "f=$(mktemp) && echo x > $f && rm $f && test $(dirname $f) = $TMPDIR"),
    ("cache", "echo x > $S/cache/x"),
    ("devices", "echo x > /dev/null && head -c 10 /dev/urandom | wc -c | grep -q 10"),
    (
        "modes, links, fifos inside",
        "echo x > f && chmod 600 f && touch -d 2001-01-01 f && ln f g && ln -s f h && mkfifo p && rm f g h p",
    ),
    ("a script of the tree", "printf '#!/bin/sh\nexit 0\n' > run && chmod +x run && ./run && rm run"),
    ("signals to children", "sleep 60 & kill $! && ! wait $!"),
    ("git status", "git status --porcelain && git log -1 && git diff"),
    (
        "git commit",
        "echo two > file && git add file && git commit -qm two && test $(git rev-list --count HEAD) = 2 && git fsck --no-dangling",
    ),
    (
        "a commit of many files",
        "for i in $(seq 300); do echo $i > f$i; done; git add . && git commit -qm many && git status --porcelain | wc -l | grep -qx 0",
    ),
    (
        "python",
        "python3 -c 'import tempfile, json, subprocess; tempfile.TemporaryFile(); subprocess.run([\"true\"], check=True)'",
    ),
    (
        "python tests",
        "mkdir -p t && printf 'import unittest\nclass T(unittest.TestCase):\n  def test(self): pass\n' > t/test_x.py && python3 -m unittest discover t",
    ),
    (
        "sockets inside",
        "python3 -c 'import socket; a, b = socket.socketpair(); socket.socket(socket.AF_UNIX).bind(\"s\")' && rm s",
    ),
    ("own proc", "cat /proc/self/status /proc/cpuinfo /proc/meminfo > /dev/null && nproc"),
    ("node", "command -v node > /dev/null || exit 0; node -e 'require(\"fs\").writeFileSync(\"n.txt\", \"x\")'"),
    ("rust", "command -v rustc > /dev/null || exit 0; echo 'fn main() {}' > m.rs && rustc m.rs -o m && ./m"),
    (
        "cargo",
        "command -v cargo > /dev/null || exit 0; mkdir -p c/src && printf '[package]\nname=\"c\"\nedition=\"2021\"\n[workspace]\n' > c/Cargo.toml && echo 'fn main() {}' > c/src/main.rs && cd c && cargo run -q --offline",
    ),
    ("no way back to root's powers", "grep -qE 'CapEff:.0{13}[0-4]' /proc/self/status"),
];

fn networks() -> &'static [Network] {
    if probe().namespaces {
        &[Network::Denied, Network::Loopback, Network::Allowed]
    } else {
        &[Network::Denied, Network::Allowed]
    }
}

#[tokio::test]
async fn ordinary_work_is_allowed() {
    let world = World::new();
    let mut wrong = Vec::new();
    for (name, script) in WORK {
        for network in networks() {
            if !works(&world, script, world.wall(*network)).await {
                let why = world.bench.text("err");
                wrong.push(format!("{name} {network:?}: {}", why.trim()));
            }
            works(&world, "git reset -q --hard main && git clean -qfdx", world.wall(*network)).await;
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn an_allowed_network_connects() {
    let world = World::new();
    let script = "python3 -c \"
import os, socket
socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 5)\"";
    assert!(works(&world, script, world.wall(Network::Allowed)).await);
}

#[tokio::test]
async fn a_loopback_of_its_own_reaches_itself_and_nobody_else() {
    let world = World::new();
    if !probe().namespaces {
        // `the_second_layer_is_asked_for` says what happens then.
        return;
    }
    let itself = "python3 -c \"
import socket
server = socket.create_server(('127.0.0.1', 0))
socket.create_connection(server.getsockname(), 5)\"";
    let other = "python3 -c \"
import os, socket
socket.create_connection(('127.0.0.1', int(os.environ['TCP'])), 5)\"";
    assert!(works(&world, itself, world.wall(Network::Loopback)).await);
    assert!(!works(&world, other, world.wall(Network::Loopback)).await);
    assert!(works(&world, other, Wall::Open).await);
    assert!(!works(&world, itself, world.wall(Network::Denied)).await);
}

#[tokio::test]
async fn a_walled_tree_is_killed_like_any_other() {
    let world = World::new();
    let script = "setsid sleep 600 & (trap '' TERM; sleep 600) & sleep 600";
    let mut spec = world.spec(script, world.wall(Network::Denied));
    spec.limits.max_wall = Some(std::time::Duration::from_millis(300));
    let exit = run(spec).await;
    assert_eq!(exit.cause, Cause::MaxWall);
    world.bench.nothing_lives();
}

#[tokio::test]
async fn a_program_outside_is_not_executable_and_one_of_a_toolchain_is() {
    let world = World::new();
    let mut spec = world.spec("", world.wall(Network::Denied));
    spec.argv = vec![world.at("home/bin/tool").into_os_string()];
    let denied = refused(spec.clone()).await;
    assert!(matches!(denied, SpawnError::NotExecutable { .. }), "{denied}");
    spec.marker = Marker::new(&world.bench.run, "T1", 1, "implementer");
    spec.argv = vec![world.at("home/.cargo/bin/tool").into_os_string()];
    assert_eq!(run(spec).await.code, Some(0));
}

/// Landlock does not mediate `connect` on a path; the daemon's socket must know such a peer by its ancestors.
#[tokio::test]
async fn a_walled_peer_of_a_socket_is_recognised() {
    let world = World::new();
    let path = world.bench.path("daemon.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let script = format!(
        "python3 -c \"
import os, socket, time
if os.fork(): time.sleep(600)
os.setsid()
if os.fork(): os._exit(0)
s = socket.socket(socket.AF_UNIX)
s.connect('{}')
time.sleep(600)\"",
        path.display()
    );
    let mut child = start(world.spec(&script, world.wall(Network::Denied))).await;
    let (stream, _) = listener.accept().await.unwrap();
    let peer = stream.peer_cred().unwrap().pid().unwrap();
    assert!(has_launcher_ancestor(u32::try_from(peer).unwrap()));
    child.kill().await.unwrap();

    let _ours = tokio::net::UnixStream::connect(&path).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let peer = stream.peer_cred().unwrap().pid().unwrap();
    assert!(!has_launcher_ancestor(u32::try_from(peer).unwrap()));
}
