//! Every named crash point, first and second time: the daemon aborts there, the next one goes on, every truth holds.
//!
//! `CRASH_ONLY=text` tries the points with that text in their name only, `CRASH_ONE='scene point:hit'` that one life alone.

use std::collections::BTreeMap;

use harness_tests::Failpoint;

use crate::drive::Keeper;
use crate::pool::each;
use crate::scene::{self, Scene};
use crate::truths;

/// Crash points that no run of these scenes reaches, and why.
const ELSEWHERE: &[(&str, &str)] = &[
    ("git.forged.object.before", "an agent must plant an object under a wrong name; git::tests::kills kills there"),
    ("git.forged.pack.before", "an agent must plant a pack; git::tests::kills kills there"),
    (
        "git.land.restore.after",
        "the user must replace a file between two system calls; git::tests::kills has that race",
    ),
    (
        "git.land.restore.before",
        "the user must replace a file between two system calls; git::tests::kills has that race",
    ),
    ("git.land.submodule.before", "the scripted agent makes no submodule; git::tests::kills lands one"),
    ("git.unpin.after", "pins stay as long as the mirror borrows objects: nothing removes them yet"),
    ("git.unpin.before", "pins stay as long as the mirror borrows objects: nothing removes them yet"),
    ("process.record.after_rename", "in the launcher, not in the daemon; the storm kills launchers"),
    ("process.record.before_rename", "in the launcher, not in the daemon; the storm kills launchers"),
    ("store.enqueue.after", "no verb puts a run into the queue by itself: a start does it inside its step"),
    ("store.enqueue.before", "no verb puts a run into the queue by itself: a start does it inside its step"),
    ("store.request.forget.after", "old answers are not forgotten yet"),
    ("store.request.forget.before", "old answers are not forgotten yet"),
];

/// Scenes from the cheapest: a point is tried in the first that reaches it often enough.
const SCENES: &[Scene] = &[
    scene::SMALL,
    scene::ELSEWHERE,
    scene::NO_GIT,
    scene::FULL,
    scene::MOVED,
    scene::REBORN,
    scene::AGAIN,
    scene::OFFLINE,
];

/// One life: from registration to completion with at most one death. Returns how often each point was hit.
fn live(scene: Scene, at: Option<&Failpoint>) -> Result<BTreeMap<String, u32>, String> {
    let stage = scene.set();
    let mut keeper = Keeper::new(&stage.env, if scene.reborn { None } else { at });
    if scene.reborn {
        stage.begin(&mut keeper);
        harness_tests::wait_for("an implementer turn", || stage.implementing().then_some(()));
        keeper.kill_then(at, || stage.plant_lock());
    }
    let run = stage.drive(&mut keeper, &[]);
    let last = if scene.again { stage.drive(&mut keeper, &[run]) } else { run };
    if scene.again {
        stage.recover(&mut keeper, &last);
    }
    // A point on the way down, or none at all: the daemon is asked to end.
    if at.is_some() && keeper.deaths == 0 {
        let deaths = keeper.finish();
        if deaths == 0 {
            return Err("the point was never hit".into());
        }
        keeper = Keeper::new(&stage.env, None);
        stage.drive(&mut keeper, &[]);
    }
    let mut broken = truths::broken(&stage, &last);
    broken.extend(truths::nothing_lives(&stage.env, keeper));
    if !broken.is_empty() {
        return Err(format!("{broken:#?}\n{}", stage.log()));
    }
    let mut hits = BTreeMap::new();
    for line in std::fs::read_to_string(stage.env.path("failpoints")).unwrap_or_default().lines() {
        *hits.entry(line.to_owned()).or_insert(0) += 1;
    }
    Ok(hits)
}

/// What each scene hits when nobody dies.
fn reached() -> Vec<(Scene, BTreeMap<String, u32>)> {
    let lives = each(SCENES, |scene| live(*scene, None));
    let mut hits = Vec::new();
    let mut failed = Vec::new();
    for (scene, life) in SCENES.iter().zip(lives) {
        match life.and_then(|l| l) {
            Ok(found) => hits.push((*scene, found)),
            Err(error) => failed.push(format!("{}: {error}", scene.name)),
        }
    }
    assert!(failed.is_empty(), "nobody was killed, and:\n{}", failed.join("\n\n"));
    hits
}

#[test]
fn a_daemon_that_aborts_at_any_crash_point_leaves_a_run_that_completes() {
    if let Ok(one) = std::env::var("CRASH_ONE") {
        // `scene point:hit`, as a failure names it.
        let (scene, at) = one.split_once(' ').expect("a scene and a point");
        let (name, hit) = at.split_once(':').expect("a point and a hit");
        let scene = SCENES.iter().chain([&scene::CLEAN]).find(|s| s.name == scene).expect("a scene");
        live(*scene, Some(&Failpoint { name: name.into(), hit: hit.parse().unwrap() })).unwrap();
        return;
    }
    let reached = reached();
    let mut jobs: Vec<(Scene, Failpoint)> = Vec::new();
    let mut never = Vec::new();
    for name in Failpoint::registry() {
        if ELSEWHERE.iter().any(|(other, _)| other == name) {
            continue;
        }
        for hit in 1..=2 {
            let scene = reached.iter().find(|(_, hits)| hits.get(*name).is_some_and(|n| *n >= hit));
            match scene {
                Some((scene, _)) => jobs.push((*scene, Failpoint { name: (*name).to_owned(), hit })),
                None if hit == 1 => never.push(*name),
                None => {}
            }
        }
    }
    // The same landing where nothing is in the way: every third point of it.
    let landing =
        jobs.iter().filter(|(scene, at)| scene.name == "small" && at.name.starts_with("git.land.") && at.hit == 1);
    let clean: Vec<_> = landing.step_by(3).map(|(_, at)| (scene::CLEAN, at.clone())).collect();
    jobs.extend(clean);
    if let Ok(only) = std::env::var("CRASH_ONLY") {
        jobs.retain(|(_, at)| format!("{}:{}", at.name, at.hit).contains(&only));
    }
    println!("{} points in {} lives; never: {never:?}", Failpoint::registry().len(), jobs.len());
    let lives = each(&jobs, |(scene, at)| {
        let begun = std::time::Instant::now();
        let life = std::panic::catch_unwind(|| live(*scene, Some(at)));
        let word = if matches!(life, Ok(Ok(_))) { "ok" } else { "BROKEN" };
        println!("{word} {} {}:{} after {} ms", scene.name, at.name, at.hit, begun.elapsed().as_millis());
        life.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    let mut failed = Vec::new();
    for ((scene, at), life) in jobs.iter().zip(lives) {
        match life.and_then(|l| l) {
            Ok(hits) if hits.contains_key(&at.name) => {}
            Ok(_) => failed.push(format!("{} {}:{}: not in the log", scene.name, at.name, at.hit)),
            Err(error) => failed.push(format!("{} {}:{}: {error}", scene.name, at.name, at.hit)),
        }
    }
    assert!(failed.is_empty(), "{} of {} lives:\n{}", failed.len(), jobs.len(), failed.join("\n\n"));
    assert!(never.is_empty(), "no scene reaches {never:?}");
}

#[test]
fn points_that_are_left_out_are_named_rightly() {
    for (name, why) in ELSEWHERE {
        assert!(Failpoint::registry().contains(name), "{name}");
        assert!(why.len() > 20, "{name}: {why}");
    }
}
