//! Images made fit for a model: sniffed by content, checked before anything is reserved, decoded within a pool that
//! bounds memory and threads over all requests, turned upright, scaled, and encoded anew where they have to be.
//!
//! Bytes in, bytes out: nothing here knows a path or touches the disk.

mod sniff;

pub use sniff::{Format, Sniffed, sniff};
