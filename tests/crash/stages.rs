//! `kill -9` of the daemon in each stage of an attempt: the run goes on by itself, and every truth holds.

use std::fs;
use std::time::Duration;

use harness_tests::{TestEnv, living, wait_for};

use crate::drive::Keeper;
use crate::pool::each;
use crate::scene::{self, Scene};
use crate::truths;

/// How a stage is recognised from outside.
#[derive(Debug, Clone, Copy)]
enum Sign {
    /// A turn of this role began and has not ended: the scripted agent's own record.
    Turn(&'static str),
    /// A program with these words in its command line, while the planner's turn is over.
    Program(&'static str),
    /// The daemon passed this crash point.
    Point(&'static str),
}

const STAGES: &[(&str, Sign)] = &[
    ("planner turn", Sign::Turn("planner")),
    ("setup", Sign::Program("sleep 0.71")),
    ("implementer turn", Sign::Turn("implementer")),
    ("evidence", Sign::Program("sleep 0.72")),
    ("verifier turn", Sign::Turn("verifier")),
    ("candidate", Sign::Point("git.candidate.commit.before")),
    ("advance", Sign::Point("git.advance.before")),
    ("landing", Sign::Point("git.land.start.before")),
];

const SLOW: Scene =
    Scene { name: "slow", delay: "0.7", flags: &["--setup", "sleep 0.71", "--verify", "sleep 0.72"], ..scene::SMALL };

fn ledger(env: &TestEnv, role: &str, effect: &str) -> usize {
    let text = fs::read_to_string(env.path("ledger")).unwrap_or_default();
    let role = format!("\"role\": \"{role}\"");
    let effect = format!("\"effect\": \"{effect}\"");
    text.lines().filter(|line| line.contains(&role) && line.contains(&effect)).count()
}

fn seen(env: &TestEnv, sign: Sign) -> bool {
    match sign {
        Sign::Turn(role) => ledger(env, role, "turn_begun") > ledger(env, role, "turn_ended"),
        Sign::Program(words) => {
            ledger(env, "planner", "turn_ended") > 0
                && living(env.root().to_str().unwrap()).iter().any(|p| p.command.starts_with(words))
        }
        Sign::Point(name) => {
            fs::read_to_string(env.path("failpoints")).unwrap_or_default().lines().any(|line| line == name)
        }
    }
}

fn killed_in(sign: Sign) -> Vec<String> {
    let stage = SLOW.set();
    let mut keeper = Keeper::new(&stage.env, None);
    let env = &stage.env;
    stage.begin(&mut keeper);
    wait_for(&format!("{sign:?}"), || seen(env, sign).then_some(()));
    keeper.kill(Duration::ZERO);
    let run = stage.drive(&mut keeper, &[]);
    let mut broken = truths::broken(&stage, &run);
    broken.extend(truths::nothing_lives(&stage.env, keeper));
    if !broken.is_empty() {
        broken.push(stage.log());
    }
    broken
}

#[test]
fn a_daemon_killed_in_any_stage_of_an_attempt_goes_on_by_itself() {
    let lives = each(STAGES, |(_, sign)| killed_in(*sign));
    let mut failed = Vec::new();
    for ((name, _), life) in STAGES.iter().zip(lives) {
        match life {
            Ok(broken) if broken.is_empty() => {}
            other => failed.push(format!("{name}: {other:#?}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
