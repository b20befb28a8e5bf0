//! A stored run gives the same events again (P7): the inputs of real runs, through the engine, without any program.

use std::collections::BTreeMap;

use harness_core::policy::Policy;
use harness_core::supervisor::step;
use harness_proto::ids::{RunId, Seq};
use harness_proto::policy::PolicyValues;
use harnessd::store::Store;
use serde_json::Value;

use crate::bench::World;

#[test]
fn the_stored_inputs_of_a_run_give_the_same_events() {
    let world = World::new();
    let daemon = world.env.daemon();
    world.set(&[("TASKS", "2"), ("REVERT_FIRST", "1")]);
    world.faults("crash@verifier:T-001:a2:x1;two_commits@implementer;delay=1@implementer:T-002:a2");
    let run = world.start(&[]);
    world.begun("implementer", 2);
    daemon.kill();
    let daemon = world.env.daemon();
    world.completed(&run);
    assert_eq!(daemon.terminate(), 0);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(&world.env.state_dir()).await.unwrap();
        let run = RunId::parse(&run).unwrap();
        let loaded = store.load(&run).await.unwrap();
        let stored: BTreeMap<String, Value> = serde_json::from_value(loaded.policy.clone()).unwrap();
        let policy = Policy::from_values(&PolicyValues::from_stored(&stored).unwrap()).unwrap();
        let mut state = store.origin(&run).await.unwrap();
        let mut events = Vec::new();
        let inputs = store.inputs(&run, 0, 1000).await.unwrap();
        assert!(inputs.len() > 20, "{}", inputs.len());
        for input in inputs {
            events.extend(step(&mut state, &input.input, &policy).events);
            assert_eq!(state.head.seq, input.seq, "{:?}", input.input);
        }
        assert_eq!(events, store.events(&run, Seq(0), 1000).await.unwrap());
        assert_eq!(state, loaded.state);
    });
}
