//! The entry of the child process: arguments, the turn on stdin, the answer on stdout, and what a fault puts in its place.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::process::ExitCode;

use super::fault::{Effect, Faults};
use super::turn::{Answer, Role, TurnSpec};
use super::{implementer, planner, python, verifier};

/// The largest turn specification that is read, in bytes; prompts are far below it.
const SPEC_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Takes one turn: reads the specification from stdin, works in the current folder, writes the answer to stdout.
///
/// The exit code is 0 for a report and for a failure alike; 2 when the command line is wrong. Faults asked for by
/// `--faults` may give any other end.
pub fn main(args: &[OsString]) -> ExitCode {
    let rules = match parse_args(args) {
        Ok(rules) => rules,
        Err(problem) => {
            let line = format!("error: {problem}\nusage: harnessd offline-agent [--faults RULES] < turn.json\n");
            return finish(std::io::stderr().write_all(line.as_bytes()), ExitCode::from(2));
        }
    };
    let answer = take_turn(&rules);
    match answer {
        Ok((answer, effect)) => deliver(&answer, effect.as_ref()),
        Err(message) => deliver(&Answer::refused(message), None),
    }
}

fn parse_args(args: &[OsString]) -> Result<String, String> {
    let mut rules = String::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let arg = arg.to_str().ok_or("an argument is not UTF-8")?;
        if arg == "--faults" {
            let value = rest.next().ok_or("`--faults` needs a value")?;
            value.to_str().ok_or("the fault rules are not UTF-8")?.clone_into(&mut rules);
        } else if let Some(value) = arg.strip_prefix("--faults=") {
            value.clone_into(&mut rules);
        } else {
            return Err(format!("unknown argument `{arg}`"));
        }
    }
    Ok(rules)
}

fn take_turn(rules: &str) -> Result<(Answer, Option<Effect>), String> {
    let mut raw = Vec::new();
    std::io::stdin()
        .take(SPEC_BYTES_MAX + 1)
        .read_to_end(&mut raw)
        .map_err(|error| format!("cannot read the turn specification: {error}"))?;
    if raw.len() as u64 > SPEC_BYTES_MAX {
        return Err(format!("the turn specification is larger than {SPEC_BYTES_MAX} bytes"));
    }
    let faults = Faults::parse(rules).map_err(|error| error.to_string())?;
    let spec: TurnSpec =
        serde_json::from_slice(&raw).map_err(|error| format!("the turn specification cannot be read: {error}"))?;
    let effect = faults.take(&spec, std::env::var_os("HARNESS_OFFLINE_STATE").as_deref())?;
    if let Some(early) = effect.as_ref().filter(|effect| effect.replaces_the_work()) {
        return Ok((Answer::refused("asked to refuse by a fault rule".to_owned()), Some(early.clone())));
    }
    python::preflight()?;
    let answer = match spec.role {
        Role::Planner => planner::take(&spec, effect.as_ref()),
        Role::Implementer => implementer::take(&spec, effect.as_ref()),
        Role::Verifier => verifier::take(&spec, effect.as_ref()),
    };
    let answer = match answer {
        Ok(report) => Answer::Report(report),
        Err(message) => Answer::refused(message),
    };
    Ok((answer, effect))
}

/// Writes the answer, or what a fault puts in its place.
fn deliver(answer: &Answer, effect: Option<&Effect>) -> ExitCode {
    let text = match effect {
        Some(Effect::Crash) => std::process::abort(),
        Some(Effect::Hang) => loop {
            std::thread::park();
        },
        Some(Effect::Exit(code)) => return ExitCode::from(*code),
        Some(Effect::Empty) => return ExitCode::SUCCESS,
        Some(Effect::Garbage) => "I have done the work { and this is no report\n".to_owned(),
        Some(Effect::BadReport) => answer.without_summary(),
        Some(Effect::BigReport(bytes)) => answer.padded(*bytes),
        _ => answer.text(),
    };
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    finish(written, ExitCode::SUCCESS)
}

/// A reader that went away leaves nobody to tell but the exit code.
fn finish(written: std::io::Result<()>, code: ExitCode) -> ExitCode {
    if written.is_ok() { code } else { ExitCode::FAILURE }
}
