//! The way down until an image fits its bytes: the source's format, PNG, then JPEG or WebP of falling quality, then
//! the same with fewer pixels.

use super::encode::{Way, encode};
use super::pixels::Pixels;
use super::scale::{Mismatch, resize};
use super::sniff::Format;
use crate::{Cancel, Error};

/// What decides on the way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish {
    pub(super) source: Format,
    /// Whether the source keeps every pixel as it was.
    pub(super) lossless: bool,
    /// Whether the source stores colour at a lower resolution.
    pub(super) subsampled: bool,
    pub(super) max_bytes: u64,
    /// A lossless result that is larger than its source is tried again, smaller.
    pub(super) source_bytes: u64,
    /// Whether the source takes less than a bit a pixel: what is quick to write would come out larger.
    pub(super) flat: bool,
}

/// An image that fits.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) format: Format,
    pub(super) size: (u32, u32),
    pub(super) bytes: Vec<u8>,
}

/// Why none fits.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stuck {
    /// Not even a single pixel does.
    Bytes,
    Mismatch,
    Stopped(Error),
}

impl From<Mismatch> for Stuck {
    fn from(_: Mismatch) -> Self {
        Stuck::Mismatch
    }
}

const MAX_WEBP_SIDE: u32 = 16_383;
const QUALITIES: [u8; 4] = [85, 70, 50, 35];

/// The first way that fits.
pub(super) fn descend(pixels: &Pixels, wish: Wish, cancel: &Cancel) -> Result<Step, Stuck> {
    let mut smaller: Option<Pixels> = None;
    loop {
        let current = smaller.as_ref().unwrap_or(pixels);
        let mut smallest = u64::MAX;
        for way in ways(current, wish) {
            cancel.check().map_err(Stuck::Stopped)?;
            // A quality that is far off is followed by the lowest one.
            if far_off(way, smallest, wish.max_bytes) {
                continue;
            }
            let Ok(bytes) = encode(current, way) else { continue };
            let bytes = if way == Way::PngFast { compared(current, bytes, wish) } else { bytes };
            let length = bytes.len() as u64;
            if length <= wish.max_bytes {
                return Ok(Step { format: way.format(), size: current.size, bytes });
            }
            smallest = smallest.min(length);
        }
        if current.size == (1, 1) {
            return Err(Stuck::Bytes);
        }
        let size = next_size(current.size, smallest, wish.max_bytes);
        smaller = Some(resize(pixels, size)?);
    }
}

fn far_off(way: Way, smallest: u64, max_bytes: u64) -> bool {
    let (Way::Jpeg { quality, .. } | Way::Webp { quality }) = way else { return false };
    let lowest = quality == QUALITIES[QUALITIES.len() - 1];
    quality < QUALITIES[0] && !lowest && smallest / 3 > max_bytes
}

/// Fewer pixels, by as much as the bytes are over the limit.
fn next_size(size: (u32, u32), smallest: u64, max_bytes: u64) -> (u32, u32) {
    let factor = (max_bytes as f64 / smallest as f64).sqrt().clamp(0.25, 0.9) * 0.95;
    let side = |side: u32| ((f64::from(side) * factor) as u32).clamp(1, side.max(2) - 1);
    (side(size.0), side(size.1))
}

/// A PNG that came out larger than its source, or than its limit, against a slower and smaller one.
fn compared(pixels: &Pixels, fast: Vec<u8>, wish: Wish) -> Vec<u8> {
    let length = fast.len() as u64;
    // Pixels that hardly compress at all are no case for trying harder.
    let hopeless = length > wish.max_bytes.saturating_mul(3);
    if hopeless || (length <= wish.max_bytes && length <= wish.source_bytes) {
        return fast;
    }
    match encode(pixels, Way::PngSmall) {
        Ok(small) if small.len() < fast.len() => small,
        _ => fast,
    }
}

fn ways(pixels: &Pixels, wish: Wish) -> Vec<Way> {
    let png = if wish.flat { Way::PngSmall } else { Way::PngFast };
    let mut ways = match (wish.source, wish.lossless) {
        (Format::Jpeg, _) => vec![],
        (Format::Webp, true) => vec![Way::WebpLossless],
        (Format::Webp, false) => vec![],
        (Format::Gif, _) => vec![Way::Gif, png],
        _ => vec![png],
    };
    // WebP alone keeps transparency at a low quality; where it cannot hold the sides, JPEG can, on the background.
    let holds = pixels.size.0.max(pixels.size.1) <= MAX_WEBP_SIDE;
    let webp = holds && (pixels.layout.has_alpha() || wish.source == Format::Webp);
    for quality in QUALITIES {
        ways.push(if webp {
            Way::Webp { quality }
        } else {
            Way::Jpeg { quality, subsampled: wish.subsampled || quality < 70 }
        });
    }
    if u64::from(pixels.size.0) * u64::from(pixels.size.1) <= 64 * 64 {
        // Headers weigh most in the smallest images, and these have the shortest.
        ways.extend([Way::PngSmall, Way::WebpLossless]);
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::super::pixels::Layout;
    use super::*;

    fn noise(size: (u32, u32), layout: Layout) -> Pixels {
        let mut state = 1u32;
        let data = (0..size.0 as usize * size.1 as usize * layout.channels()).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        Pixels::new(size, layout, data.collect()).unwrap()
    }

    fn wish(source: Format, max_bytes: u64) -> Wish {
        let lossless = source != Format::Jpeg;
        Wish { source, lossless, subsampled: false, max_bytes, source_bytes: 1 << 30, flat: false }
    }

    fn forever() -> Cancel {
        Cancel::after(std::time::Duration::from_secs(600))
    }

    #[test]
    fn it_ends_below_the_limit() {
        for source in [Format::Png, Format::Jpeg, Format::Webp, Format::Gif, Format::Bmp] {
            for layout in [Layout::Grey, Layout::Rgb, Layout::Rgba] {
                for max_bytes in [1_000_000, 20_000, 3_000, 900, 100] {
                    let step =
                        descend(&noise((90, 70), layout), wish(source, max_bytes), &forever()).unwrap();
                    assert!(step.bytes.len() as u64 <= max_bytes);
                    assert!(step.size.0 >= 1 && step.size.1 >= 1);
                }
            }
        }
    }

    #[test]
    fn the_source_format_comes_first() {
        for source in [Format::Png, Format::Jpeg, Format::Webp, Format::Gif] {
            let step = descend(&noise((90, 70), Layout::Rgb), wish(source, 1 << 20), &forever()).unwrap();
            assert_eq!((step.format, step.size), (source, (90, 70)));
        }
        let step = descend(&noise((90, 70), Layout::Rgba), wish(Format::Tiff, 1 << 20), &forever()).unwrap();
        assert_eq!(step.format, Format::Png);
    }

    #[test]
    fn alpha_is_kept_on_the_way() {
        let step = descend(&noise((90, 70), Layout::Rgba), wish(Format::Png, 9_000), &forever()).unwrap();
        assert_eq!(step.format, Format::Webp);
    }

    #[test]
    fn nothing_fits_in_nothing() {
        let stuck = descend(&noise((90, 70), Layout::Rgb), wish(Format::Png, 10), &forever());
        assert_eq!(stuck.map(drop), Err(Stuck::Bytes));
    }
}
