//! Every process of a run is stored before it is used, so that a crash leaves no unknown one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use harness_proto::ids::EffectId;

use super::context::RunContext;
use crate::clock;
use crate::process::Identity;

/// What agents call with each new process.
pub(super) type OnProcessBox = Box<dyn Fn(Identity) -> BoxFuture<'static, ()> + Send + Sync>;

/// Stores each process before it is used, so that a crash leaves no unknown one.
pub(super) fn processes(ctx: &Arc<RunContext>, effect: EffectId) -> OnProcessBox {
    let ctx = ctx.clone();
    Box::new(move |identity: Identity| -> BoxFuture<'static, ()> {
        let ctx = ctx.clone();
        Box::pin(async move {
            let Ok(value) = serde_json::to_value(&identity) else { return };
            if let Err(error) = ctx.store.add_process(Some(&ctx.run), &value, clock::now()).await {
                tracing::warn!(run = %ctx.run, effect = %effect, %error, "a process could not be recorded");
            }
        })
    })
}
