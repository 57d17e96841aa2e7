//! WebP. A lossy picture without transparency is scaled plane by plane as it was coded, which keeps less in memory
//! and loses less than the way over RGB.

use webpx::{AnimationDecoder, ColorMode, Decoder, DecoderConfig, Limits, YuvPlanes};

use super::super::outline::{Detail, Webp};
use super::super::pixels::{Layout, Pixels};
use super::super::scale;
use super::{Decoded, Source, Trouble, damaged};

/// How many frames are looked at for one that shows something.
const MAX_FRAMES: usize = 100;

pub(super) fn decode(source: Source<'_>) -> Result<Decoded, Trouble> {
    let Detail::Webp(detail) = &source.outline.detail else {
        return Err(damaged("it has no picture"));
    };
    let size = source.outline.size;
    let pixels = if detail.animated {
        first_frame(source)?
    } else if !detail.lossless && !detail.alpha && source.target != size {
        by_planes(source)?
    } else {
        at_once(source, detail.alpha)?
    };
    Ok(Decoded { pixels, size, icc: None, whole: true })
}

fn decoder(source: Source<'_>) -> Result<Decoder<'_>, Trouble> {
    let decoder = Decoder::new(source.bytes).map_err(damaged)?;
    if (decoder.info().width, decoder.info().height) != source.outline.size {
        return Err(damaged("it declares two sizes"));
    }
    // Its own limits would be others than ours, which have been kept.
    Ok(decoder.config(DecoderConfig::new().limits(Limits::none())))
}

fn at_once(source: Source<'_>, alpha: bool) -> Result<Pixels, Trouble> {
    let decoder = decoder(source)?;
    let (layout, (data, width, height)) = if alpha {
        (Layout::Rgba, decoder.decode_rgba_raw().map_err(damaged)?)
    } else {
        (Layout::Rgb, decoder.decode_rgb_raw().map_err(damaged)?)
    };
    Pixels::new((width, height), layout, data).ok_or_else(|| damaged("its rows do not add up"))
}

fn by_planes(source: Source<'_>) -> Result<Pixels, Trouble> {
    let YuvPlanes { y, y_stride, u, u_stride, v, v_stride, width, height, .. } =
        decoder(source)?.decode_yuv().map_err(damaged)?;
    let halves = (width.div_ceil(2), height.div_ceil(2));
    if y_stride != width as usize || u_stride != halves.0 as usize || v_stride != halves.0 as usize {
        return Err(damaged("its rows do not add up"));
    }
    // Where a side is odd, the last colour sample lies half outside.
    let extent = (f64::from(width) / 2.0, f64::from(height) / 2.0);
    let target = source.target;
    let scaled = |plane: Vec<u8>| scale::resize_samples(&plane, halves, extent, target);
    let luma = scale::resize_samples(&y, (width, height), (width.into(), height.into()), target)?;
    drop(y);
    let (blue, red) = (scaled(u)?, scaled(v)?);
    Ok(Pixels { size: target, layout: Layout::Rgb, data: to_rgb(&luma, &blue, &red) })
}

/// BT.601 in the narrow range, as WebP has it; sixteen bits of fraction.
fn to_rgb(luma: &[u8], blue: &[u8], red: &[u8]) -> Vec<u8> {
    let mut rgb = vec![0; luma.len() * 3];
    for (((pixel, y), u), v) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(luma).zip(blue).zip(red) {
        let (y, u, v) = ((i32::from(*y) - 16) * 76_309 + 32_768, i32::from(*u) - 128, i32::from(*v) - 128);
        let sample = |value: i32| (value >> 16).clamp(0, 255) as u8;
        *pixel = [sample(y + 104_597 * v), sample(y - 25_675 * u - 53_279 * v), sample(y + 132_201 * u)];
    }
    rgb
}

fn first_frame(source: Source<'_>) -> Result<Pixels, Trouble> {
    let mut decoder =
        AnimationDecoder::with_options_limits(source.bytes, ColorMode::Rgba, false, &Limits::none())
            .map_err(damaged)?;
    if (decoder.info().width, decoder.info().height) != source.outline.size {
        return Err(damaged("it declares two sizes"));
    }
    let mut first = None;
    for _ in 0..MAX_FRAMES {
        source.cancel.check()?;
        let Some(frame) = decoder.next_frame().map_err(damaged)? else { break };
        let Some(pixels) = Pixels::new((frame.width, frame.height), Layout::Rgba, frame.data) else { break };
        if pixels.shows_something() {
            return Ok(pixels);
        }
        first.get_or_insert(pixels);
    }
    first.ok_or_else(|| damaged("it holds no frame"))
}

pub(super) fn memory(detail: &Webp, pixels: u64) -> u64 {
    match (detail.animated, detail.lossless, detail.alpha) {
        // The canvas, the one before it, the frame, and its copy.
        (true, _, _) => pixels * 16,
        (false, true, _) | (false, false, true) => pixels * 12,
        (false, false, false) => pixels * 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_beyond_their_chunk_come_back_as_an_image() {
        use super::super::super::sniff::Format;
        use super::super::super::{FitLimits, ImagePool, fit};
        let found = include_bytes!("../../../../../tests/fuzz/seeds/image/beyond-its-chunk.webp");
        let limits = FitLimits { max_pixels: 100, max_side: 10, max_bytes: 9_999, max_source_pixels: 100 };
        let pool = ImagePool::new(&filectx_openapi::Limits::default(), 1);
        let cancel = crate::Cancel::after(std::time::Duration::from_secs(60));
        let fitted = fit(found.to_vec(), Format::Webp, &limits, &pool, &cancel).unwrap();
        let again = fit(fitted.bytes.clone(), fitted.format, &limits, &pool, &cancel).unwrap();
        assert_eq!(again.bytes, fitted.bytes);
    }

    #[test]
    fn colours_of_the_narrow_range() {
        let rgb = to_rgb(&[16, 235, 81, 145, 41], &[128, 128, 90, 54, 240], &[128, 128, 240, 34, 110]);
        let expect = [[0, 0, 0], [255, 255, 255], [255, 0, 0], [0, 255, 0], [0, 0, 255]];
        for (found, expect) in rgb.chunks(3).zip(expect) {
            assert!(
                found.iter().zip(expect).all(|(a, b): (&u8, u8)| a.abs_diff(b) <= 2),
                "{found:?} {expect:?}"
            );
        }
    }
}
