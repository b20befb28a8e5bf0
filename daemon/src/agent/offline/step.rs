//! How a criterion is shown: the kinds of probe, and the steps of a session on one data file.

use super::goal::Tool;

/// How a criterion is shown.
#[derive(Debug, Clone)]
pub(super) enum Probe {
    /// The verification commands of the task pass.
    Suite,
    /// The usage text names every command.
    Readme,
    /// Python runs these steps on one data file.
    Session { seed: Seed, steps: Vec<Step> },
}

/// What the data file holds at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seed {
    Absent,
    TwoItems,
    Corrupt,
}

/// One call of `python3`. In the arguments `{dir}` is the temporary folder of the session.
#[derive(Debug, Clone, Default)]
pub(super) struct Step {
    pub(super) args: Vec<String>,
    pub(super) code: i32,
    pub(super) out: Vec<String>,
    pub(super) not_out: Vec<String>,
    pub(super) err: Vec<String>,
    /// Texts the data file must hold afterwards.
    pub(super) kept: Vec<String>,
    /// Texts it must not hold any more.
    pub(super) gone: Vec<String>,
}

impl Step {
    pub(super) fn python(args: &[&str]) -> Self {
        Self { args: args.iter().map(|&arg| arg.to_owned()).collect(), ..Self::default() }
    }

    pub(super) fn tool(tool: &Tool, args: &[&str]) -> Self {
        let mut step = Self::python(&["-m", &tool.package]);
        step.args.extend(args.iter().map(|&arg| arg.to_owned()));
        step
    }

    pub(super) fn fails(mut self, code: i32, message: &str) -> Self {
        self.code = code;
        self.err.push(message.to_owned());
        self
    }

    pub(super) fn prints(mut self, text: impl Into<String>) -> Self {
        self.out.push(text.into());
        self
    }

    pub(super) fn hides(mut self, text: impl Into<String>) -> Self {
        self.not_out.push(text.into());
        self
    }

    pub(super) fn keeps(mut self, text: impl Into<String>) -> Self {
        self.kept.push(text.into());
        self
    }

    pub(super) fn drops(mut self, text: impl Into<String>) -> Self {
        self.gone.push(text.into());
        self
    }
}
