//! `doctor`: what is wrong, why, and the command that helps.

use std::path::PathBuf;

use clap::Args;
use harness_proto::api::answer::{Diagnosis, DoctorAnswer};
use harness_proto::exit::Exit;

use crate::autostart;
use crate::client::Target;
use crate::context::Context;
use crate::failure::Failure;
use crate::render::clean;
use crate::repo;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Repository to look at [default: the current folder]
    #[arg(long, value_name = "R")]
    repo: Option<PathBuf>,
}

pub(crate) async fn run(context: &Context<'_>, args: &DoctorArgs) -> Result<Exit, Failure> {
    let target = Target::default().with("repo", repo::absolute(args.repo.as_deref())?);
    let (answer, mut exit) = match context.client.get::<DoctorAnswer>("doctor", &target).await {
        Ok(answer) => (answer, Exit::Success),
        Err(failure) if failure.is("DAEMON_DOWN") => (without_daemon(context), Exit::Unreachable),
        Err(failure) => return Err(failure),
    };
    if answer.findings.iter().any(|f| f.severity == "error") {
        exit = Exit::strongest([exit, Exit::Unexpected]);
    }
    let ids: Vec<&str> = answer.findings.iter().filter(|f| f.severity != "ok").map(|f| f.id.as_str()).collect();
    context.out.answer(&answer, &ids.join("\n"), || {
        let mut text = String::new();
        for finding in &answer.findings {
            text.push_str(&format!(
                "{} {}: {}\n",
                context.out.style.state(&finding.severity),
                finding.id,
                clean(&finding.what)
            ));
            for (name, line) in [("why: ", &finding.why), ("next:", &finding.next)] {
                if !line.is_empty() {
                    text.push_str(&format!("  {name} {}\n", clean(line)));
                }
            }
        }
        text
    })?;
    Ok(exit)
}

/// What can be said without the daemon.
fn without_daemon(context: &Context<'_>) -> DoctorAnswer {
    let finding = |id: &str, severity: &str, what: String, next: &str| Diagnosis {
        id: id.into(),
        severity: severity.into(),
        what,
        next: next.into(),
        ..Diagnosis::default()
    };
    let program = match autostart::program() {
        Ok(path) => finding("daemon_program", "ok", path.display().to_string(), ""),
        Err(problem) => finding("daemon_program", "error", problem.detail, &problem.next),
    };
    let socket = format!("nothing answers at {}", context.client.socket().display());
    let state = format!("state directory {}", context.state_dir.display());
    DoctorAnswer {
        schema: "harness.doctor/1".into(),
        findings: vec![
            finding("daemon_down", "error", socket, "harnessctl daemon start"),
            program,
            finding("state_dir", if context.state_dir.is_dir() { "ok" } else { "note" }, state, ""),
        ],
    }
}
