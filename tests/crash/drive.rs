//! What a user types, also when the daemon dies under it: every command may be repeated until its work is done.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use harness_tests::{BROKEN, Daemon, Failpoint, Finished, Snapshot, TestEnv};
use serde_json::Value;

use crate::scene::{Stage, program};

/// SIGABRT, how a daemon ends at a crash point.
const ABORT: i32 = 6;
const GOAL: &str = "a notes command-line tool: add, list, search, with tests";

/// A daemon that may die at any moment, and the one that follows it.
pub(crate) struct Keeper<'a> {
    env: &'a TestEnv,
    daemon: Option<Daemon<'a>>,
    /// How many died by abort.
    pub(crate) deaths: u32,
}

impl<'a> Keeper<'a> {
    /// Starts a daemon that aborts at `at`, if given.
    pub(crate) fn new(env: &'a TestEnv, at: Option<&Failpoint>) -> Self {
        let daemon = Some(match at {
            Some(at) => env.daemon_that_dies(at),
            None => env.daemon_unready(),
        });
        Self { env, daemon, deaths: 0 }
    }

    /// Sees to it that a daemon lives; says whether it had died.
    pub(crate) fn look(&mut self) -> bool {
        let daemon = self.daemon.as_mut().expect("a daemon until the end");
        let Some(status) = daemon.ended() else { return false };
        assert_eq!(status.signal(), Some(ABORT), "the daemon ended otherwise than by abort:\n{}", daemon.errors());
        self.deaths += 1;
        self.daemon = Some(self.env.daemon_unready());
        true
    }

    /// Asks the daemon to end; a daemon that aborts on the way down is one more death.
    pub(crate) fn finish(mut self) -> u32 {
        let mut daemon = self.daemon.take().expect("a daemon until the end");
        daemon.ask_to_end();
        let status = harness_tests::wait_for("the daemon ends", || daemon.ended());
        if status.signal() == Some(ABORT) {
            return self.deaths + 1;
        }
        assert_eq!(status.code(), Some(0), "{}", daemon.errors());
        self.deaths
    }

    /// Kills the daemon and starts the next one.
    pub(crate) fn kill(&mut self, pause: Duration) {
        self.daemon.take().expect("a daemon until the end").kill();
        // why: the pause decides what of the dead daemon still lives when the next one looks; any length is right
        std::thread::sleep(pause);
        self.daemon = Some(self.env.daemon_unready());
    }

    /// Kills the daemon, does something while none lives, and starts one that aborts at `at`.
    pub(crate) fn kill_then(&mut self, at: Option<&Failpoint>, between: impl FnOnce()) {
        self.daemon.take().expect("a daemon until the end").kill();
        between();
        self.daemon = Some(at.map_or_else(|| self.env.daemon_unready(), |at| self.env.daemon_that_dies(at)));
    }

    pub(crate) fn pid(&self) -> u32 {
        self.daemon.as_ref().expect("a daemon until the end").pid()
    }
}

impl Stage {
    fn place(&self) -> &str {
        self.repo.to_str().unwrap()
    }

    fn ask(&self, args: &[&str]) -> Finished {
        self.env.harnessctl(args)
    }

    fn create(&self) -> Finished {
        let agent = program(&self.env, &self.repo);
        let place = self.place();
        let mut args =
            vec!["create-launch", "--no-autostart", "--repo", place, "--original-goal", GOAL, "--goal", GOAL];
        args.extend(["--scope", ".", "--set", "fault.delay_s=0", "--json"]);
        if self.scene.tasks == 0 {
            args.extend(["--agent", "offline"]);
        } else {
            args.extend(["--codex-bin", agent.to_str().unwrap(), "--verify", "git --version"]);
        }
        args.extend(self.scene.flags);
        self.ask(&args)
    }

    /// The newest run of the repository that is not in `known`, if one is registered.
    fn newest(&self, known: &[String]) -> Option<Value> {
        let listed = self.ask(&["status", "--repo", self.place(), "--json"]);
        let run: Value = serde_json::from_str(&listed.stdout).ok()?;
        let id = run["run_id"].as_str()?;
        (!known.iter().any(|k| k == id)).then_some(run)
    }

    /// Registers and starts a run and waits for its end, whatever happens to the daemon. Returns the run.
    pub(crate) fn drive(&self, keeper: &mut Keeper<'_>, known: &[String]) -> String {
        let begun = Instant::now();
        let mut last = None;
        loop {
            let died = keeper.look();
            let waited = begun.elapsed();
            assert!(waited < BROKEN, "the run did not complete: {last:#?}\n{}", self.log());
            let Some(run) = self.newest(known) else {
                // Nothing registered yet, or no daemon answers: both are mended by asking.
                if !died {
                    last = Some(serde_json::json!(format!("{:?}", self.create())));
                }
                continue;
            };
            let id = run["run_id"].as_str().unwrap().to_owned();
            match run["lifecycle"].as_str() {
                Some("registered") => {
                    last = Some(serde_json::json!(format!("{:?}", self.ask(&["start", "--no-autostart", &id]))))
                }
                Some("completed") if run["landing"]["status"] != "pending" => return id,
                Some("queued" | "running" | "completed") => last = Some(run),
                _ => panic!("the run ended otherwise: {run:#}\n{}", self.log()),
            }
            // why: paces the look at a run that goes on by itself
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Registers and starts a run and does not wait for it.
    pub(crate) fn begin(&self, keeper: &mut Keeper<'_>) -> String {
        harness_tests::wait_for("the run is started", || {
            keeper.look();
            let Some(run) = self.newest(&[]) else {
                // Refused or not, the next look tells.
                self.create();
                return None;
            };
            let id = run["run_id"].as_str()?.to_owned();
            (self.ask(&["start", "--no-autostart", &id]).code == 0).then_some(id)
        })
    }

    /// Waits until a run that was begun has completed and landed.
    pub(crate) fn complete(&self, keeper: &mut Keeper<'_>, run: &str) {
        harness_tests::wait_for(&format!("{run} completes\n{}", self.ask(&["status", run]).stdout), || {
            keeper.look();
            let status: Value = serde_json::from_str(&self.ask(&["status", run, "--json"]).stdout).ok()?;
            let bad = ["failed", "stopped", "cancelled"].iter().any(|word| status["lifecycle"] == *word);
            assert!(!bad && status["hold"].is_null(), "{status:#}\n{}", self.log());
            (status["lifecycle"] == "completed" && status["landing"]["status"] != "pending").then_some(())
        });
    }

    /// Whether an implementer's turn began, by the scripted agent's own record.
    pub(crate) fn implementing(&self) -> bool {
        std::fs::read_to_string(self.env.path("ledger")).unwrap_or_default().contains("\"role\": \"implementer\"")
    }

    /// A lock as a git leaves it that was killed while it moved a name.
    pub(crate) fn plant_lock(&self) {
        for entry in std::fs::read_dir(self.env.state_dir().join("repos")).unwrap().flatten() {
            for name in ["one", "two"] {
                std::fs::write(entry.path().join("refs").join(format!("{name}.lock")), "").unwrap();
            }
        }
    }

    /// Makes a branch of kept work.
    pub(crate) fn recover(&self, keeper: &mut Keeper<'_>, run: &str) {
        harness_tests::wait_for("a branch of kept work", || {
            keeper.look();
            let done = self.ask(&["recover", "--branch", "kept", "--run", run, "--yes"]);
            (done.code == 0).then_some(())
        });
    }

    /// What the daemons said, its end.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.env.path("daemon.log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }

    /// How the repository looked when it was registered; of a folder without git, its first commit.
    pub(crate) fn before(&self) -> Snapshot {
        self.before.clone().unwrap_or_else(|| first_commit(&self.env, &self.repo))
    }
}

/// A folder that `--init-git` made a repository: its file stays untracked, its first commit is empty.
fn first_commit(env: &TestEnv, repo: &Path) -> Snapshot {
    let mut snapshot = Snapshot::of(env, repo);
    let root = env.git(repo, &["rev-list", "--max-parents=0", "HEAD"]).trim().to_owned();
    snapshot.refs.retain(|name, _| name == "HEAD");
    snapshot.refs.insert("refs/heads/main".into(), root);
    snapshot.files.retain(|name, _| name == "mine.txt");
    snapshot
}
