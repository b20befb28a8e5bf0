//! `version`: of client and daemon.

use clap::Args;
use harness_proto::api::PROTOCOL;
use harness_proto::api::answer::DaemonAnswer;
use harness_proto::exit::Exit;
use serde_json::json;

use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct VersionArgs {}

pub(crate) async fn run(context: &Context<'_>) -> Result<Exit, Failure> {
    let daemon = context.client.get::<DaemonAnswer>("daemon_status", &Target::default()).await.ok().map(|a| a.daemon);
    let own = env!("CARGO_PKG_VERSION");
    let answer = json!({
        "schema": "harness.version/1",
        "harnessctl": own,
        "protocol": PROTOCOL,
        "harnessd": daemon.as_ref().map(|d| d.version.clone()),
        "harnessd_protocol": daemon.as_ref().map(|d| d.protocol),
    });
    context.out.answer(&answer, own, || {
        let other =
            daemon.as_ref().map_or_else(|| "harnessd is not running".to_owned(), |d| format!("harnessd {}", d.version));
        format!("harnessctl {own} (protocol {PROTOCOL})\n{other}\n")
    })?;
    Ok(Exit::Success)
}
