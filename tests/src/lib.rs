//! What the tests at filectx's boundaries share: the repository's files, and the programs under test.

#![allow(clippy::panic, clippy::print_stderr, reason = "a test fails by a panic and speaks on stderr")]

pub mod bench;
pub mod browser;
pub mod golden;
pub mod line;
pub mod png;
pub mod programs;
pub mod repo;
pub mod require;
pub mod sessions;
pub mod sshd;
