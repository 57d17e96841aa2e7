//! The pixels of a small image, for who paints them (a terminal), on the background.

use super::decode::{Source, decode, memory};
use super::outline::{Outline, outline};
use super::pixels::Layout;
use super::pool::ImagePool;
use super::sniff::{Format, Sniffed, sniff};
use crate::Cancel;

/// An image as rows of red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Three bytes a pixel.
    pub rgb: Vec<u8>,
}

/// The pixels of what [`fit`](super::fit) made; `None` where that is no image, or has more than `max_pixels`.
pub fn raster(bytes: Vec<u8>, max_pixels: u64, pool: &ImagePool, cancel: &Cancel) -> Option<Raster> {
    let Sniffed::Image(format) = sniff(&bytes, b"")? else { return None };
    let outline = outline(&bytes, format).ok()?;
    let size = outline.size;
    let few = u64::from(size.0) * u64::from(size.1) <= max_pixels;
    let cancel = cancel.clone();
    let needed = memory(source(&bytes, format, &outline, max_pixels, &cancel));
    if !few || needed > pool.capacity() {
        return None;
    }
    let _share = pool.take(needed, &cancel).ok()?;
    pool.run(move || {
        let decoded = decode(source(&bytes, format, &outline, max_pixels, &cancel)).ok()?;
        let pixels = decoded.pixels.opaque().coloured();
        let (width, height) = pixels.size;
        (pixels.layout == Layout::Rgb).then_some(Raster { width, height, rgb: pixels.data })
    })
    .flatten()
}

fn source<'a>(
    bytes: &'a [u8],
    format: Format,
    outline: &'a Outline,
    max_source_pixels: u64,
    cancel: &'a Cancel,
) -> Source<'a> {
    Source { bytes, format, outline, target: outline.size, max_source_pixels, cancel }
}
