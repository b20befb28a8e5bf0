//! Seeded simulation of the engine: thousands of short runs with every fault we know, in memory, without a clock.
//!
//! `SEED=n` replays one run and prints its history; a failing run prints its seed. Method: a world (`world.rs`) answers effects
//! by a random number generator, a store (`rows.rs`) keeps the rows that steps name, an oracle (`oracle.rs`) looks at the world's
//! truth after every step.

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
    if let Ok(text) = std::env::var("SEED") {
        eprintln!("{:?}", run_seeds(std::iter::once(text.parse().expect("SEED is a number"))));
        return;
    }
    // Seeds know nothing of each other: each core takes its share.
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let ends = std::thread::scope(|scope| {
        let shares: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || run_seeds((1..=10_000).skip(worker).step_by(workers))))
            .collect();
        shares.into_iter().fold(Ends::new(), |mut all, share| {
            for (end, n) in share.join().expect("no seed fails") {
                *all.entry(end).or_default() += n;
            }
            all
        })
    });
    eprintln!("ends: {ends:?}");
    // The faults must be real: a simulation in which everything completes proves nothing, and one in which nothing does neither.
    assert!(ends.get("completed").is_some_and(|n| *n > 3_000), "{ends:?}");
    assert!(ends.len() >= 3, "{ends:?}");
}

type Ends = std::collections::BTreeMap<String, u32>;

/// How the runs of some seeds ended; a broken promise prints its seed and history.
fn run_seeds(seeds: impl Iterator<Item = u64>) -> Ends {
    let mut ends = Ends::new();
    for seed in seeds {
        match simulate(seed, &Options::for_seed(seed)) {
            Ok(end) => *ends.entry(end).or_default() += 1,
            Err(failure) => {
                eprintln!("{}", failure.history);
                panic!("SEED={seed}: {}", failure.why);
            }
        }
    }
    ends
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
