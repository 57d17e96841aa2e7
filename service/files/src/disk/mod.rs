//! The disk: the only folder whose code touches it.

pub mod identity;
pub mod open;
mod resolve;
pub mod roots;
pub mod source;
