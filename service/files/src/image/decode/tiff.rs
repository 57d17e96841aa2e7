//! TIFF: the `tiff` crate gives samples as they are stored; here they become eight bits and one of our layouts. Grey
//! with alpha, palettes, inks and YCbCr are what scanners and paint programs write, and no other decoder here knows them.

use std::borrow::Cow;
use std::io::Cursor;

use tiff::decoder::{BufferLayoutPreference, Decoder, DecodingResult, Limits};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};

use super::super::exif;
use super::super::outline::{Detail, Tiff};
use super::super::pixels::{Layout, Pixels};
use super::{Decoded, Source, Trouble, damaged};

/// How the samples of grey are told to be: the lowest is black.
const BLACK_IS_ZERO: u16 = 1;

pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    let Detail::Tiff(detail) = &source.outline.detail else {
        return Err(damaged("its first directory is not to be found"));
    };
    // The decoder refuses palettes; what they hold are numbers, as grey is.
    let bytes = detail.palette_at.map_or(Cow::Borrowed(source.bytes), |at| {
        Cow::Owned(exif::with_short(source.bytes, at, BLACK_IS_ZERO))
    });
    let mut decoder = Decoder::new(Cursor::new(&*bytes)).map_err(trouble)?.with_limits(limits(source));
    let size = decoder.dimensions().map_err(trouble)?;
    if u64::from(size.0) * u64::from(size.1) > source.max_source_pixels {
        return Err(Trouble::TooLarge);
    }
    let colour = decoder.colortype().map_err(trouble)?;
    let mut raw = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut raw).map_err(trouble)?;
    source.cancel.check()?;
    if raw.as_buffer(0).byte_len() < layout.complete_len {
        return Err(Trouble::TooLarge);
    }
    let stretch = detail.palette_at.is_none();
    let samples = interleaved(eight_bits(raw, colour.bit_depth(), &layout, size, stretch)?, &layout);
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).ok().flatten();
    let alpha = Alpha::of(extra.as_deref());
    let pixels = if stretch {
        pixels(size, samples, colour, alpha)?
    } else {
        let colours = decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap).ok().flatten();
        by_palette(size, &samples, &colours.ok_or_else(|| damaged("its palette is missing"))?)?
    };
    let icc = decoder.find_tag(Tag::IccProfile).ok().flatten().and_then(|value| value.into_u8_vec().ok());
    Ok(Decoded { pixels, size, icc, whole: true })
}

fn limits(source: Source<'_>) -> Limits {
    let most = usize::try_from(super::memory(source)).unwrap_or(usize::MAX).saturating_add(1 << 20);
    let mut limits = Limits::default();
    limits.decoding_buffer_size = most;
    limits.intermediate_buffer_size = most;
    limits
}

fn trouble(error: TiffError) -> Trouble {
    match error {
        TiffError::LimitsExceeded => Trouble::TooLarge,
        error => damaged(error),
    }
}

/// Samples of eight bits, from the highest bits of deeper ones, stretched where they are shallower (places in a palette
/// are not). Rows of shallow samples begin at whole bytes.
fn eight_bits(
    raw: DecodingResult,
    depth: u8,
    layout: &BufferLayoutPreference,
    size: (u32, u32),
    stretch: bool,
) -> Result<Vec<u8>, Trouble> {
    Ok(match (raw, depth) {
        (DecodingResult::U8(data), 8) => data,
        (DecodingResult::U8(data), 1 | 2 | 4) => {
            let row = layout.row_stride.map_or(1, |stride| stride.get());
            let per_row = row * 8 / usize::from(depth) / size.0 as usize * size.0 as usize;
            let highest = (1u16 << depth) - 1;
            let factor = if stretch { (255 / highest) as u8 } else { 1 };
            let per_byte = 8 / depth;
            let unpacked = data.chunks(row.max(1)).flat_map(|row| {
                let samples =
                    row.iter().flat_map(|byte| (1..=per_byte).map(move |place| byte >> (8 - place * depth)));
                samples.map(|sample| (sample & highest as u8) * factor).take(per_row)
            });
            unpacked.collect()
        }
        (DecodingResult::U16(data), 16) if stretch => {
            data.into_iter().map(|sample| ((u32::from(sample) * 255 + 32_767) / 65_535) as u8).collect()
        }
        (DecodingResult::U32(data), 32) if stretch => {
            data.into_iter().map(|sample| (sample >> 24) as u8).collect()
        }
        (DecodingResult::F32(data), 32) if stretch => data.into_iter().map(of_float).collect(),
        (DecodingResult::F64(data), 64) if stretch => {
            data.into_iter().map(|sample| of_float(sample as f32)).collect()
        }
        _ => return Err(Trouble::Unsupported("tiff of an unusual depth")),
    })
}

/// From 0 to 1; what is no number is 0.
fn of_float(sample: f32) -> u8 {
    (sample.clamp(0.0, 1.0) * 255.0).round() as u8
}

/// Samples that are stored plane by plane, pixel by pixel.
fn interleaved(samples: Vec<u8>, layout: &BufferLayoutPreference) -> Vec<u8> {
    if layout.planes <= 1 {
        return samples;
    }
    let plane = samples.len() / layout.planes;
    let pixel = |at: usize| samples.iter().skip(at).step_by(plane.max(1)).take(layout.planes);
    (0..plane).flat_map(pixel).copied().collect()
}

/// What the samples beside the colour are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Alpha {
    None,
    /// Colours have been multiplied by it.
    Multiplied,
    Straight,
}

impl Alpha {
    fn of(extra: Option<&[u16]>) -> Self {
        match extra {
            Some([1, ..]) => Self::Multiplied,
            Some([2, ..]) => Self::Straight,
            _ => Self::None,
        }
    }
}

fn pixels(size: (u32, u32), samples: Vec<u8>, colour: ColorType, alpha: Alpha) -> Result<Pixels, Trouble> {
    let (layout, mut data) = match (colour, alpha) {
        (ColorType::Gray(_), _) => (Layout::Grey, samples),
        (ColorType::Multiband { num_samples, .. }, Alpha::None) => {
            (Layout::Grey, first::<1>(&samples, num_samples.into()))
        }
        (ColorType::Multiband { num_samples, .. }, _) => {
            (Layout::GreyAlpha, first::<2>(&samples, num_samples.into()))
        }
        (ColorType::RGB(_), _) => (Layout::Rgb, samples),
        // A fourth sample of which nothing is said is taken for alpha.
        (ColorType::RGBA(_), _) => (Layout::Rgba, samples),
        (ColorType::CMYK(_), _) => (Layout::Cmyk, samples),
        (ColorType::CMYKA(_), _) => (Layout::Cmyk, first::<4>(&samples, 5)),
        (ColorType::YCbCr(_), _) => {
            (Layout::Rgb, samples.as_chunks::<3>().0.iter().flat_map(of_ycbcr).collect())
        }
        _ => return Err(Trouble::Unsupported("tiff of unusual colours")),
    };
    if alpha == Alpha::Multiplied && layout.has_alpha() {
        for pixel in data.chunks_exact_mut(layout.channels()) {
            if let [colours @ .., alpha] = pixel {
                divide(colours, *alpha);
            }
        }
    }
    Pixels::new(size, layout, data).ok_or_else(|| damaged("its rows do not add up"))
}

/// The first samples of each pixel.
fn first<const KEPT: usize>(samples: &[u8], of: usize) -> Vec<u8> {
    samples
        .chunks_exact(of.max(1))
        .filter_map(|pixel| pixel.first_chunk::<KEPT>())
        .flatten()
        .copied()
        .collect()
}

fn divide(colours: &mut [u8], alpha: u8) {
    for colour in colours {
        let straight = (u16::from(*colour) * 255 + u16::from(alpha) / 2).checked_div(u16::from(alpha));
        *colour = straight.unwrap_or(0).min(255) as u8;
    }
}

/// BT.601 in the full range; sixteen bits of fraction.
fn of_ycbcr(&[luma, blue, red]: &[u8; 3]) -> [u8; 3] {
    let (y, u, v) = ((i32::from(luma) << 16) + 32_768, i32::from(blue) - 128, i32::from(red) - 128);
    [y + 91_881 * v, y - 22_554 * u - 46_802 * v, y + 116_130 * u]
        .map(|value| (value >> 16).clamp(0, 255) as u8)
}

/// Colours of sixteen bits: all reds, then all greens, then all blues.
fn by_palette(size: (u32, u32), places: &[u8], colours: &[u16]) -> Result<Pixels, Trouble> {
    let count = colours.len() / 3;
    let colour = |place: &u8| {
        let channel = |index: usize| {
            colours.get(index * count + usize::from(*place)).filter(|_| usize::from(*place) < count)
        };
        [0, 1, 2].map(|index| channel(index).map_or(0, |colour| (colour >> 8) as u8))
    };
    let data = places.iter().flat_map(colour).collect();
    Pixels::new(size, Layout::Rgb, data).ok_or_else(|| damaged("its rows do not add up"))
}

pub(super) fn memory(detail: &Tiff, source: Source<'_>) -> u64 {
    let pixels = u64::from(source.outline.size.0) * u64::from(source.outline.size.1);
    let copy = if detail.palette_at.is_some() { source.bytes.len() as u64 } else { 0 };
    // As stored, and twice in eight bits a sample, of which four are kept at most.
    pixels.saturating_mul(detail.pixel_bytes.saturating_add(8)).saturating_add(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(samples: &[u8], extra: u16) -> Pixels {
        let colour = ColorType::Multiband { bit_depth: 8, num_samples: 2 };
        pixels((2, 1), samples.to_vec(), colour, Alpha::of(Some(&[extra]))).unwrap()
    }

    #[test]
    fn what_stands_beside_grey_is_alpha_where_it_says_so() {
        let straight = grey(&[60, 128, 9, 0], 2);
        assert_eq!((straight.layout, &straight.data[..]), (Layout::GreyAlpha, &[60, 128, 9, 0][..]));
        let multiplied = grey(&[60, 120, 9, 0], 1);
        assert_eq!((multiplied.layout, &multiplied.data[..]), (Layout::GreyAlpha, &[128, 120, 0, 0][..]));
        let unknown = grey(&[60, 128, 9, 0], 0);
        assert_eq!((unknown.layout, &unknown.data[..]), (Layout::Grey, &[60, 9][..]));
    }

    #[test]
    fn places_beyond_the_palette_are_black() {
        let colours = [0xff00, 0x1000, 0, 0x2000, 0, 0x3000];
        assert_eq!(by_palette((3, 1), &[0, 1, 2], &colours).unwrap().data, [255, 0, 0, 16, 32, 48, 0, 0, 0]);
    }
}
