//! JPEG. What is to become half its size or less is scaled while it is decoded, which costs a fraction of the memory;
//! everything else, and what that decoder refuses, is decoded in full.

use jpeg_decoder::PixelFormat;
use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::JpegDecoder;

use super::super::outline::{Coding, Detail, Jpeg};
use super::super::pixels::{Layout, Pixels};
use super::{Decoded, Source, Trouble, damaged};

/// A real progressive image has about ten; each passes over all of it, and costs the file next to nothing.
const MAX_SCANS: u32 = 100;

pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    let Detail::Jpeg(detail) = &source.outline.detail else {
        return Err(damaged("it has no frame header"));
    };
    if detail.scans > MAX_SCANS {
        return Err(damaged(format!("it has {} scans, over the limit of {MAX_SCANS}", detail.scans)));
    }
    if detail.precision != 8 {
        return Err(Trouble::Unsupported("jpeg of more than 8 bits"));
    }
    let pixels = match (detail.coding, detail.components) {
        (Coding::Rare, _) => return Err(Trouble::Unsupported("lossless or arithmetic jpeg")),
        (_, 4) => ink(source, detail)?,
        _ if scales(source, detail) => scaled(source).or_else(|_| full(source))?,
        _ => full(source)?,
    };
    Ok(Decoded { pixels, size: source.outline.size, icc: None, whole: detail.ended })
}

/// Whether half the size or less is asked for, of an image that the scaling decoder does not keep whole anyway.
fn scales(source: Source<'_>, detail: &Jpeg) -> bool {
    let (size, target) = (source.outline.size, source.target);
    detail.coding == Coding::Baseline && target.0 <= size.0.div_ceil(2) && target.1 <= size.1.div_ceil(2)
}

fn scaled(source: Source<'_>) -> Result<Pixels, Trouble> {
    let mut decoder = jpeg_decoder::Decoder::new(source.bytes);
    decoder.read_info().map_err(damaged)?;
    let side = |side: u32| u16::try_from(side).map_err(|_| Trouble::TooLarge);
    // It takes the scale at which one side is large enough; both have to be.
    let mut asked = source.target;
    loop {
        let (width, height) = decoder.scale(side(asked.0)?, side(asked.1)?).map_err(damaged)?;
        if u32::from(width) >= source.target.0 && u32::from(height) >= source.target.1 {
            break;
        }
        asked = (asked.0 + u32::from(width).div_ceil(2), asked.1 + u32::from(height).div_ceil(2));
    }
    let data = decoder.decode().map_err(damaged)?;
    let info = decoder.info().ok_or_else(|| damaged("it has no frame header"))?;
    let layout = match info.pixel_format {
        PixelFormat::L8 => Layout::Grey,
        PixelFormat::RGB24 => Layout::Rgb,
        PixelFormat::CMYK32 => Layout::Cmyk,
        PixelFormat::L16 => return Err(Trouble::Unsupported("jpeg of more than 8 bits")),
    };
    let size = (info.width.into(), info.height.into());
    Pixels::new(size, layout, data).ok_or_else(|| damaged("its rows do not add up"))
}

fn full(source: Source<'_>) -> Result<Pixels, Trouble> {
    let grey = matches!(&source.outline.detail, Detail::Jpeg(detail) if detail.components == 1);
    let (space, layout) =
        if grey { (ColorSpace::Luma, Layout::Grey) } else { (ColorSpace::RGB, Layout::Rgb) };
    let size = source.outline.size;
    let options = DecoderOptions::default()
        .set_strict_mode(true)
        .set_max_width(size.0 as usize)
        .set_max_height(size.1 as usize)
        .jpeg_set_max_scans(MAX_SCANS as usize)
        .jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(source.bytes), options);
    let data = decoder.decode().map_err(damaged)?;
    Pixels::new(size, layout, data).ok_or_else(|| damaged("its rows do not add up"))
}

/// Four inks.
fn ink(source: Source<'_>, detail: &Jpeg) -> Result<Pixels, Trouble> {
    let mut pixels = scaled(source)?;
    if !detail.adobe {
        // The decoder takes all of them for Adobe's, which are stored inverted.
        for sample in &mut pixels.data {
            *sample = 255 - *sample;
        }
    }
    Ok(pixels)
}

pub(super) fn memory(detail: &Jpeg, source: Source<'_>) -> u64 {
    let (size, target) = (source.outline.size, source.target);
    let pixels = u64::from(size.0) * u64::from(size.1);
    let channels = u64::from(detail.components);
    // Coefficients of two bytes, and the samples made of them.
    if detail.coding == Coding::Progressive {
        return pixels * channels * 3;
    }
    if scales(source, detail) {
        let scaled = u64::from(target.0) * u64::from(target.1) * 4;
        return scaled * channels * 2 + u64::from(size.0) * 64;
    }
    pixels * channels * 2
}
