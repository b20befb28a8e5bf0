//! A hundred kills at random moments, of the daemon, launchers, agents and git, while several runs work: all complete.
//!
//! `SEED=n` repeats the choices; moments depend on the machine. At least four of five kills must fall into a live effect, which the
//! daemon's own log of begun and ended effects proves.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness_tests::{Living, TestEnv, living};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::drive::Keeper;
use crate::scene::{self, Checkout, Scene, Stage};
use crate::truths;

const KILLS: usize = 100;
/// Runs at the same time.
const RUNS: usize = 3;

/// Kills cost turns and attempts; here only the kills are judged, so that no limit may be in the way.
const LOAD: Scene = Scene {
    name: "load",
    tasks: 3,
    delay: "0.4",
    flags: &["--set", "turn.lost_limit=100", "--set", "retry.max_attempts=100", "--set", "fault.retries=100"],
    ..scene::FULL
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    Daemon,
    Launcher,
    Agent,
    Git,
}

/// A small generator: choices must be repeatable, not good.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }

    fn victim(&mut self) -> Victim {
        [Victim::Daemon, Victim::Daemon, Victim::Launcher, Victim::Agent, Victim::Git][self.roll(5) as usize]
    }
}

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(|| u64::from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().subsec_nanos()) | 1)
}

fn is(victim: Victim, process: &Living, daemon: u32) -> bool {
    let command = process.command.as_str();
    match victim {
        Victim::Daemon => u32::try_from(process.pid) == Ok(daemon),
        Victim::Launcher => command.contains(" exec-stage1 "),
        Victim::Agent => command.contains("fake_codex_app_server.py"),
        Victim::Git => command.starts_with("git "),
    }
}

/// A process of this kind, looked for until one is there or the moment has passed.
fn find(env: &TestEnv, victim: Victim, daemon: u32, dice: &mut Dice) -> Option<Living> {
    for _ in 0..60 {
        let mut found = living(env.root().to_str().unwrap());
        found.retain(|process| is(victim, process, daemon));
        if !found.is_empty() {
            let index = dice.roll(found.len() as u64) as usize;
            return Some(found.swap_remove(index));
        }
        // why: short-lived programs come and go; nothing tells when one is there
        std::thread::sleep(Duration::from_millis(3));
    }
    None
}

/// Effects that this daemon began and has not ended: what its log says since it was `born`.
fn live_effects(env: &TestEnv, born: usize) -> usize {
    let log = fs::read(env.path("failpoints")).unwrap_or_default();
    let text = String::from_utf8_lossy(&log[born.min(log.len())..]).into_owned();
    let count = |name: &str| text.lines().filter(|line| *line == name).count();
    count("runtime.effect.before").saturating_sub(count("runtime.effect.after"))
}

/// The runs that work now and those that are over, in one environment.
struct World {
    stages: Vec<(Stage, String)>,
}

impl World {
    /// Registers runs until as many work as wanted.
    fn fill(&mut self, keeper: &mut Keeper<'_>, env: &Arc<TestEnv>) {
        let busy = self.stages.iter().filter(|(_, run)| env.store(run).status()["lifecycle"] != "completed").count();
        for _ in busy..RUNS {
            let number = self.stages.len();
            let checkout = [Checkout::Dirty, Checkout::Clean][number % 2];
            let stage = Scene { checkout, ..LOAD }.set_beside(env, &format!("repo-{number}"));
            let run = stage.begin(keeper);
            self.stages.push((stage, run));
        }
    }
}

#[test]
fn a_hundred_random_kills_lose_nothing_and_repeat_nothing() {
    let seed = seed();
    println!("SEED={seed}");
    let mut dice = Dice(seed);
    let env = Arc::new(TestEnv::new());
    let mut keeper = Keeper::new(&env, None);
    let mut world = World { stages: Vec::new() };
    let mut kills: Vec<(Victim, bool)> = Vec::new();
    let mut born = 0;
    while kills.len() < KILLS {
        world.fill(&mut keeper, &env);
        // why: the kill falls at a random instant of the work; no predicate is waited for
        std::thread::sleep(Duration::from_millis(200 + dice.roll(900)));
        let victim = dice.victim();
        let Some(process) = find(&env, victim, keeper.pid(), &mut dice) else { continue };
        let inside = live_effects(&env, born) > 0;
        if victim == Victim::Daemon {
            let pause = if dice.roll(3) == 0 { dice.roll(2000) } else { dice.roll(100) };
            keeper.kill(Duration::from_millis(pause));
            born = fs::metadata(env.path("failpoints")).map_or(0, |log| log.len() as usize);
        } else if kill(Pid::from_raw(process.pid), Signal::SIGKILL).is_err() {
            // It ended by itself in between.
            continue;
        }
        kills.push((victim, inside));
    }
    let inside = kills.iter().filter(|(_, inside)| *inside).count();
    let mut broken = Vec::new();
    for (stage, run) in &world.stages {
        stage.complete(&mut keeper, run);
    }
    for (stage, run) in &world.stages {
        broken.extend(truths::broken(stage, run).into_iter().map(|line| format!("{}: {line}", stage.repo.display())));
    }
    let log = world.stages[0].0.log();
    let counts: Vec<_> = [Victim::Daemon, Victim::Launcher, Victim::Agent, Victim::Git]
        .map(|v| (v, kills.iter().filter(|(other, ..)| *other == v).count()))
        .into();
    println!("{counts:?} in {} runs; {inside} of {KILLS} inside a live effect", world.stages.len());
    broken.extend(truths::nothing_lives(&env, keeper));
    assert!(broken.is_empty(), "SEED={seed}\n{broken:#?}\n{log}");
    assert!(inside * 100 >= KILLS * 80, "SEED={seed}: only {inside} of {KILLS} kills fell into a live effect");
}
