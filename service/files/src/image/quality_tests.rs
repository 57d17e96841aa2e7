//! What the short ways cost in quality: scaling while decoding, row by row, or plane by plane, against a full decode,
//! Lanczos3 and the same encoder. Both are held against the picture that the source was made of.

use std::time::Duration;

use filectx_openapi::Limits;

use super::decode::{Source, decode, jpeg};
use super::encode::{Way, encode};
use super::outline::outline;
use super::pixels::{Layout, Pixels};
use super::pool::ImagePool;
use super::scale::resize;
use super::{FitLimits, Format, fit};
use crate::Cancel;

const SIZE: (u32, u32) = (1200, 900);
/// As a photo of 12 megapixels to the default limits, and where there is less to shrink.
const SIDES: [u64; 2] = [370, 700];

struct Random(u32);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) % end
    }
}

/// Soft shapes of many sizes, edges, and a little grain, as a camera sees them.
fn photo() -> Pixels {
    let mut random = Random(7);
    let mut planes = vec![vec![100.0f32; (SIZE.0 * SIZE.1) as usize]; 3];
    for (cell, strength) in [(300, 70.0), (120, 50.0), (40, 30.0), (12, 16.0), (4, 8.0)] {
        let columns = SIZE.0 / cell + 3;
        for plane in &mut planes {
            let knots: Vec<f32> = (0..columns * (SIZE.1 / cell + 3))
                .map(|_| random.below(1000) as f32 / 1000.0 - 0.4)
                .collect();
            for (at, sample) in plane.iter_mut().enumerate() {
                let (x, y) = (at as u32 % SIZE.0, at as u32 / SIZE.0);
                let (left, top) = (x / cell, y / cell);
                let (fx, fy) = ((x % cell) as f32 / cell as f32, (y % cell) as f32 / cell as f32);
                let knot = |dx, dy| knots[((top + dy) * columns + left + dx) as usize];
                let upper = knot(0, 0) * (1.0 - fx) + knot(1, 0) * fx;
                let lower = knot(0, 1) * (1.0 - fx) + knot(1, 1) * fx;
                *sample += strength * (upper * (1.0 - fy) + lower * fy);
            }
        }
    }
    let edge = |x: u32, y: u32| (x * 2 + y) % 700 < 250 && x > y;
    let data = (0..SIZE.0 * SIZE.1).flat_map(|at| {
        let light = if edge(at % SIZE.0, at / SIZE.0) { 0.55 } else { 1.0 };
        [0, 1, 2].map(|channel| (planes[channel][at as usize] * light) as u8)
    });
    Pixels::new(SIZE, Layout::Rgb, data.collect()).unwrap()
}

/// Flat areas and rows of small strokes, as text on a screen.
fn screenshot() -> Pixels {
    let mut random = Random(3);
    let mut pixels = vec![[250u8, 250, 252]; (SIZE.0 * SIZE.1) as usize];
    let mut fill = |left: u32, top: u32, width: u32, height: u32, colour: [u8; 3]| {
        for y in top..(top + height).min(SIZE.1) {
            for x in left..(left + width).min(SIZE.0) {
                pixels[(y * SIZE.0 + x) as usize] = colour;
            }
        }
    };
    fill(0, 0, SIZE.0, 40, [40, 44, 52]);
    fill(0, 40, 200, SIZE.1, [33, 37, 43]);
    for line in 0..48 {
        let (mut x, colour) = (220, [[30, 30, 30], [160, 20, 120], [20, 90, 180]][random.below(3) as usize]);
        while x < 700 + random.below(480) {
            for _ in 0..3 {
                let (dx, dy) = (random.below(6), random.below(8));
                let upright = random.below(2) == 0;
                fill(
                    x + dx,
                    52 + line * 17 + dy,
                    if upright { 1 } else { 5 },
                    if upright { 8 } else { 1 },
                    colour,
                );
            }
            x += 9 + 6 * (random.below(6) / 5);
        }
    }
    Pixels::new(SIZE, Layout::Rgb, pixels.concat()).unwrap()
}

fn full(bytes: &[u8], format: Format) -> Pixels {
    decoded(bytes, format, None)
}

/// In full, or as a large JPEG is decoded on its way to this size.
fn decoded(bytes: &[u8], format: Format, towards: Option<(u32, u32)>) -> Pixels {
    let outline = outline(bytes, format).unwrap();
    let cancel = Cancel::after(Duration::from_secs(600));
    let target = towards.unwrap_or(outline.size);
    let source =
        Source { bytes, format, outline: &outline, target, max_source_pixels: 1 << 22, cancel: &cancel };
    let pixels = match towards {
        Some(_) => jpeg::scaled(source).unwrap(),
        None => decode(source).unwrap().pixels,
    };
    pixels.coloured()
}

fn luma(pixels: &Pixels) -> Vec<f64> {
    let weighed = |pixel: &[u8; 3]| {
        f64::from(pixel[0]) * 0.299 + f64::from(pixel[1]) * 0.587 + f64::from(pixel[2]) * 0.114
    };
    pixels.data.as_chunks::<3>().0.iter().map(weighed).collect()
}

/// Lanczos3 without rounding on the way: what both come near to.
fn ideal(luma: &[f64], size: (u32, u32)) -> Vec<f64> {
    let narrow = shrunk(luma, SIZE.0 as usize, size.0 as usize);
    let narrow = transposed(&narrow, size.0 as usize);
    let small = shrunk(&narrow, SIZE.1 as usize, size.1 as usize);
    transposed(&small, size.1 as usize).into_iter().map(|sample| sample.clamp(0.0, 255.0)).collect()
}

/// Each row with fewer samples.
fn shrunk(samples: &[f64], from: usize, to: usize) -> Vec<f64> {
    let scale = from as f64 / to as f64;
    let sinc =
        |x: f64| if x == 0.0 { 1.0 } else { (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x) };
    let taps = |at: usize| {
        let centre = (at as f64 + 0.5) * scale;
        let first = (centre - 3.0 * scale).ceil().max(0.0) as usize;
        let last = ((centre + 3.0 * scale) as usize).min(from - 1);
        let weight = |x: usize| {
            let far = (x as f64 + 0.5 - centre) / scale;
            if far.abs() < 3.0 { sinc(far) * sinc(far / 3.0) } else { 0.0 }
        };
        (first, (first..=last).map(weight).collect::<Vec<f64>>())
    };
    let taps: Vec<(usize, Vec<f64>)> = (0..to).map(taps).collect();
    let sample = |row: &[f64], (first, weights): &(usize, Vec<f64>)| {
        let sum: f64 = weights.iter().zip(&row[*first..]).map(|(weight, sample)| weight * sample).sum();
        sum / weights.iter().sum::<f64>()
    };
    samples.chunks(from).flat_map(|row| taps.iter().map(move |taps| sample(row, taps))).collect()
}

fn transposed(samples: &[f64], width: usize) -> Vec<f64> {
    (0..width).flat_map(|x| samples.iter().skip(x).step_by(width)).copied().collect()
}

/// In decibels; more than 50 is nothing that anybody sees.
fn psnr(a: &[f64], b: &[f64]) -> f64 {
    let error: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / a.len() as f64;
    (10.0 * (255.0f64.powi(2) / error.max(1e-9)).log10()).min(50.0)
}

/// Over windows of 8 x 8 pixels, every fourth.
fn ssim(a: &[f64], b: &[f64], width: usize) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    let height = a.len() / width;
    for top in (0..height - 8).step_by(4) {
        for left in (0..width - 8).step_by(4) {
            let at = (0..64).map(|index| (top + index / 8) * width + left + index % 8);
            let (mut ma, mut mb, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0);
            for at in at {
                let (x, y) = (a[at], b[at]);
                ma += x / 64.0;
                mb += y / 64.0;
                aa += x * x / 64.0;
                bb += y * y / 64.0;
                ab += x * y / 64.0;
            }
            let (va, vb, cov) = (aa - ma * ma, bb - mb * mb, ab - ma * mb);
            let (c1, c2) = ((0.01f64 * 255.0).powi(2), (0.03f64 * 255.0).powi(2));
            sum += (2.0 * ma * mb + c1) * (2.0 * cov + c2) / ((ma * ma + mb * mb + c1) * (va + vb + c2));
            count += 1.0;
        }
    }
    sum / count
}

/// PSNR and SSIM of the luma.
fn quality(name: &str, ours: &Pixels, ideal: &[f64]) -> (f64, f64) {
    let width = ours.size.0 as usize;
    let ours = luma(ours);
    let (psnr, ssim) = (psnr(&ours, ideal), ssim(&ours, ideal, width));
    println!("{name}: PSNR {psnr:.2} dB, SSIM {ssim:.4}");
    (psnr, ssim)
}

fn check(name: &str, picture: &Pixels, side: u64, source: Way, result: Way) {
    let limits =
        FitLimits { max_pixels: 1 << 20, max_side: side, max_bytes: 1 << 22, max_source_pixels: 1 << 22 };
    let bytes = encode(picture, source).unwrap();
    let format = source.format();
    let name = format!("{name} {format:?} to {side}");
    let pool = ImagePool::new(&Limits::default(), 1);
    let cancel = Cancel::after(Duration::from_secs(600));
    let ours = fit(bytes.clone(), format, &limits, &pool, &cancel).unwrap();
    assert_eq!(ours.format, result.format());
    let ours = full(&ours.bytes, result.format());
    let size = ours.size;
    let ideal = ideal(&luma(picture), size);
    let again =
        |pixels: &Pixels| full(&encode(&resize(pixels, size).unwrap(), result).unwrap(), result.format());
    let reference = quality(&format!("{name}, at length"), &again(&full(&bytes, format)), &ideal);
    let mut found = vec![quality(&format!("{name}, fitted"), &ours, &ideal)];
    if format == Format::Jpeg && name.starts_with("photo") && side < 400 {
        let pixels = decoded(&bytes, format, Some(size));
        assert!(pixels.size.0 < picture.size.0, "it was not scaled while it was decoded");
        found.push(quality(&format!("{name}, as a large one"), &again(&pixels), &ideal));
    }
    for (psnr, ssim) in found {
        assert!(
            psnr >= reference.0 - 0.5 && ssim >= reference.1 - 0.005,
            "{name}: {psnr} {ssim} of {reference:?}"
        );
    }
}

#[test]
fn short_ways_lose_nothing_that_counts() {
    for (name, picture) in [("photo", photo()), ("screenshot", screenshot())] {
        for side in SIDES {
            let jpeg = |quality, subsampled| Way::Jpeg { quality, subsampled };
            check(name, &picture, side, Way::PngFast, Way::PngFast);
            check(name, &picture, side, jpeg(92, true), jpeg(85, true));
            check(name, &picture, side, jpeg(92, false), jpeg(85, false));
            check(name, &picture, side, Way::Webp { quality: 90 }, Way::Webp { quality: 85 });
        }
    }
}
