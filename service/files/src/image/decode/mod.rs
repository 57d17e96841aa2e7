//! From bytes to pixels, each format by its decoder. What is declared has been checked before, and the memory for it
//! taken from the pool; here a decoder that is told less than it finds stops.

pub(super) mod jpeg;
mod others;
mod png;
mod tiff;
mod webp;

use super::outline::{Detail, Outline};
use super::pixels::Pixels;
use super::scale::Mismatch;
use super::sniff::Format;
use crate::Cancel;

/// An image to decode.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) format: Format,
    pub(super) outline: &'a Outline,
    /// The size that is wanted, lying as stored. A decoder may come nearer to it, and must not go below.
    pub(super) target: (u32, u32),
    pub(super) max_source_pixels: u64,
    pub(super) cancel: &'a Cancel,
}

/// What was decoded.
#[derive(Debug)]
pub(super) struct Decoded {
    /// In the source's size, or already nearer to the target.
    pub(super) pixels: Pixels,
    /// The size of the source, as stored.
    pub(super) size: (u32, u32),
    /// A profile that only the decoder finds.
    pub(super) icc: Option<Vec<u8>>,
    /// Whether nothing of the file was damaged or missing.
    pub(super) whole: bool,
}

/// Why nothing was decoded.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble {
    /// It is damaged, as its decoder says.
    Damaged(String),
    /// It is of a kind that no decoder here knows.
    Unsupported(&'static str),
    /// It turned out larger than it declared.
    TooLarge,
    /// The caller is gone, or the time is up.
    Stopped(crate::Error),
}

impl From<Mismatch> for Trouble {
    fn from(_: Mismatch) -> Self {
        Trouble::Damaged("its rows do not add up".to_owned())
    }
}

impl From<crate::Error> for Trouble {
    fn from(error: crate::Error) -> Self {
        Trouble::Stopped(error)
    }
}

/// Damage, in the words of a decoder, kept short.
fn damaged(error: impl std::fmt::Display) -> Trouble {
    let mut words = error.to_string();
    if let Some((end, _)) = words.char_indices().nth(200) {
        words.truncate(end);
    }
    Trouble::Damaged(words)
}

/// Decodes the image, or the first frame of it that shows something.
pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    let decoded = match source.format {
        Format::Png => png::decode(source)?,
        Format::Jpeg => jpeg::decode(source)?,
        Format::Webp => webp::decode(source)?,
        Format::Tiff => tiff::decode(source)?,
        _ => others::decode(source)?,
    };
    let animated = source.outline.frames.is_some_and(|frames| frames > 1);
    if animated && source.format == Format::Png && !decoded.pixels.shows_something() {
        return others::first_frame_of_png(source).or(Ok(decoded));
    }
    Ok(decoded)
}

/// The most bytes that decoding will hold at once, from what the file declares.
pub(super) fn memory(source: Source<'_>) -> u64 {
    let (width, height) = (u64::from(source.outline.size.0), u64::from(source.outline.size.1));
    let pixels = width * height;
    match (&source.outline.detail, source.format) {
        (Detail::Jpeg(detail), _) => jpeg::memory(detail, source),
        (Detail::Webp(detail), _) => webp::memory(detail, pixels),
        (Detail::Tiff(detail), _) => tiff::memory(detail, source),
        (Detail::None, Format::Png) => png::memory(source),
        // Deep samples, and a frame beside its screen, in the worst case; most hold half of it.
        (Detail::None, Format::Gif) => pixels * 12,
        (Detail::None, Format::Pnm) => pixels * 8,
        (Detail::None, _) => pixels * 5,
    }
}
