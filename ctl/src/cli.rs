//! What can be typed: one tree (ux.md sections 4 and 10, artifacts.md 2, S4-001).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use harness_proto::error::Problem;

use crate::command::{
    cancel, completions, config, create_launch, daemon, db, doctor, events, explain, land, launch, list, logs, pause,
    rebuild, recover, resume, retry, run, show, skip, start, status, stop, tasks, version, wait,
};

/// Registers, starts, watches and stops runs of harness.
#[derive(Debug, Parser)]
#[command(
    name = "harnessctl",
    version,
    infer_subcommands = true,
    disable_help_subcommand = false,
    max_term_width = 100
)]
#[command(
    after_help = "Exit codes: 0 success, 2 usage, 3 daemon down, 5 not everything accepted, 7 needs you, 8 pending, 10 conflict, \
                        124 timeout of wait. Read every other code as failure."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch that a person types")]
pub(crate) struct Global {
    /// Print one JSON object (streams: one a line), also for errors
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only ids
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// When to use colors
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto)]
    pub(crate) color: Color,
    /// Never start the daemon
    #[arg(long, global = true)]
    pub(crate) no_autostart: bool,
    /// Agree to what cannot be undone
    #[arg(long, global = true)]
    pub(crate) yes: bool,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` or `TERM=dumb`
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A verb each.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Register a run: write harness-launch.json, start nothing
    CreateLaunch(create_launch::CreateLaunchArgs),
    /// Register a run and start it
    Launch(launch::LaunchArgs),
    /// Start or continue a run in the background
    #[command(visible_alias = "go")]
    Start(start::StartArgs),
    /// Start a run and follow it until it ends or needs you
    Run(run::RunArgs),
    /// Show a run, or all of them
    #[command(visible_aliases = ["progress", "check"])]
    Status(status::StatusArgs),
    /// Stop a run; its work is kept
    #[command(visible_aliases = ["halt", "kill"])]
    Stop(stop::StopArgs),
    /// List runs
    List(list::ListArgs),
    /// Show a task with attempts, turns, evidence
    Show(show::ShowArgs),
    /// Print the history of a run
    Events(events::EventsArgs),
    /// Print what runtime and agents said
    Logs(logs::LogsArgs),
    /// Wait until a condition holds
    Wait(wait::WaitArgs),
    /// No new turn; live turns end
    Pause(pause::PauseArgs),
    /// Continue a run that is paused, stopped or held
    Resume(resume::ResumeArgs),
    /// Give a failed or blocked task more attempts
    Retry(retry::RetryArgs),
    /// Leave a task out
    Skip(skip::SkipArgs),
    /// Give a task or a run up; final
    Cancel(cancel::CancelArgs),
    /// Bring accepted commits to the target branch now
    Land(land::LandArgs),
    /// List kept work, or make a branch of it
    Recover(recover::RecoverArgs),
    /// Write the files of a run anew from the store
    Rebuild(rebuild::RebuildArgs),
    /// Find out what is wrong
    Doctor(doctor::DoctorArgs),
    /// Explain a code
    Explain(explain::ExplainArgs),
    /// Work with tasks.json
    #[command(subcommand)]
    Tasks(tasks::TasksVerb),
    /// Work with the daemon
    #[command(subcommand)]
    Daemon(daemon::DaemonVerb),
    /// Work with the database
    #[command(subcommand)]
    Db(db::DbVerb),
    /// Work with configuration
    #[command(subcommand)]
    Config(config::ConfigVerb),
    /// Print versions of client and daemon
    Version(version::VersionArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
}

impl Cli {
    /// Whether a Ctrl-C leaves a run behind that goes on.
    pub(crate) fn follows_a_run(&self) -> bool {
        match &self.verb {
            Some(Verb::Run(_) | Verb::Wait(_)) => true,
            Some(Verb::Events(args)) => args.follow,
            Some(Verb::Logs(args)) => args.follow,
            Some(Verb::Status(args)) => args.watch,
            _ => false,
        }
    }
}

/// A run, for verbs about a run: `VERB [RUN] [--repo R]`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunRef {
    /// Id, unique prefix or @last
    pub(crate) run: Option<String>,
    /// Repository whose active, else newest run is meant [default: that of the current folder]
    #[arg(long, value_name = "R", conflicts_with = "run")]
    pub(crate) repo: Option<PathBuf>,
}

/// A run, for verbs about a task: `VERB TASK [--repo R | --run RUN]`.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOption {
    /// Id, unique prefix or @last
    #[arg(long = "run", value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// Repository whose active, else newest run is meant [default: that of the current folder]
    #[arg(long, value_name = "R", conflicts_with = "run")]
    pub(crate) repo: Option<PathBuf>,
}

impl From<RunOption> for RunRef {
    fn from(option: RunOption) -> Self {
        Self { run: option.run, repo: option.repo }
    }
}

/// clap's words in our three lines: the first line says what, a tip says why, the usage says what to do.
pub(crate) fn usage_problem(text: &str) -> Problem {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let rest: Vec<&str> = lines.collect();
    // "to pass '--x' as a value, use '-- --x'" is true and never what was meant.
    let mut tips = rest.iter().filter_map(|line| line.strip_prefix("tip: "));
    let tip = tips.rfind(|tip| !tip.starts_with("to pass")).map(meant);
    let usage = rest.iter().find_map(|line| line.strip_prefix("Usage: "));
    let detail = if first.ends_with(':') {
        let items = rest.iter().take_while(|l| !l.starts_with("Usage:") && !l.starts_with("tip:"));
        format!("{first} {}", items.copied().collect::<Vec<_>>().join(", "))
    } else {
        first
    };
    let words: Vec<&str> = usage
        .unwrap_or("harnessctl")
        .split_whitespace()
        .take_while(|word| word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-'))
        .collect();
    let verb = if words.is_empty() { "harnessctl".to_owned() } else { words.join(" ") };
    Problem::new("USAGE", detail)
        .why(tip.as_deref().unwrap_or("the command line is not what this verb takes"))
        .next(format!("{verb} --help"))
}

/// A word that needs another one, such as `daemon`: clap prints its help.
pub(crate) fn verb_missing(help: &str) -> Problem {
    let usage = help.lines().find_map(|line| line.trim().strip_prefix("Usage: ")).unwrap_or("harnessctl");
    let words: Vec<&str> = usage.split_whitespace().take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
    let verb = words.join(" ");
    Problem::new("USAGE", format!("`{verb}` needs one more word"))
        .why("it stands for several verbs, and none is guessed")
        .next(format!("{verb} --help"))
}

/// clap names what is alike in rising order of likeness; the last is what was meant.
fn meant(tip: &str) -> String {
    match tip.split_once(": ") {
        Some((words, names)) if words.ends_with("exist") || words.ends_with("exists") => {
            let best = names.rsplit(", ").next().unwrap_or(names);
            format!("did you mean {best}?")
        }
        _ => tip.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_tree_is_sound() {
        Cli::command().debug_assert();
    }

    fn refusal(args: &[&str]) -> Problem {
        let error = Cli::try_parse_from(args).expect_err("refused");
        usage_problem(&error.render().to_string())
    }

    #[test]
    fn typos_get_a_suggestion_and_a_next_command() {
        let problem = refusal(&["harnessctl", "statsu"]);
        assert!(problem.detail.contains("statsu") && problem.why.contains("status"), "{problem:?}");
        let problem = refusal(&["harnessctl", "status", "--exit-cod"]);
        assert!(problem.detail.contains("--exit-cod") && problem.why.contains("--exit-code"), "{problem:?}");
        assert_eq!(problem.next, "harnessctl status --help");
        let problem = refusal(&["harnessctl", "create-launch", "--goal", "g"]);
        assert!(problem.detail.contains("--scope"), "{problem:?}");
    }

    #[test]
    fn prefixes_and_aliases_are_verbs() {
        for (typed, verb) in [("go", "Start"), ("check", "Status"), ("halt", "Stop"), ("sto", "Stop"), ("compl", "")] {
            let cli = Cli::try_parse_from(["harnessctl", typed]);
            match cli {
                Ok(cli) => assert!(format!("{:?}", cli.verb).starts_with(&format!("Some({verb}")), "{typed}"),
                Err(_) => assert!(verb.is_empty(), "{typed}"),
            }
        }
    }
}
