//! Support of the test binaries.
