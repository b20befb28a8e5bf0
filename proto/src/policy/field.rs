//! What a row of the policy table is made of.

/// A named preset of all fields (DESIGN 9); a column of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preset {
    /// Planner, implementer, verifier on a task graph.
    Dag,
    /// A program from a short request.
    AppBuilder,
    /// Sprints with negotiated contracts.
    Sprint,
    /// Scored sprints.
    Scored,
}

/// Every preset, in the order of the table's columns.
pub const PRESETS: [Preset; 4] = [Preset::Dag, Preset::AppBuilder, Preset::Sprint, Preset::Scored];

impl Preset {
    /// The one text form.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dag => "dag",
            Self::AppBuilder => "app-builder",
            Self::Sprint => "sprint",
            Self::Scored => "scored",
        }
    }

    /// The column of [`Field::defaults`].
    #[must_use]
    pub const fn column(self) -> usize {
        self as usize
    }

    /// The preset of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        PRESETS.into_iter().find(|p| p.as_str() == text)
    }
}

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// One of these words.
    Word(&'static [&'static str]),
    /// A list of these words, comma separated in `--set`.
    Words(&'static [&'static str]),
    /// A whole number in this range, both ends included.
    Int(i64, i64),
    /// A number in this range, both ends included.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// Any text of at most so many characters.
    Text(usize),
    /// A list of texts: a JSON list, or comma separated in `--set`.
    List,
    /// A list of commands: a JSON list of strings or `{cmd|argv, timeout_s, cwd, env, network, expect_tests_min}`; in `--set` also
    /// one command as plain text.
    Checks,
    /// A map of numbers by name: a JSON object, or `name:number` comma separated in `--set`.
    Weights,
    /// `off` or `signature:N` with N from 2 to 100.
    Signature,
    /// The name of an agent: `codex`, `offline`, `command:PROGRAM`, …; the daemon parses it.
    Agent,
}

/// How much of a field's behaviour exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Built {
    /// Every allowed value.
    Yes,
    /// These words only; others are refused as "not available yet".
    Only(&'static [&'static str]),
    /// Numbers up to this one only.
    UpTo(i64),
    /// The value of preset `dag` only.
    No,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in `--set` and in the manifest.
    pub key: &'static str,
    /// Type and range.
    pub kind: Kind,
    /// Default per preset in the form of `--set`, in the order of [`PRESETS`].
    pub defaults: [&'static str; 4],
    /// How much of it is built.
    pub built: Built,
    /// One line for people.
    pub meaning: &'static str,
}

impl Field {
    /// Whether the field can be set to anything but its `dag` value.
    #[must_use]
    pub const fn is_built(&self) -> bool {
        !matches!(self.built, Built::No)
    }
}
