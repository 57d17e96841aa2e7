//! The handlers, one file an operation: extract, call the engine's verb, answer.

pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod read;
pub(crate) mod unknown;
