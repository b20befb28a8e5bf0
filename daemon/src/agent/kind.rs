//! Which agent: the texts of `--agent` and `--agent-for`.

use std::fmt;
use std::str::FromStr;

/// An agent that this build can run. Its text form is what `--agent` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentKind {
    /// `codex`, or `codex:PROGRAM` (what `--codex-bin` sets): an app-server on stdio.
    Codex {
        /// The program; looked up in `PATH` when it has no slash.
        program: String,
    },
    /// `command:PROGRAM ARGS`: a turn as JSON on stdin, a report on stdout. Words as a shell splits them, no expansion.
    Command {
        /// The program and its arguments; never empty.
        argv: Vec<String>,
    },
    /// `offline`, or `offline:faults=RULES`: the built-in deterministic agent.
    Offline {
        /// Rules that make it err on purpose; empty for none.
        faults: String,
    },
}

/// Why a text names no agent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AgentKindError {
    /// Known, and not built yet.
    #[error("agent `{0}` is not available yet: use `codex`, `command:PROGRAM ARGS` or `offline`")]
    NotYet(String),
    /// Not known.
    #[error("`{0}` is no agent: known are `codex`, `command:PROGRAM ARGS`, `offline`, `offline:faults=RULES`")]
    Unknown(String),
    /// `command:` without a program, or with an open quote.
    #[error("`{0}` names no program: write `command:PROGRAM ARGS` with balanced quotes")]
    NoProgram(String),
}

impl AgentKind {
    /// Whether a session of this agent can be continued in a later turn.
    #[must_use]
    pub const fn resumes(&self) -> bool {
        matches!(self, Self::Codex { .. })
    }

    /// Its name without arguments, for rows and messages.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Codex { .. } => "codex",
            Self::Command { .. } => "command",
            Self::Offline { .. } => "offline",
        }
    }
}

impl fmt::Display for AgentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Codex { program } if program == "codex" => f.write_str("codex"),
            Self::Codex { program } => write!(f, "codex:{program}"),
            Self::Command { argv } => {
                let words = shlex::try_join(argv.iter().map(String::as_str));
                write!(f, "command:{}", words.unwrap_or_else(|_| argv.join(" ")))
            }
            Self::Offline { faults } if faults.is_empty() => f.write_str("offline"),
            Self::Offline { faults } => write!(f, "offline:faults={faults}"),
        }
    }
}

impl FromStr for AgentKind {
    type Err = AgentKindError;

    fn from_str(text: &str) -> Result<Self, AgentKindError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        let unknown = || AgentKindError::Unknown(text.chars().take(200).collect());
        match (name, rest) {
            ("codex", None) => Ok(Self::Codex { program: "codex".to_owned() }),
            ("codex", Some(program)) if !program.trim().is_empty() => Ok(Self::Codex { program: program.to_owned() }),
            ("command", rest) => match rest.and_then(shlex::split) {
                Some(argv) if argv.first().is_some_and(|word| !word.is_empty()) => Ok(Self::Command { argv }),
                Some(_) | None => Err(AgentKindError::NoProgram(text.chars().take(200).collect())),
            },
            ("offline", None) => Ok(Self::Offline { faults: String::new() }),
            ("offline", Some(rest)) => match rest.strip_prefix("faults=") {
                Some(faults) => Ok(Self::Offline { faults: faults.to_owned() }),
                None => Err(unknown()),
            },
            ("claude" | "acp" | "openai", _) => Err(AgentKindError::NotYet(name.to_owned())),
            _ => Err(unknown()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn check(text: &str) {
        let kind: AgentKind = text.parse().unwrap();
        assert_eq!(kind.to_string(), text);
        assert_eq!(kind.to_string().parse::<AgentKind>().unwrap(), kind);
    }

    #[test]
    fn every_agent_has_one_text_form() {
        check("codex");
        check("codex:/opt/x y/codex");
        check("command:/bin/agent --flag 'a b'");
        check("offline");
        check("offline:faults=crash@implementer:x1");
    }

    #[test]
    fn what_is_not_built_is_named_so() {
        for text in ["claude", "acp:gemini", "openai"] {
            let error = text.parse::<AgentKind>().unwrap_err();
            assert!(error.to_string().contains("not available yet"), "{error}");
        }
        for text in ["", "codex2", "offline:now", "codex:"] {
            let error = text.parse::<AgentKind>().unwrap_err();
            assert!(matches!(error, AgentKindError::Unknown(_)), "{text}");
        }
        for text in ["command", "command:", "command:'open", "command:'' x"] {
            let error = text.parse::<AgentKind>().unwrap_err();
            assert!(matches!(error, AgentKindError::NoProgram(_)), "{text}");
        }
    }
}
