//! JPEG. A large photo that is to become a third of its size or less is scaled while it is decoded, which costs a
//! fraction of the time and memory; everything else, and what that decoder refuses, is decoded in full.

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

/// A display of 4K has 8.3 million pixels. What has more is a photo; in a screenshot, scaling while decoding would cost
/// sharp edges 2 dB.
const LARGE: u64 = 9_000_000;

/// The size that the scaling decoder must not go below: sharp edges suffer where Lanczos is left too little to do.
fn enough(source: Source<'_>) -> (u32, u32) {
    let (size, target) = (source.outline.size, source.target);
    ((target.0 + target.0.div_ceil(2)).min(size.0), (target.1 + target.1.div_ceil(2)).min(size.1))
}

/// Whether half the size is enough, of an image that the scaling decoder does not keep whole anyway.
fn scales(source: Source<'_>, detail: &Jpeg) -> bool {
    let (size, enough) = (source.outline.size, enough(source));
    let large = u64::from(size.0) * u64::from(size.1) > LARGE;
    large
        && detail.coding == Coding::Baseline
        && enough.0 <= size.0.div_ceil(2)
        && enough.1 <= size.1.div_ceil(2)
}

pub(in super::super) fn scaled(source: Source<'_>) -> Result<Pixels, Trouble> {
    let mut decoder = jpeg_decoder::Decoder::new(source.bytes);
    decoder.read_info().map_err(damaged)?;
    let side = |side: u32| u16::try_from(side).map_err(|_| Trouble::TooLarge);
    // It takes the scale at which one side is large enough; both have to be.
    let least = enough(source);
    let mut asked = least;
    loop {
        let (width, height) = decoder.scale(side(asked.0)?, side(asked.1)?).map_err(damaged)?;
        if u32::from(width) >= least.0 && u32::from(height) >= least.1 {
            break;
        }
        let more = |asked: u32, got: u16, size: u32| (asked + u32::from(got).div_ceil(2)).min(size);
        let next =
            (more(asked.0, width, source.outline.size.0), more(asked.1, height, source.outline.size.1));
        if next == asked {
            // A line of pixels has a side that is large enough at every scale. It is decoded as it is.
            decoder = jpeg_decoder::Decoder::new(source.bytes);
            break;
        }
        asked = next;
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
        // At most half of each side, and less than three times what is wanted.
        let scaled =
            (u64::from(target.0) * u64::from(target.1) * 9).min(pixels / 4 + u64::from(size.0 + size.1));
        return scaled * channels * 2 + u64::from(size.0) * 64;
    }
    pixels * channels * 2
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use filectx_openapi::Limits;

    use super::super::super::sniff::Format;
    use super::super::super::{FitLimits, ImagePool, fit};
    use crate::Cancel;

    /// Each scale keeps a side of one pixel, so that no scale seems too small.
    #[test]
    fn lines_of_ink_come_to_an_end() {
        let limits =
            FitLimits { max_pixels: 1 << 20, max_side: 64, max_bytes: 1 << 20, max_source_pixels: 1 << 20 };
        let pool = ImagePool::new(&Limits::default(), 1);
        for (width, height) in [(90, 1), (1, 90), (1700, 2), (90, 90)] {
            let mut bytes = Vec::new();
            let encoder = jpeg_encoder::Encoder::new(&mut bytes, 80);
            let ink = vec![100; usize::from(width) * usize::from(height) * 4];
            encoder.encode(&ink, width, height, jpeg_encoder::ColorType::Cmyk).unwrap();
            let cancel = Cancel::after(Duration::from_secs(60));
            let fitted = fit(bytes, Format::Jpeg, &limits, &pool, &cancel).unwrap();
            assert_eq!(fitted.info.width.max(fitted.info.height), Some(64), "{width}x{height}");
        }
    }
}
