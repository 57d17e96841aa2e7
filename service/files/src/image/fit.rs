//! The steps that make an image fit: look at its structure, keep it if nothing has to change, else decode, scale,
//! turn, convert and encode it.

use filectx_openapi::{ImageFormat, ImageInfo};

use super::colour;
use super::decode::{Decoded, Source, Trouble, decode, memory};
use super::exif::Orientation;
use super::ladder::{Step, Stuck, Wish, descend};
use super::outline::{Detail, Outline, Plain, decompress_profile, outline, strip};
use super::pixels::Pixels;
use super::pool::ImagePool;
use super::scale::{fit as fit_size, resize};
use super::sniff::Format;
use crate::{Cancel, Error};

/// What an image in an answer has to keep to, and what is decoded at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FitLimits {
    /// Most pixels of the result.
    pub max_pixels: u64,
    /// Longest side of the result.
    pub max_side: u64,
    /// Most bytes of the result.
    pub max_bytes: u64,
    /// Most pixels of the source.
    pub max_source_pixels: u64,
}

/// An image that keeps to its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its format.
    pub format: Format,
    /// What it is and what was done to it.
    pub info: ImageInfo,
}

/// Makes an image fit. `bytes` is the whole file.
pub fn fit(
    bytes: Vec<u8>,
    format: Format,
    limits: &FitLimits,
    pool: &ImagePool,
    cancel: &Cancel,
) -> Result<Fitted, Error> {
    let outline = outline(&bytes, format).map_err(|damaged| undecodable(format, None, damaged.0))?;
    let size = outline.upright();
    too_many_pixels(format, size, limits)?;
    let target = outline.orientation.turn(fit_size(size, limits.max_pixels, limits.max_side));
    let max_source_pixels = limits.max_source_pixels;
    // The result is held a few times over: scaled, turned, converted, encoded.
    let result = u64::from(target.0) * u64::from(target.1) * 20;
    let needed =
        memory(Source { bytes: &bytes, format, outline: &outline, target, max_source_pixels, cancel })
            .saturating_add(result);
    if needed > pool.capacity() {
        let detail = format!("decoding it takes {needed} bytes of memory");
        return Err(Error::ImageTooLarge {
            format: format.name().into(),
            size: wide(size),
            limit: pool.capacity(),
            detail,
        });
    }
    let _share = pool.take(needed, cancel)?;
    let (limits, cancel) = (*limits, cancel.clone());
    // A decoder that panics on some damage costs this image, nothing else.
    pool.run(move || {
        let source =
            Source { bytes: &bytes, format, outline: &outline, target, max_source_pixels, cancel: &cancel };
        let (done, info) = within_share(source, &limits)?;
        let (format, bytes) = match done {
            Done::Untouched => (format, bytes),
            Done::Encoded(step) => (step.format, step.bytes),
        };
        Ok(Fitted { bytes, format, info })
    })
    .unwrap_or_else(|| Err(undecodable(format, Some(size), "its decoder gave up")))
}

/// What became of an image.
enum Done {
    /// Nothing has to change.
    Untouched,
    Encoded(Step),
}

/// What is known without decoding. `bytes`: the file, or as much of it as is at hand.
pub fn describe(bytes: &[u8], format: Format, file_size: u64) -> ImageInfo {
    let outline = outline(bytes, format).ok();
    let size = outline.as_ref().map(Outline::upright);
    ImageInfo {
        source_width: size.map(|(width, _)| width.into()),
        source_height: size.map(|(_, height)| height.into()),
        frames: outline.and_then(|outline| outline.frames),
        ..undescribed(format.noun(), file_size)
    }
}

/// What is told of an image of which only the file's size is known.
pub fn undescribed(source_format: ImageFormat, source_bytes: u64) -> ImageInfo {
    ImageInfo {
        format: None,
        width: None,
        height: None,
        source_format,
        source_width: None,
        source_height: None,
        source_bytes,
        resized: None,
        re_encoded: None,
        frames: None,
        scale: None,
    }
}

fn within_share(source: Source<'_>, limits: &FitLimits) -> Result<(Done, ImageInfo), Error> {
    let (outline, format) = (source.outline, source.format);
    let declared = outline.upright();
    let decoded = decode(source).map_err(|trouble| match trouble {
        Trouble::Damaged(detail) => undecodable(format, Some(declared), &detail),
        Trouble::Unsupported(what) => Error::ImageUnsupported { format: what.to_owned() },
        Trouble::TooLarge => Error::ImageTooLarge {
            format: format.name().into(),
            size: wide(declared),
            limit: limits.max_source_pixels,
            detail: "it holds more than it declares".to_owned(),
        },
        Trouble::Stopped(error) => error,
    })?;
    // What the decoder found is what counts: an icon may hold another picture than its directory says.
    let size = outline.orientation.turn(decoded.size);
    too_many_pixels(format, size, limits)?;
    let target = fit_size(size, limits.max_pixels, limits.max_side);
    let report =
        Report { format, source_bytes: source.bytes.len() as u64, size, frames: outline.frames.unwrap_or(1) };
    if target == size && decoded.whole && outline.orientation == Orientation::Upright {
        match &outline.plain {
            Plain::Clean if report.source_bytes <= limits.max_bytes => return Ok(report.untouched()),
            Plain::Parts(parts) if decoded.pixels.shows_something() => {
                let bytes = strip(source.bytes, format, parts);
                // A WebP's pixels may reach into what was left out: it has to stand alone.
                let stands = format != Format::Webp || decode(Source { bytes: &bytes, ..source }).is_ok();
                if stands && bytes.len() as u64 <= limits.max_bytes {
                    return Ok(report.encoded(Step { format, size, bytes }));
                }
            }
            _ => {}
        }
    }
    let wish = Wish {
        source: format,
        lossless: !matches!(&outline.detail, Detail::Webp(webp) if !webp.lossless),
        subsampled: matches!(&outline.detail, Detail::Jpeg(jpeg) if jpeg.subsampled),
        max_bytes: limits.max_bytes,
        source_bytes: report.source_bytes,
        flat: report.source_bytes.saturating_mul(8) < u64::from(size.0) * u64::from(size.1),
    };
    let pixels = upright(source, decoded, target)?;
    let step = descend(&pixels, wish, source.cancel).map_err(|stuck| match stuck {
        Stuck::Bytes => Error::ImageTooLarge {
            format: format.name().into(),
            size: wide(size),
            limit: limits.max_bytes,
            detail: format!("not even one pixel of it fits into {} bytes", limits.max_bytes),
        },
        Stuck::Mismatch => undecodable(format, Some(size), "its rows do not add up"),
        Stuck::Stopped(error) => error,
    })?;
    Ok(report.encoded(step))
}

/// The pixels in their final size, upright, in sRGB.
fn upright(source: Source<'_>, decoded: Decoded, target: (u32, u32)) -> Result<Pixels, Error> {
    let outline = source.outline;
    let stored = outline.orientation.turn(target);
    let mut pixels = decoded.pixels;
    if pixels.size != stored {
        pixels = resize(&pixels, stored)
            .map_err(|_| undecodable(source.format, Some(target), "its rows do not add up"))?;
    }
    source.cancel.check()?;
    let icc = match (&outline.icc, source.format) {
        (Some(body), Format::Png) => decompress_profile(body),
        (Some(profile), _) => Some(profile.clone()),
        (None, _) => decoded.icc,
    };
    Ok(colour::to_srgb(pixels.turned(outline.orientation), icc.as_deref()).simplified())
}

fn too_many_pixels(format: Format, size: (u32, u32), limits: &FitLimits) -> Result<(), Error> {
    if u64::from(size.0) * u64::from(size.1) <= limits.max_source_pixels {
        return Ok(());
    }
    let detail = format!(
        "{} x {} pixels, of at most {} (max_image_source_pixels)",
        size.0, size.1, limits.max_source_pixels
    );
    Err(Error::ImageTooLarge {
        format: format.name().into(),
        size: wide(size),
        limit: limits.max_source_pixels,
        detail,
    })
}

fn undecodable(format: Format, size: Option<(u32, u32)>, detail: &str) -> Error {
    Error::ImageUndecodable {
        format: format.name().into(),
        size: size.and_then(wide),
        detail: detail.to_owned(),
    }
}

fn wide(size: (u32, u32)) -> Option<(u64, u64)> {
    Some((size.0.into(), size.1.into()))
}

/// What is told about the source in any case.
#[derive(Clone, Copy, Debug)]
struct Report {
    format: Format,
    source_bytes: u64,
    size: (u32, u32),
    frames: u64,
}

impl Report {
    fn untouched(self) -> (Done, ImageInfo) {
        (Done::Untouched, self.info(self.format, self.size, false))
    }

    fn encoded(self, step: Step) -> (Done, ImageInfo) {
        let info = self.info(step.format, step.size, true);
        (Done::Encoded(step), info)
    }

    fn info(self, format: Format, size: (u32, u32), re_encoded: bool) -> ImageInfo {
        ImageInfo {
            format: Some(format.noun()),
            width: Some(size.0.into()),
            height: Some(size.1.into()),
            source_width: Some(self.size.0.into()),
            source_height: Some(self.size.1.into()),
            resized: Some(size != self.size),
            re_encoded: Some(re_encoded),
            frames: Some(self.frames),
            scale: Some(f64::from(size.0) / f64::from(self.size.0)),
            ..undescribed(self.format.noun(), self.source_bytes)
        }
    }
}
