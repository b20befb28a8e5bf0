//! Why a verb ended early.

use harness_proto::error::Problem;

/// What a shell shows for a program that a closed pipe ended; said by nobody, so that `harnessctl events | head` is silent.
pub(crate) const PIPE_CLOSED: u8 = 141;

/// See the module.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something to tell.
    Problem(Box<Problem>),
    /// Whoever read our output is gone.
    Pipe,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl Failure {
    /// Whether it is a refusal with this code.
    pub(crate) fn is(&self, code: &str) -> bool {
        matches!(self, Self::Problem(problem) if problem.code == code)
    }
}
