//! A small machine to break out of: a home with secrets, a state directory, a mirror with two trees, a user's checkout.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use harnessd::process::{Network, Spec, StandardWall, Wall, standard_wall};

use crate::support::Bench;

/// Builds everything below `$W`; `set -e`, so that a broken world fails its test.
const BUILD: &str = r#"
set -e
for secret in .ssh/id .aws/credentials .gnupg/key .config/gh/hosts.yml .codex/auth.json .claude/creds \
    .cargo/credentials.toml .cargo/bin/tool notes.txt .bashrc bin/tool; do
    mkdir -p "$(dirname "$W/home/$secret")"; echo secret > "$W/home/$secret"
done
cp /bin/true "$W/home/bin/tool"; cp /bin/true "$W/home/.cargo/bin/tool"; chmod 755 "$W/home/bin/tool" "$W/home/.cargo/bin/tool"
mkdir -p "$W/state/trees" "$W/state/tmp" "$W/state/cache" "$W/victim"
echo rows > "$W/state/harness.db"
git init -q -b main "$W/user"
cd "$W/user"; echo one > file; git add file; git commit -q -m one
git clone -q --bare --shared "$W/user" "$W/state/m.git"
cd "$W/state/m.git"; git config gc.auto 0; git config user.name n; git config user.email e@example.invalid
mkdir -p hooks info
git worktree add -q --detach "$W/state/trees/a" main
git worktree add -q --detach "$W/state/trees/b" main
"#;

/// The world, with listeners that stand for the daemon's and a process that stands for anybody's.
pub(crate) struct World {
    pub(crate) bench: Bench,
    victim: std::process::Child,
    tcp: TcpListener,
    udp: UdpSocket,
    name: String,
    _abstract: UnixListener,
}

impl World {
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        let built = sh(BUILD)
            .env("W", bench.path("w"))
            .envs(git_env())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(built.success());
        let name = format!("hp-{}", bench.run);
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        Self {
            victim: sh("exec sleep 600").spawn().unwrap(),
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            _abstract: UnixListener::bind_addr(&address).unwrap(),
            name,
            bench,
        }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.bench.path("w").join(name)
    }

    /// The wall of an implementer in tree `a`.
    pub(crate) fn wall(&self, network: Network) -> Wall {
        let path_env = std::env::var_os("PATH").unwrap();
        let own = PathBuf::from(std::env::var_os("HOME").unwrap());
        let mut wall = standard_wall(&StandardWall {
            tree: self.at("state/trees/a"),
            git_dir: Some(self.at("state/m.git/worktrees/a")),
            mirror: Some(self.at("state/m.git")),
            objects_writable: true,
            alternates: vec![self.at("user/.git/objects")],
            tmp: self.at("state/tmp"),
            caches: vec![self.at("state/cache")],
            read_only: Vec::new(),
            home: own,
            path_env,
            network,
        });
        // The toolchains of the fake home, beside those of the real one.
        let fake = standard_wall(&StandardWall {
            tree: self.at("state/trees/a"),
            git_dir: None,
            mirror: None,
            objects_writable: false,
            alternates: Vec::new(),
            tmp: self.at("state/tmp"),
            caches: Vec::new(),
            read_only: Vec::new(),
            home: self.at("home"),
            path_env: self.at("home/.cargo/bin").into_os_string(),
            network,
        });
        if let (Wall::Confined(wall), Wall::Confined(fake)) = (&mut wall, fake) {
            wall.read_only.extend(fake.read_only);
        }
        wall
    }

    /// A shell script in tree `a` that knows where everything is.
    pub(crate) fn spec(&self, script: &str, wall: Wall) -> Spec {
        let mut spec = self.bench.sh(script);
        spec.cwd = self.at("state/trees/a");
        spec.wall = wall;
        spec.env.extend(git_env());
        let own_home = std::env::var_os("HOME").unwrap();
        for (key, value) in [
            ("H", self.at("home")),
            ("S", self.at("state")),
            ("T", self.at("state/trees/a")),
            ("B", self.at("state/trees/b")),
            ("M", self.at("state/m.git")),
            ("U", self.at("user")),
            ("TMPDIR", self.at("state/tmp")),
            ("HOME", self.at("state/tmp")),
            ("CARGO_HOME", PathBuf::from(&own_home).join(".cargo")),
            ("RUSTUP_HOME", PathBuf::from(&own_home).join(".rustup")),
            ("PYENV_ROOT", PathBuf::from(&own_home).join(".pyenv")),
        ] {
            spec.env.push((key.into(), value.into()));
        }
        for (key, value) in [
            ("D", std::process::id().to_string()),
            ("V", self.victim.id().to_string()),
            ("TCP", self.tcp.local_addr().unwrap().port().to_string()),
            ("UDP", self.udp.local_addr().unwrap().port().to_string()),
            ("ABSTRACT", self.name.clone()),
        ] {
            spec.env.push((key.into(), value.into()));
        }
        spec
    }

    /// Everything outside the wall, to the byte: paths, kinds, modes, owners, times, contents.
    pub(crate) fn picture(&self) -> String {
        let script = r#"cd "$W" && find home user state -path state/trees/a -prune -o -path state/tmp -prune \
            -o -path state/cache -prune -o -path state/m.git/objects -prune -o -path state/m.git/worktrees/a -prune \
            -o -printf '%p %y %m %U %T@ %l ' \( -type f -exec sha256sum {} \; -o -printf '\n' \) | LC_ALL=C sort"#;
        let output = sh(script)
            .env("W", self.bench.path("w"))
            .stdout(Stdio::piped())
            .output()
            .unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.victim.kill().unwrap();
        self.victim.wait().unwrap();
    }
}

fn git_env() -> Vec<(std::ffi::OsString, std::ffi::OsString)> {
    [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "n"),
        ("GIT_AUTHOR_EMAIL", "e@example.invalid"),
        ("GIT_COMMITTER_NAME", "n"),
        ("GIT_COMMITTER_EMAIL", "e@example.invalid"),
    ]
    .map(|(key, value)| (key.into(), value.into()))
    .to_vec()
}

#[expect(clippy::disallowed_methods, reason = "the test's own shell")]
fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command
}
