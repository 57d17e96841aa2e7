//! What an image file's structure says without decoding a pixel: the size it declares, how it lies, its frames, its
//! colour profile, and whether it carries nothing but its picture.

mod gif;
mod jpeg;
mod others;
mod png;
mod webp;

use std::ops::Range;

use super::exif::Orientation;
use super::sniff::Format;

pub(super) use jpeg::{Coding, Jpeg};
pub(super) use others::Tiff;
pub(super) use png::decompress_profile;
pub(super) use webp::Webp;

/// What the structure says.
#[derive(Clone, Debug, Default)]
pub(super) struct Outline {
    /// Width and height, as stored; of a GIF as far as its first frame reaches.
    pub(super) size: (u32, u32),
    pub(super) orientation: Orientation,
    /// How many frames (or pages) there are; `None` when the bytes end before that is known.
    pub(super) frames: Option<u64>,
    /// The colour profile, as far as the container tells.
    pub(super) icc: Option<Vec<u8>>,
    pub(super) plain: Plain,
    pub(super) detail: Detail,
}

/// Whether a file is nothing but its picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Plain {
    /// It is: byte for byte what may be sent, if it decodes.
    Clean,
    /// These parts of it are.
    Parts(Vec<Range<usize>>),
    /// The pixels have to be encoded anew.
    #[default]
    No,
}

/// What only one format has.
#[derive(Clone, Debug, Default)]
pub(super) enum Detail {
    Jpeg(Jpeg),
    Tiff(Tiff),
    Webp(Webp),
    #[default]
    None,
}

/// Why there is no outline: the file ends too early, or is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Damaged(pub(super) &'static str);

impl Outline {
    /// Width and height, upright.
    pub(super) fn upright(&self) -> (u32, u32) {
        self.orientation.turn(self.size)
    }
}

/// Reads the structure of a file, or of the part of it that is there.
pub(super) fn outline(bytes: &[u8], format: Format) -> Result<Outline, Damaged> {
    let outline = match format {
        Format::Png => png::outline(bytes),
        Format::Jpeg => jpeg::outline(bytes),
        Format::Gif => gif::outline(bytes),
        Format::Webp => webp::outline(bytes),
        Format::Bmp => others::bmp(bytes),
        Format::Tiff => others::tiff(bytes),
        Format::Ico => others::ico(bytes),
        Format::Tga => others::tga(bytes),
        Format::Pnm => others::pnm(bytes),
        Format::Qoi => others::qoi(bytes),
    }?;
    if outline.size.0 == 0 || outline.size.1 == 0 {
        return Err(Damaged("it declares a side of 0"));
    }
    Ok(outline)
}

/// The parts of a file that are its picture, put together.
pub(super) fn strip(bytes: &[u8], format: Format, parts: &[Range<usize>]) -> Vec<u8> {
    let mut stripped = Vec::with_capacity(parts.iter().map(Range::len).sum());
    for part in parts {
        stripped.extend_from_slice(bytes.get(part.clone()).unwrap_or_default());
    }
    if format == Format::Webp {
        webp::amend(&mut stripped);
    }
    stripped
}

/// Clean, or the parts that were kept.
fn plain(clean: bool, parts: Vec<Range<usize>>) -> Plain {
    if clean { Plain::Clean } else { Plain::Parts(parts) }
}
