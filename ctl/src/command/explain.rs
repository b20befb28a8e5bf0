//! `explain CODE`: what a code means; needs no daemon.

use clap::Args;
use harness_proto::blocker::{BLOCKERS, blocker};
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
    match &args.code {
        None => list(out)?,
        Some(code) => one(code, out)?,
    }
    Ok(Exit::Success)
}

fn list(out: &Out) -> Result<(), Failure> {
    let errors = CODES.iter().map(|c| json!({"code": c.name, "meaning": c.meaning, "exit": c.exit.code()}));
    let blockers = BLOCKERS.iter().map(|b| json!({"code": b.code, "meaning": b.meaning, "next": b.next}));
    let answer = json!({"schema": "harness.explain/1", "codes": errors.collect::<Vec<_>>(), "blockers": blockers.collect::<Vec<_>>()});
    let names: Vec<&str> = CODES.iter().map(|c| c.name).chain(BLOCKERS.iter().map(|b| b.code)).collect();
    out.answer(&answer, &names.join("\n"), || {
        let mut text = "Codes of errors:\n".to_owned();
        text.extend(CODES.iter().map(|c| format!("  {}: {}\n", c.name, c.meaning)));
        text.push_str("What keeps an attempt from being integrated:\n");
        text.extend(BLOCKERS.iter().map(|b| format!("  {}: {}\n", b.code, b.meaning)));
        text
    })
}

/// One word can be both: a refusal of create-launch and a blocker of the gate.
fn one(code: &str, out: &Out) -> Result<(), Failure> {
    let wanted = code.to_ascii_uppercase().replace('-', "_");
    let error = CODES.iter().find(|c| c.name == wanted);
    let blocker = blocker(&wanted);
    if error.is_none() && blocker.is_none() {
        return Err(Problem::new("USAGE", format!("`{code}` is no code"))
            .why("codes are the words in error[CODE] and of blockers")
            .next("harnessctl explain")
            .into());
    }
    let mut answer = json!({"schema": "harness.explain/1", "code": wanted});
    let mut text = String::new();
    if let Some(found) = blocker {
        answer["meaning"] = found.meaning.into();
        answer["next"] = found.next.into();
        text = format!("{}: {}\nnext: {}\n", found.code, found.meaning, found.next);
    }
    if let Some(found) = error {
        answer["meaning"] = found.meaning.into();
        answer["exit"] = found.exit.code().into();
        text.push_str(&format!("{}: {} (exit code {})\n", found.name, found.meaning, found.exit.code()));
    }
    out.answer(&answer, &wanted, || text)
}
