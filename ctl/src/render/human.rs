//! Runs, tasks and lines for people: state, since, reason, next command at one look (ux.md section 5).

use harness_proto::api::answer::{DaemonView, LogLine, TaskAnswer};
use harness_proto::api::view::{AttemptView, RunView};

use super::style::{Style, clean, columns, short};
use super::time::ago;

/// The daemon in one line.
pub(crate) fn daemon_line(daemon: &DaemonView, now: jiff::Timestamp) -> String {
    let up = if daemon.started_at.is_empty() {
        String::new()
    } else {
        format!("  started {}", ago(&daemon.started_at, now))
    };
    let free = if daemon.disk_free_percent == 0 {
        String::new()
    } else {
        format!("  disk {}% free", daemon.disk_free_percent)
    };
    format!("harnessd {}{up}  pid {}  state {}{free}\n", clean(&daemon.version), daemon.pid, clean(&daemon.state_dir))
}

/// Facts of a daemon that is gone.
pub(crate) fn stale(daemon: &DaemonView, runs: usize, updated: &str, now: jiff::Timestamp) -> String {
    let seen = if updated.is_empty() {
        String::new()
    } else {
        format!(" (last seen {}, pid {})", ago(updated, now), daemon.pid)
    };
    format!("harnessd is not running{seen}. Runs known: {runs}. What follows is stale.\n")
}

/// A run in one line.
pub(crate) fn brief_line(run: &RunView) -> String {
    format!("{}  {}  {}\n", clean(&run.run_id), run.state, clean(&run.goal))
}

/// Several runs.
pub(crate) fn runs(list: &[RunView], style: Style, now: jiff::Timestamp) -> String {
    let mut rows = vec![["RUN", "STATE", "DONE", "CHANGED", "BRANCH", "GOAL"].map(str::to_owned).to_vec()];
    for run in list {
        let all: u32 = run.task_counts.values().sum();
        let done = run.task_counts.get("done").copied().unwrap_or_default();
        rows.push(vec![
            clean(&run.run_id),
            run.state.clone(),
            format!("{done}/{all}"),
            ago(&run.updated_at, now),
            clean(&run.branch),
            clean(&run.goal).chars().take(60).collect(),
        ]);
    }
    paint_states(&rows, style, 1)
}

/// Lines of a table with the state's column in color, the head dimmed.
fn paint_states(rows: &[Vec<String>], style: Style, column: usize) -> String {
    let mut text = String::new();
    for (n, line) in columns(rows).iter().enumerate() {
        let word = rows[n].get(column).map_or("", String::as_str);
        let shown = match n {
            0 => style.dim(line),
            _ if word.is_empty() => line.clone(),
            _ => line.replacen(&format!("  {word}"), &format!("  {}", style.state(word)), 1),
        };
        text.push_str(&shown);
        text.push('\n');
    }
    text
}

/// A run in full.
pub(crate) fn run(run: &RunView, style: Style, now: jiff::Timestamp) -> String {
    let since = if run.started_at.is_empty() { String::new() } else { format!(" since {}", ago(&run.started_at, now)) };
    let tokens = match (run.usage.tokens, run.usage.max_tokens) {
        (0, 0) => String::new(),
        (used, 0) => format!("   tokens {}", thousands(used)),
        (used, max) => format!("   tokens {}/{}", thousands(used), thousands(max)),
    };
    let mut text = format!(
        "RUN {}  {}   {}{since}   last change {}{tokens}\n",
        style.bold(&clean(&run.run_id)),
        clean(&run.goal),
        style.state(&run.state),
        ago(&run.updated_at, now),
    );
    if !run.base.is_empty() {
        let accepted = run.counts.get("accepts").copied().unwrap_or_default();
        let head = short(&run.integration_head);
        text.push_str(&format!(
            "  base {} -> {}@{head} ({accepted} accepted)   repo {}\n",
            short(&run.base),
            clean(&run.branch),
            clean(&run.repo)
        ));
    }
    if let Some(hold) = &run.hold {
        let until = if hold.until.is_empty() {
            String::new()
        } else {
            format!(", until {} ({})", hold.until, ago(&hold.until, now))
        };
        text.push_str(&format!(
            "  {} by {}: {}: {}{until}\n",
            style.state(&hold.kind),
            hold.owner,
            clean(&hold.reason),
            clean(&hold.detail)
        ));
    } else if !run.last_error.is_empty() {
        text.push_str(&format!("  last error: {}\n", clean(&run.last_error)));
    }
    if run.landing.status == "pending" {
        text.push_str(&format!("  landing pending ({} commits): {}", run.landing.unlanded, clean(&run.landing.why)));
        if !run.landing.paths.is_empty() {
            text.push_str(&format!(": {}", clean(&run.landing.paths.join(", "))));
        }
        text.push('\n');
    }
    if [&run.walls.planner, &run.walls.implementer, &run.walls.verifier, &run.walls.evidence]
        .iter()
        .any(|w| *w == "none")
    {
        text.push_str(&format!(
            "  {}\n",
            style.red("no wall: agents and checks may write everywhere (danger_full_access)")
        ));
    }
    if run.no_verification {
        text.push_str(&format!("  {}\n", style.red("no verification: accepted work is not proven by commands")));
    }
    if !run.tasks.is_empty() {
        text.push_str(&tasks(run, style, now));
    }
    if !run.next.is_empty() {
        text.push_str(&format!("  next: {}\n", clean(&run.next)));
    }
    text
}

fn tasks(run: &RunView, style: Style, now: jiff::Timestamp) -> String {
    let mut rows = vec![["  TASK", "STATE", "ATT", "AGENT", "SINCE", "NOTE"].map(str::to_owned).to_vec()];
    for task in &run.tasks {
        let next = task.hold.as_ref().filter(|h| !h.next.is_empty()).map(|h| format!(" - next: {}", h.next));
        let note = if task.note.is_empty() { &task.title } else { &task.note };
        rows.push(vec![
            format!("  {}", clean(&task.id)),
            task.state.clone(),
            format!("{}/{}", task.attempt, task.attempts_max),
            clean(&task.agent),
            ago(&task.since, now),
            clean(&format!("{note}{}", next.unwrap_or_default())),
        ]);
    }
    paint_states(&rows, style, 1)
}

fn thousands(n: i64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{}.{}M", n / 1_000_000, n % 1_000_000 / 100_000),
    }
}

/// A task in full.
pub(crate) fn task(answer: &TaskAnswer, style: Style, evidence: bool) -> String {
    let task = &answer.task;
    let mut text =
        format!("TASK {}  {}   {}\n", style.bold(&clean(&task.id)), clean(&task.title), style.state(&task.state));
    if !task.dependencies.is_empty() {
        text.push_str(&format!("  depends on {}\n", clean(&task.dependencies.join(", "))));
    }
    if !task.note.is_empty() {
        text.push_str(&format!("  {}\n", clean(&task.note)));
    }
    if !task.integrated_commit.is_empty() {
        text.push_str(&format!("  integrated as {}\n", short(&task.integrated_commit)));
    }
    for attempt in &answer.attempts {
        text.push_str(&attempt_text(attempt, style, evidence));
    }
    if let Some(hold) = &task.hold {
        text.push_str(&format!(
            "  {} by {}: {}\n  next: {}\n",
            hold.kind,
            hold.owner,
            clean(&hold.detail),
            clean(&hold.next)
        ));
    }
    text
}

fn attempt_text(attempt: &AttemptView, style: Style, evidence: bool) -> String {
    let outcome = if attempt.outcome.is_empty() { &attempt.stage } else { &attempt.outcome };
    let commits = format!("base {}  trial {}", short(&attempt.base), short(&attempt.trial));
    let mut text = format!("  attempt {}  {}   {commits}\n", attempt.attempt, clean(outcome));
    for turn in &attempt.turns {
        text.push_str(&format!("    turn {} {}/{}: {}", turn.turn, turn.role, turn.kind, clean(&turn.outcome)));
        if !turn.message.is_empty() {
            text.push_str(&format!(": {}", clean(&turn.message)));
        }
        text.push_str(&format!("   {} tokens, {} ms\n", turn.tokens, turn.duration_ms));
    }
    for record in &attempt.evidence {
        let tests = record.tests.map(|n| format!(", {n} tests")).unwrap_or_default();
        let result = style.state(&record.result);
        let place = format!("{} tree {}", clean(&record.purpose), short(&record.tree));
        text.push_str(&format!(
            "    {result} exit {}  {}   {place}{tests}\n",
            record.exit_code,
            clean(&record.command)
        ));
        if !record.note.is_empty() {
            text.push_str(&format!("      {}\n", clean(&record.note)));
        }
        if evidence {
            for line in record.stdout.lines().chain(record.stderr.lines()) {
                text.push_str(&format!("      | {}\n", clean(line)));
            }
        }
    }
    if !attempt.verdict.is_empty() {
        text.push_str(&format!("    verdict {}: {}\n", attempt.verdict, clean(&attempt.verdict_summary)));
    }
    for blocker in &attempt.blockers {
        text.push_str(&format!("    blocked by {}\n", clean(blocker)));
    }
    text
}

/// A line of a log: time, event, role, task, text.
pub(crate) fn log_line(line: &LogLine, style: Style) -> String {
    let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { clean(text) };
    let role = match line.role.as_str() {
        "runtime" | "" => style.dim(&dash(&line.role)),
        role => style.bold(&clean(role)),
    };
    format!("{} {} {role} {} {}\n", dash(&line.at), line.seq, dash(&line.task), clean(&line.text))
}
