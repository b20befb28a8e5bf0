//! `explain CODE`: what a code means and what to do; needs no daemon (DESIGN 8, corrections 18).

use clap::Args;
use harness_proto::blocker::BLOCKERS;
use harness_proto::error::{CODES, Problem};
use harness_proto::exit::Exit;
use harness_proto::explain::{Explanation, all, explain};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::render::{Out, clean, closest, columns};

/// See the module.
#[derive(Debug, Clone, Args)]
pub(crate) struct ExplainArgs {
    /// Code of an error, a blocker, a hold or a landing; without one, every code
    code: Option<String>,
}

pub(crate) fn run(args: &ExplainArgs, out: &Out) -> Result<Exit, Failure> {
    let Some(code) = &args.code else {
        let names: Vec<&str> = all().map(|row| row.code).collect();
        let answer = json!({"schema": "harness.explain/1", "codes": all().map(object).collect::<Vec<_>>(),
            "blockers": BLOCKERS.iter().filter_map(|word| explain(word.code)).map(object).collect::<Vec<_>>()});
        out.answer(&answer, &names.join("\n"), || {
            let rows: Vec<Vec<String>> = all().map(|row| vec![row.code.to_owned(), row.title.to_owned()]).collect();
            columns(&rows).join("\n")
        })?;
        return Ok(Exit::Success);
    };
    // People write `-` for `_`; no code has a `-`.
    let found = explain(code).or_else(|| explain(&code.replace('-', "_")));
    let Some(row) = found else {
        let near = closest(code, all().map(|row| row.code));
        let next = near.map_or_else(|| "harnessctl explain".to_owned(), |near| format!("harnessctl explain {near}"));
        return Err(Problem::new("USAGE", format!("`{}` is no code", clean(code)))
            .why("codes are the words in error[CODE], of blockers, of holds and of landings")
            .next(next)
            .into());
    };
    let mut answer = object(row);
    answer["schema"] = "harness.explain/1".into();
    out.answer(&answer, row.code, || {
        let exit = exit_of(row).map(|exit| format!("exit: {exit}\n")).unwrap_or_default();
        format!("{}: {}\n{}\nwhy:  {}\nnext: {}\n{exit}", row.code, row.title, row.what, row.why, row.next)
    })?;
    Ok(Exit::Success)
}

/// The exit code of a verb that is refused with this code; none for a code that no refusal has.
fn exit_of(row: &Explanation) -> Option<u8> {
    CODES.iter().find(|code| code.name.eq_ignore_ascii_case(row.code)).map(|code| code.exit.code())
}

fn object(row: &Explanation) -> Value {
    // `meaning` is what the first versions had.
    json!({
        "code": row.code, "title": row.title, "meaning": row.title, "what": row.what, "why": row.why,
        "next": row.next, "exit": exit_of(row),
    })
}
