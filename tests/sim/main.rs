//! Seeded simulation of the engine: thousands of short runs with every fault we know, in memory, without a clock.
//!
//! `SEED=n` replays one run and prints its history; a failing run prints its seed. Method: a world (`world.rs`) answers effects
//! by a random number generator, a store (`rows.rs`) keeps the rows that steps name, an oracle (`oracle.rs`) looks at the world's
//! truth after every step.

#![expect(unreachable_pub, reason = "a test program has nobody outside to reach it")]
#![expect(clippy::print_stderr, reason = "a failing seed must be seen")]

mod oracle;
mod rng;
mod rows;
mod run;
mod world;

use run::{Options, simulate};

/// 10,000 short runs (style 3.4); faults on, then off, then every run must end.
#[test]
fn ten_thousand_runs_keep_every_promise() {
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(text) => vec![text.parse().expect("SEED is a number")],
        Err(_) => (1..=10_000).collect(),
    };
    let mut ends = std::collections::BTreeMap::new();
    for seed in seeds {
        let result = simulate(seed, &Options::for_seed(seed));
        match result {
            Ok(end) => *ends.entry(end).or_insert(0u32) += 1,
            Err(failure) => {
                eprintln!("{}", failure.history);
                panic!("SEED={seed}: {}", failure.why);
            }
        }
    }
    eprintln!("ends: {ends:?}");
    // The faults must be real: a simulation in which everything completes proves nothing, and one in which nothing does neither.
    if std::env::var("SEED").is_err() {
        assert!(ends.get("completed").is_some_and(|n| *n > 3_000), "{ends:?}");
        assert!(ends.len() >= 3, "{ends:?}");
    }
}

/// Without faults and with a fair agent every run completes, with every task done.
#[test]
fn fair_runs_complete() {
    for seed in 1..=500 {
        let options = Options { faults: 0, ..Options::for_seed(seed) };
        let end =
            simulate(seed, &options).map_err(|f| format!("SEED={seed}: {}\n{}", f.why, f.history)).expect("a fair run");
        assert_eq!(end, "completed", "SEED={seed}");
    }
}
