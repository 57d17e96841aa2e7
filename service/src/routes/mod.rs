//! The handlers, one file an operation: extract, call the engine's verb, answer.

pub(crate) mod delete;
pub(crate) mod edit;
pub(crate) mod find_paths;
pub(crate) mod find_text;
pub(crate) mod health;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod read;
mod read_multipart;
pub(crate) mod unknown;
pub(crate) mod write;
