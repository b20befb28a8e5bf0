//! A text that ought to be a report.

use harness_core::input::TurnFailure;
use harness_proto::report::Report;
use harness_proto::report::parse::parse;
use harness_proto::vocab::{FailureKind, Role};

use super::turn::failure;
use crate::redact::Redactor;

/// The longest report, in bytes (weaknesses 36).
pub(super) const REPORT_CAP: usize = 4 * 1024 * 1024;

/// Reads a report; the runtime validates it, whatever the agent was asked for.
///
/// # Errors
/// `no_report` for an empty text, `invalid_report` with each broken rule otherwise.
pub(super) fn read(role: Role, text: &str, redactor: &Redactor) -> Result<Report, TurnFailure> {
    if text.trim().is_empty() {
        return Err(failure(FailureKind::NoReport, "the turn ended without a report"));
    }
    if text.len() > REPORT_CAP {
        return Err(too_large(text.len() as u64));
    }
    parse(role, &redactor.text(text)).map_err(invalid)
}

/// The failure of a report above the cap.
pub(super) fn too_large(bytes: u64) -> TurnFailure {
    invalid(vec![format!(
        "the report is {bytes} bytes long, at most {REPORT_CAP} are taken: leave out everything that is not asked for"
    )])
}

/// The failure of a turn without a report in which a line above the cap was skipped; that line may have been it.
pub(super) fn skipped(bytes: u64) -> TurnFailure {
    invalid(vec![format!(
        "no report arrived, and a message of {bytes} bytes was skipped: keep the report far below {REPORT_CAP} bytes"
    )])
}

fn invalid(errors: Vec<String>) -> TurnFailure {
    TurnFailure { errors, ..failure(FailureKind::InvalidReport, "the report breaks its schema") }
}
