//! The disk: the only folder whose code touches it.

mod attributes;
mod beneath;
pub(crate) mod directory;
mod exchange;
pub(crate) mod fill;
pub(crate) mod found;
pub mod identity;
mod ignores;
mod in_place;
pub(crate) mod journal;
pub(crate) mod locks;
mod names;
pub mod open;
pub(crate) mod place;
mod pour;
pub(crate) mod publish;
mod random;
mod recovery;
mod resolve;
pub mod roots;
pub mod source;
mod steps;
mod system;
pub(crate) mod temporary;
pub(crate) mod walk;
