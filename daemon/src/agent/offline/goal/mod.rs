//! Goals: the grammar that reads them and the tool that they ask for.

mod grammar;
mod noun;
#[cfg(test)]
mod tests;
mod tool;
mod verb;
mod words;

pub use grammar::{GoalError, parse, understood};
pub use tool::Tool;
pub use verb::{Action, Verb};
