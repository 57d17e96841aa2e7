//! Images made fit for a model: sniffed by content, checked before anything is reserved, decoded within a pool that
//! bounds memory and threads over all requests, turned upright, scaled, and encoded anew where they have to be.
//!
//! Bytes in, bytes out: nothing here knows a path or touches the disk.

mod bytes;
mod colour;
mod decode;
mod encode;
mod exif;
mod fit;
mod ladder;
mod outline;
mod pixels;
mod pnm;
mod pool;
#[cfg(test)]
mod quality_tests;
mod raster;
mod scale;
mod sniff;

pub use fit::{FitLimits, Fitted, describe, fit, undescribed};
pub use pool::ImagePool;
pub use raster::{Raster, raster};
pub use sniff::{Format, Sniffed, sniff};
