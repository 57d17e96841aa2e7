//! The formats that the `image` crate decodes: GIF and animated PNG frame by frame, BMP, ICO, TGA, PNM, QOI.

use std::borrow::Cow;
use std::io::Cursor;

use image::codecs::{bmp, gif, ico, png, pnm, qoi, tga};
use image::error::{ImageError, LimitErrorKind};
use image::{AnimationDecoder, DynamicImage, Frames, ImageDecoder, Limits};

use super::super::pixels::{Layout, Pixels};
use super::super::sniff::Format;
use super::{Decoded, Source, Trouble, damaged, memory};

/// How many frames are looked at for one that shows something.
const MAX_FRAMES: usize = 100;

pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    let input = || Cursor::new(source.bytes);
    match source.format {
        Format::Gif => {
            let bytes = on_a_large_screen(source);
            let mut decoder = gif::GifDecoder::new(Cursor::new(&*bytes)).map_err(trouble)?;
            decoder.set_limits(limits(source)).map_err(trouble)?;
            let icc = decoder.icc_profile().ok().flatten();
            let (pixels, whole) = first_frame(source, decoder.into_frames())?;
            Ok(Decoded { size: pixels.size, pixels, icc, whole })
        }
        Format::Bmp => still(source, bmp::BmpDecoder::new(input())),
        Format::Ico => still(source, ico::IcoDecoder::new(input())),
        Format::Tga => still(source, tga::TgaDecoder::new(input())),
        Format::Pnm => still(source, pnm::PnmDecoder::new(input())),
        Format::Qoi => still(source, qoi::QoiDecoder::new(input())),
        Format::Png | Format::Jpeg | Format::Tiff | Format::Webp => Err(Trouble::Unsupported("this")),
    }
}

/// The GIF with a screen that holds its first frame: the decoder cuts off what reaches beyond.
fn on_a_large_screen(source: Source<'_>) -> Cow<'_, [u8]> {
    let sides = [source.outline.size.0, source.outline.size.1];
    let screen: Vec<u8> =
        sides.into_iter().filter_map(|side| u16::try_from(side).ok()).flat_map(u16::to_le_bytes).collect();
    match source.bytes.get(6..10) {
        Some(declared) if declared != screen && screen.len() == 4 => {
            let mut bytes = source.bytes.to_vec();
            bytes[6..10].copy_from_slice(&screen);
            Cow::Owned(bytes)
        }
        _ => Cow::Borrowed(source.bytes),
    }
}

/// The first frame of an animated PNG that shows something, when its still picture does not.
pub(super) fn first_frame_of_png(source: Source<'_>) -> Result<Decoded, Trouble> {
    let decoder = png::PngDecoder::with_limits(Cursor::new(source.bytes), limits(source)).map_err(trouble)?;
    let (pixels, _) = first_frame(source, decoder.apng().map_err(trouble)?.into_frames())?;
    Ok(Decoded { size: pixels.size, pixels, icc: None, whole: false })
}

fn limits(source: Source<'_>) -> Limits {
    let mut limits = Limits::default();
    limits.max_alloc = Some(memory(source) + (1 << 20));
    limits
}

fn trouble(error: ImageError) -> Trouble {
    match error {
        ImageError::Limits(limit) => match limit.kind() {
            LimitErrorKind::InsufficientMemory | LimitErrorKind::DimensionError => Trouble::TooLarge,
            _ => damaged(limit),
        },
        ImageError::Unsupported(error) => damaged(error),
        error => damaged(error),
    }
}

fn first_frame(source: Source<'_>, frames: Frames<'_>) -> Result<(Pixels, bool), Trouble> {
    let mut first = None;
    for frame in frames.take(MAX_FRAMES) {
        source.cancel.check()?;
        // Damage behind a frame that is there is no reason to show none.
        let frame = match (frame, &first) {
            (Ok(frame), _) => frame,
            (Err(error), None) => return Err(trouble(error)),
            (Err(_), Some(_)) => break,
        };
        let buffer = frame.into_buffer();
        let size = buffer.dimensions();
        let Some(pixels) = Pixels::new(size, Layout::Rgba, buffer.into_raw()) else { break };
        if pixels.shows_something() {
            return Ok((pixels, true));
        }
        first.get_or_insert(pixels);
    }
    first.map(|pixels| (pixels, true)).ok_or_else(|| damaged("it holds no frame"))
}

fn still<D: ImageDecoder>(source: Source<'_>, decoder: Result<D, ImageError>) -> Result<Decoded, Trouble> {
    let mut decoder = decoder.map_err(trouble)?;
    let size = decoder.dimensions();
    if u64::from(size.0) * u64::from(size.1) > source.max_source_pixels {
        return Err(Trouble::TooLarge);
    }
    decoder.set_limits(limits(source)).map_err(trouble)?;
    let icc = decoder.icc_profile().ok().flatten();
    let image = DynamicImage::from_decoder(decoder).map_err(trouble)?;
    source.cancel.check()?;
    let (layout, data) = match image {
        DynamicImage::ImageLuma8(buffer) => (Layout::Grey, buffer.into_raw()),
        DynamicImage::ImageLumaA8(buffer) => (Layout::GreyAlpha, buffer.into_raw()),
        DynamicImage::ImageRgb8(buffer) => (Layout::Rgb, buffer.into_raw()),
        DynamicImage::ImageRgba8(buffer) => (Layout::Rgba, buffer.into_raw()),
        DynamicImage::ImageLuma16(_) => (Layout::Grey, image.into_luma8().into_raw()),
        DynamicImage::ImageLumaA16(_) => (Layout::GreyAlpha, image.into_luma_alpha8().into_raw()),
        DynamicImage::ImageRgb16(_) | DynamicImage::ImageRgb32F(_) => {
            (Layout::Rgb, image.into_rgb8().into_raw())
        }
        image => (Layout::Rgba, image.into_rgba8().into_raw()),
    };
    let pixels = Pixels::new(size, layout, data).ok_or_else(|| damaged("its rows do not add up"))?;
    Ok(Decoded { pixels, size, icc, whole: true })
}
