//! Planner turns, and every way a plan comes in.

use harness_proto::ids::TaskId;
use harness_proto::report::{ProposedTask, Report};
use harness_proto::vocab::{HoldKind, Kind, Owner, Phase, Role, Switch, TaskStatus};
use serde_json::json;

use crate::dag::{Import, ImportSource, import, merge_user_edit};
use crate::effect::TurnRequest;
use crate::input::{PlanFile, TurnEnded};
use crate::prompt;
use crate::state::{Feedback, Task};
use crate::step::{Change, PlanRow, TurnEndRow};

use super::cx::{Cx, draft};
use super::{pump, recovery};

/// Asks for a planner turn.
pub(super) fn dispatch(cx: &mut Cx<'_>) {
    let first = cx.state.head.plan_revision == 0 && cx.state.tasks.is_empty();
    let repair = !cx.state.head.planner.errors.is_empty();
    let ask = prompt::planner_prompt(cx.state, cx.policy);
    let errors = cx.state.head.planner.errors.clone();
    let text = if repair { prompt::repair_prompt(Role::Planner, &errors).text } else { ask.text.clone() };
    cx.state.head.phase = if first { Phase::Planning } else { cx.state.head.phase };
    let request = TurnRequest {
        turn: 0,
        role: Role::Planner,
        kind: if first { Kind::Plan } else { Kind::Replan },
        task: None,
        attempt: 0,
        tree: None,
        commit: cx.state.head.head.clone(),
        base: String::new(),
        prompt: text,
        template: ask.template,
        handover: if repair { ask.text } else { String::new() },
        session: cx.state.head.planner.session.clone().filter(|_| repair),
        context: prompt::planner_context(cx.state, cx.policy),
        repair,
        limits: pump::limits(cx),
    };
    let (turn, effect) = pump::start_turn(cx, request);
    cx.state.head.planner.effect = Some(effect);
    cx.state.head.planner.turn = turn;
    if !first {
        cx.state.head.counts.replans += u32::from(!repair);
    }
}

pub(super) fn interrupted(cx: &mut Cx<'_>) {
    cx.state.head.planner.effect = None;
    cx.touch(Change::Run);
}

/// Writes the last row of a turn.
pub(super) fn record_turn(cx: &mut Cx<'_>, turn: i64, ended: &TurnEnded, outcome: &str, file: Option<String>) {
    let usage = ended.usage;
    cx.state.head.counts.tokens += usage.total_tokens;
    cx.state.head.counts.agent_ms += usage.duration_ms;
    if !ended.agent.is_empty() {
        cx.state.head.agent.clone_from(&ended.agent);
    }
    let message = ended.result.as_ref().err().map(|f| f.message.clone()).unwrap_or_default();
    cx.touch(Change::TurnEnded(Box::new(TurnEndRow {
        turn,
        outcome: outcome.into(),
        message,
        report: ended.result.as_ref().ok().cloned(),
        report_file: file.unwrap_or_default(),
        session: ended.session.clone().unwrap_or_default(),
        agent: ended.agent.clone(),
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        total_tokens: usage.total_tokens,
        duration_ms: usage.duration_ms,
        transcript: ended.transcript.clone(),
        at: cx.at,
    })));
}

pub(super) fn turn_ended(cx: &mut Cx<'_>, ended: &TurnEnded) {
    cx.state.head.planner.effect = None;
    cx.state.head.planner.session.clone_from(&ended.session);
    let turn = cx.state.head.planner.turn;
    let report = match &ended.result {
        Ok(Report::Planner(report)) => report,
        Ok(_) => return refused(cx, ended, &["the report is of another role".to_owned()]),
        Err(failure) => return recovery::planner_failed(cx, ended, failure),
    };
    let first = cx.state.tasks.is_empty();
    let text = match &ended.plan {
        Some(PlanFile::Text(text)) => text.clone(),
        Some(PlanFile::Unusable(why)) => return refused(cx, ended, &[format!("tasks.json: {why}")]),
        Some(PlanFile::Missing) | None if first => {
            return refused(cx, ended, &["tasks.json was not written to HARNESS_PLAN_DIR".to_owned()]);
        }
        // A planner that changes nothing leaves the file as it found it.
        Some(PlanFile::Missing) | None => String::new(),
    };
    let revision = (cx.state.head.plan_revision + 1).max(report.revision.min(cx.state.head.plan_revision + 1000));
    let imported = if text.is_empty() {
        None
    } else {
        match import(&cx.state.tasks, &text, ImportSource::Planner, cx.policy, revision) {
            Ok(import) => Some(import),
            Err(errors) => return refused(cx, ended, &errors),
        }
    };
    let file = format!("planner-r{revision:03}.json");
    record_turn(cx, turn, ended, "report", Some(file));
    cx.state.head.counts.planner_runs += 1;
    cx.state.head.last.status = "plan".into();
    cx.state.head.last.decision = "dispatch_implementer".into();
    cx.event(draft("plan", "dispatch_implementer", report.summary.clone()).role("planner"));
    let before = crate::dag::topology_digest(&cx.state.tasks);
    if let Some(imported) = imported {
        adopt(cx, imported, "planner", &text, ended.plan_md.clone(), revision);
    } else {
        cx.state.head.plan_revision = revision;
    }
    let planner = &mut cx.state.head.planner;
    planner.pending.clear();
    planner.detail.clear();
    planner.errors.clear();
    planner.session = None;
    planner.faults = 0;
    planner.lost = 0;
    cx.state.head.proposals.clear();
    cx.close_incident();
    bound_progress(cx, &before);
}

/// Planner turns without anything done or a new topology are counted; putting the same task back again is no progress (ux 10).
fn bound_progress(cx: &mut Cx<'_>, before: &str) {
    let topology = crate::dag::topology_digest(&cx.state.tasks);
    let done = u32::try_from(cx.state.done_count).unwrap_or(u32::MAX);
    let planner = &mut cx.state.head.planner;
    if topology != before || done > planner.last_done {
        planner.idle = 0;
    } else {
        planner.idle += 1;
    }
    planner.last_topology = topology;
    planner.last_done = done;
    let (idle, limit) = (planner.idle, cx.policy.idle_planner_limit);
    if idle >= limit {
        let detail = format!("{idle} planner turns in a row changed nothing and no task was done in between");
        let next = format!("edit tasks.json, then {}", cx.start_command());
        cx.hold(HoldKind::Recovery, Owner::Runtime, "planner_no_progress", &detail, next);
    }
}

/// An invalid plan or report gets one repair turn with the exact errors, then the run is held with them (DESIGN 4).
fn refused(cx: &mut Cx<'_>, ended: &TurnEnded, errors: &[String]) {
    let turn = cx.state.head.planner.turn;
    record_turn(cx, turn, ended, "failed:invalid_report", None);
    let shown = errors.iter().take(20).cloned().collect::<Vec<_>>().join("; ");
    cx.event(draft("plan_import", "refused", shown.clone()).data(json!({"errors": errors})));
    cx.state.head.last.error.clone_from(&shown);
    if cx.state.head.planner.errors.is_empty() {
        cx.state.head.planner.errors = errors.to_vec();
        return;
    }
    cx.state.head.planner.errors.clear();
    let next = format!("edit tasks.json, then {}", cx.start_command());
    cx.hold(HoldKind::NeedsHuman, Owner::User, "plan_invalid", &shown, next);
}

/// A plan that stood in the repository when the run was first started (S4-014).
pub(super) fn found(cx: &mut Cx<'_>, plan: &PlanFile) {
    match plan {
        PlanFile::Missing => {}
        PlanFile::Text(text) => match import(&cx.state.tasks, text, ImportSource::Found, cx.policy, 1) {
            Ok(imported) if imported.tasks.is_empty() => {}
            Ok(imported) => adopt(cx, imported, "found", text, None, 1),
            Err(errors) => invalid_edit(cx, &errors),
        },
        PlanFile::Unusable(why) => invalid_edit(cx, &[format!("tasks.json: {why}")]),
    }
}

/// A human changed `tasks.json`: topology from the human, status from the store (DESIGN 4).
pub(super) fn edited(cx: &mut Cx<'_>, plan: &PlanFile, base: &str) {
    let text = match plan {
        PlanFile::Text(text) => text,
        PlanFile::Missing => return,
        PlanFile::Unusable(why) => return invalid_edit(cx, &[format!("tasks.json: {why}")]),
    };
    let revision = cx.state.head.plan_revision + 1;
    match merge_user_edit(&cx.state.tasks, text, base, cx.policy, revision) {
        Ok(imported) => {
            cx.event(draft("plan_import", "edited_by_user", "tasks.json was edited and merged.").role("user"));
            adopt(cx, imported, "user", text, None, revision);
            let fixed = ["plan_invalid", "planner_no_progress"];
            if cx.state.head.hold.as_ref().is_some_and(|h| fixed.contains(&h.reason.as_str())) {
                cx.state.head.hold = None;
                cx.state.head.planner.idle = 0;
                cx.state.head.planner.pending.clear();
                cx.event(draft("run", "resumed", "The edited plan is valid."));
            }
        }
        Err(errors) => {
            let shown = errors.iter().take(20).cloned().collect::<Vec<_>>().join("; ");
            cx.state.head.last.error.clone_from(&shown);
            cx.event(draft("plan_import", "refused", shown).role("user").data(json!({"errors": errors})));
        }
    }
}

fn invalid_edit(cx: &mut Cx<'_>, errors: &[String]) {
    let shown = errors.iter().take(20).cloned().collect::<Vec<_>>().join("; ");
    cx.event(draft("plan_import", "refused", shown.clone()).data(json!({"errors": errors})));
    let next = format!("edit tasks.json, then {}", cx.start_command());
    cx.hold(HoldKind::NeedsHuman, Owner::User, "plan_invalid", &shown, next);
}

/// Makes an imported plan the run's plan.
fn adopt(cx: &mut Cx<'_>, imported: Import, source: &str, text: &str, prose: Option<String>, revision: i64) {
    let row = PlanRow { revision, source: source.into(), text: text.into(), prose, at: cx.at };
    cx.state.head.plan_revision = revision;
    let closed = imported.closed.clone();
    for id in &imported.removed {
        cx.set_status(id, TaskStatus::Superseded);
    }
    for planned in imported.tasks {
        let id = planned.id.clone();
        if let Some(task) = cx.state.tasks.get_mut(&id) {
            if task.plan != planned {
                task.plan = planned;
                cx.touch(Change::Task(id));
            }
        } else {
            let status = TaskStatus::Pending;
            cx.state.tasks.insert(id.clone(), new_task(planned, status, cx.policy.max_attempts));
            cx.touch(Change::Task(id));
        }
    }
    cx.state.reindex();
    for (id, status) in closed {
        // A found plan's `done` is taken at its word, and marked so.
        if status == TaskStatus::Done {
            cx.edit_task(&id, |t| t.unproven = true);
        }
        cx.set_status(&id, status);
    }
    for id in &imported.requeued {
        requeue(cx, id);
    }
    let ids: Vec<TaskId> = cx.state.tasks.keys().cloned().collect();
    for id in ids {
        cx.refresh(&id);
    }
    let text = format!(
        "Revision {revision}: {} added, {} updated, {} closed, {} put back.",
        imported.added.len(),
        imported.updated.len(),
        imported.closed.len() + imported.removed.len(),
        imported.requeued.len()
    );
    cx.event(draft("plan_import", "imported", text).data(json!({"source": source, "revision": revision})));
    cx.touch(Change::Plan(row));
}

fn new_task(plan: harness_proto::plan::PlannedTask, status: TaskStatus, attempts_max: u32) -> Task {
    Task {
        plan,
        status,
        attempts: 0,
        attempts_max,
        last_attempt_commit: String::new(),
        last_verdict: None,
        integrated_commit: String::new(),
        blocked_reason: String::new(),
        integration_conflict: serde_json::Value::Null,
        resolved_by: None,
        feedback: Feedback::default(),
        signatures: Vec::new(),
        session: None,
        requeues: 0,
        unproven: false,
    }
}

/// Puts a failed, blocked or timed-out task back with the policy's number of attempts more.
pub(super) fn requeue(cx: &mut Cx<'_>, id: &TaskId) {
    let more = cx.policy.max_attempts;
    cx.edit_task(id, |t| {
        t.attempts_max = t.attempts + more;
        t.signatures.clear();
        t.blocked_reason.clear();
        t.requeues += 1;
    });
    cx.set_status(id, TaskStatus::Pending);
    cx.refresh(id);
}

/// Remembers work that a role found; only the planner may plan it (S4-021).
pub(super) fn take_proposals(cx: &mut Cx<'_>, proposals: &[ProposedTask]) {
    if cx.policy.expansion == Switch::Enabled {
        cx.state.head.proposals.extend(proposals.iter().take(50).cloned());
        cx.state.head.proposals.truncate(500);
    }
}

/// Proposals reach the planner, also when the last task was accepted (weaknesses 22).
pub(super) fn request_for_proposals(cx: &mut Cx<'_>) {
    if !cx.state.head.proposals.is_empty() {
        request(cx, "planner_update_requested", "");
    }
}

/// Makes a planner turn due; the first reason stays.
pub(super) fn request(cx: &mut Cx<'_>, reason: &str, detail: &str) {
    let planner = &mut cx.state.head.planner;
    if planner.pending.is_empty() {
        planner.pending = reason.into();
        planner.detail = detail.into();
    }
    cx.touch(Change::Run);
}
