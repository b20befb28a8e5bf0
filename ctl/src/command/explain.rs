//! `explain CODE`: what a code means; needs no daemon.

use clap::Args;
use harness_proto::error::{CODES, Problem};
use harness_proto::exit::Exit;
use serde_json::json;

use crate::failure::Failure;
use crate::render::Out;

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExplainArgs {
    /// Code of an error or of a blocker; without one, every code
    code: Option<String>,
}

pub(crate) fn run(args: &ExplainArgs, out: &Out) -> Result<Exit, Failure> {
    let Some(code) = &args.code else {
        let all: Vec<_> =
            CODES.iter().map(|c| json!({"code": c.name, "meaning": c.meaning, "exit": c.exit.code()})).collect();
        let answer = json!({"schema": "harness.explain/1", "codes": all});
        let names: Vec<&str> = CODES.iter().map(|c| c.name).collect();
        out.answer(&answer, &names.join("\n"), || {
            CODES.iter().map(|c| format!("{}: {}\n", c.name, c.meaning)).collect()
        })?;
        return Ok(Exit::Success);
    };
    let wanted = code.to_ascii_uppercase().replace('-', "_");
    let Some(found) = CODES.iter().find(|c| c.name == wanted) else {
        return Err(Problem::new("USAGE", format!("`{code}` is no code"))
            .why("codes are the words in error[CODE] and of blockers")
            .next("harnessctl explain")
            .into());
    };
    let answer =
        json!({"schema": "harness.explain/1", "code": found.name, "meaning": found.meaning, "exit": found.exit.code()});
    out.answer(&answer, found.name, || {
        format!("{}: {} (exit code {})\n", found.name, found.meaning, found.exit.code())
    })?;
    Ok(Exit::Success)
}
