//! Placeholder.

/// The whole program: what `main` does.
#[must_use]
pub fn entry() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
