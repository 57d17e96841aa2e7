//! Algorithms on bytes: bytes in, values out. Nothing here knows a file or a request.

pub mod breaks;
mod candidates;
pub mod diff;
mod difference;
pub mod encoding;
mod excerpt;
pub(crate) mod facts;
mod folding;
pub(crate) mod glob;
pub mod kind;
pub mod matching;
mod needle;
mod replacement;
pub mod trace;
pub mod window;
mod windows;
