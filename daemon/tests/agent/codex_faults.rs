//! Every failure mode of the peer ends in a report or in the right failure, and leaves no process.

use harness_core::effect::TurnLimits;
use harness_proto::vocab::{FailureKind, Role};

use crate::support::{Bench, failed, limits};

/// `None`: a report.
async fn check(rules: &str, role: Role, limits: TurnLimits, wanted: Option<FailureKind>) {
    let bench = Bench::with_faults(rules);
    let mut spec = bench.spec(role);
    spec.request.limits = limits;
    let result = bench.run(&bench.codex(), &spec).await;
    let found = result.text_report.as_ref().err().map(|failed| failed.kind);
    assert_eq!(found, wanted, "{rules}: {:?}", result.text_report);
    if let Err(failed) = &result.text_report {
        assert!(!failed.message.is_empty(), "{rules}");
        assert_eq!(failed.errors.is_empty(), failed.kind != FailureKind::InvalidReport, "{rules}: {failed:?}");
    }
    bench.finish().await;
}

async fn quick(rules: &str, wanted: Option<FailureKind>) {
    check(rules, Role::Implementer, limits(20, 20, 30), wanted).await;
}

#[tokio::test]
async fn every_role_ends_with_its_report() {
    for role in [Role::Planner, Role::Implementer, Role::Verifier] {
        check("", role, limits(20, 20, 30), None).await;
    }
}

#[tokio::test]
async fn a_process_that_cannot_start_a_session_is_a_typed_failure() {
    quick("exit_on_start@process", Some(FailureKind::Crashed)).await;
    quick("exit_on_start=0@process", Some(FailureKind::Crashed)).await;
    quick("exit_on_start=kill@process", Some(FailureKind::Crashed)).await;
    quick("init_error@process", Some(FailureKind::Protocol)).await;
    let short = limits(1, 20, 30);
    check("hang_init@process", Role::Implementer, short, Some(FailureKind::Stalled)).await;
    check("slow_init=4@process", Role::Implementer, short, Some(FailureKind::Stalled)).await;
    check("hang_init@process", Role::Implementer, limits(9, 9, 1), Some(FailureKind::Timeout)).await;
}

#[tokio::test]
async fn a_process_with_bad_manners_does_its_work_and_ends() {
    for rules in [
        "slow_init=1@process",
        "stderr=1000000@process",
        "orphan=60@process",
        "ignore_term@process",
        "ignore_eof@process",
        "ignore_eof@process; ignore_term@process",
    ] {
        quick(rules, None).await;
    }
}

#[tokio::test]
async fn silence_and_endless_talk_are_ended() {
    let implementer = Role::Implementer;
    check("hang", implementer, limits(20, 1, 30), Some(FailureKind::Stalled)).await;
    check("hang_hard", implementer, limits(20, 1, 30), Some(FailureKind::Stalled)).await;
    check("hang", implementer, limits(20, 20, 2), Some(FailureKind::Timeout)).await;
    check("endless", implementer, limits(20, 20, 2), Some(FailureKind::Timeout)).await;
    let ceiling = TurnLimits { tokens: 5_000, ..limits(20, 20, 30) };
    check("tokens=100000; hang", implementer, ceiling, Some(FailureKind::Budget)).await;
    check("tokens=1000", implementer, ceiling, None).await;
}

#[tokio::test]
async fn the_end_of_the_process_in_any_phase_is_a_crash() {
    for rules in [
        "crash_before_ack",
        "crash_before_ack=kill",
        "crash",
        "crash=0",
        "crash=kill",
        "notify=3000; crash_after_work",
        "crash_after_work",
        "crash_after_report",
    ] {
        quick(rules, Some(FailureKind::Crashed)).await;
    }
    quick("crash_after_turn", None).await;
}

#[tokio::test]
async fn refusals_and_failed_turns_have_their_kinds() {
    for (rules, kind) in [
        ("rpc_error", FailureKind::RateLimited),
        ("rpc_error=-32600,bad request", FailureKind::Protocol),
        ("rpc_error=-32600,login required", FailureKind::Auth),
        ("fail", FailureKind::Refused),
        ("fail=stream disconnected before completion", FailureKind::RateLimited),
        ("error_info=rateLimitExceeded", FailureKind::RateLimited),
        ("error_info=contextWindowExceeded", FailureKind::Refused),
        ("error_info=httpConnectionFailed,401", FailureKind::Auth),
        ("error_info=httpConnectionFailed,503", FailureKind::RateLimited),
        ("usage_limit=1900000000", FailureKind::UsageLimited),
    ] {
        quick(rules, Some(kind)).await;
    }
}

#[tokio::test]
async fn strange_but_harmless_courses_are_lived_through() {
    for rules in [
        "late_ack",
        "retry_error",
        "approval",
        "unknown_request",
        "subagent",
        "double_completed",
        "async_message",
        "summary_items",
        "notify=3000",
        "garbage",
        "scalar",
        "nonutf8",
        "garbage; scalar; nonutf8; subagent; retry_error; approval",
        "split",
        "fenced",
        "control_chars",
        "big_items=1000000",
        "big_items=12000000",
    ] {
        quick(rules, None).await;
    }
}

#[tokio::test]
async fn bad_reports_are_told_in_errors() {
    for (rules, kind) in [
        ("malformed", FailureKind::InvalidReport),
        ("not_object", FailureKind::InvalidReport),
        ("drop=summary", FailureKind::InvalidReport),
        ("claim_role=verifier", FailureKind::InvalidReport),
        ("big_report=5000000", FailureKind::InvalidReport),
        ("big_report=20000000", FailureKind::InvalidReport),
        ("empty", FailureKind::NoReport),
    ] {
        quick(rules, Some(kind)).await;
    }
}

#[tokio::test]
async fn a_server_that_floods_and_never_reads_is_bounded() {
    let bench = Bench::new();
    let flood = r#"#!/bin/sh
exec yes '{"id":1,"method":"item/tool/requestUserInput"}'
"#;
    let program = bench.program("bin/flood", flood);
    let mut spec = bench.spec(Role::Implementer);
    spec.request.limits = limits(2, 20, 30);
    let kind = format!("codex:{}", program.display()).parse().unwrap();
    let result = bench.run(&kind, &spec).await;
    assert_eq!(failed(&result).kind, FailureKind::Stalled);
    let kept = std::fs::metadata(&spec.transcript).unwrap().len();
    assert!(kept < 65 * 1024 * 1024, "{kept}");
    bench.finish().await;
}
