//! The size that fits, and the way there: Lanczos3, with transparent pixels weighing nothing.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, MulDiv, PixelType, ResizeAlg, ResizeOptions, Resizer};

use super::pixels::{Layout, Pixels};

/// Something in the scaler that cannot happen with sizes and lengths that agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mismatch;

/// The largest size of the same shape within both limits; never larger than the source, never a side of 0.
pub(super) fn fit(size: (u32, u32), max_pixels: u64, max_side: u64) -> (u32, u32) {
    let (width, height) = (f64::from(size.0), f64::from(size.1));
    let (max_pixels, max_side) = (max_pixels.max(1), max_side.max(1));
    let by_side = max_side as f64 / width.max(height);
    let by_pixels = (max_pixels as f64 / (width * height)).sqrt();
    let factor = by_side.min(by_pixels);
    if factor >= 1.0 {
        return size;
    }
    let side = |side: f64| ((side * factor).round() as u32).max(1);
    let mut fitted = (side(width), side(height));
    // Rounding up may pass the limit by a row or a column.
    while u64::from(fitted.0) * u64::from(fitted.1) > max_pixels
        || u64::from(fitted.0.max(fitted.1)) > max_side
    {
        let longer = if fitted.0 >= fitted.1 { &mut fitted.0 } else { &mut fitted.1 };
        *longer -= 1;
    }
    fitted
}

fn pixel_type(layout: Layout) -> PixelType {
    match layout {
        Layout::Grey => PixelType::U8,
        Layout::GreyAlpha => PixelType::U8x2,
        Layout::Rgb => PixelType::U8x3,
        Layout::Rgba | Layout::Cmyk => PixelType::U8x4,
    }
}

fn lanczos(alpha: bool) -> ResizeOptions {
    ResizeOptions::new().resize_alg(ResizeAlg::Convolution(FilterType::Lanczos3)).use_alpha(alpha)
}

/// The image in another size.
pub(super) fn resize(pixels: &Pixels, size: (u32, u32)) -> Result<Pixels, Mismatch> {
    let kind = pixel_type(pixels.layout);
    let data = resize_plane(&pixels.data, pixels.size, kind, size, &lanczos(pixels.layout.has_alpha()))?;
    Ok(Pixels { size, layout: pixels.layout, data })
}

/// One plane of samples in another size. `extent`: how much of the source it is, where the last sample is half outside.
pub(super) fn resize_samples(
    data: &[u8],
    from: (u32, u32),
    extent: (f64, f64),
    size: (u32, u32),
) -> Result<Vec<u8>, Mismatch> {
    resize_plane(data, from, PixelType::U8, size, &lanczos(false).crop(0.0, 0.0, extent.0, extent.1))
}

fn resize_plane(
    data: &[u8],
    from: (u32, u32),
    kind: PixelType,
    size: (u32, u32),
    options: &ResizeOptions,
) -> Result<Vec<u8>, Mismatch> {
    let source = ImageRef::new(from.0, from.1, data, kind).map_err(|_| Mismatch)?;
    let mut target = Image::new(size.0, size.1, kind);
    Resizer::new().resize(&source, &mut target, options).map_err(|_| Mismatch)?;
    Ok(target.into_vec())
}

/// Scales an image that arrives row by row: each row is narrowed as it comes, so that the source never lies in memory.
pub(super) struct RowScaler {
    layout: Layout,
    from: (u32, u32),
    size: (u32, u32),
    /// Rows that wait to be narrowed together.
    strip: Vec<u8>,
    strip_rows: u32,
    /// Whether a transparent pixel has been seen: colours are premultiplied then.
    transparent: bool,
    narrow: Vec<u8>,
    resizer: Resizer,
    alpha: MulDiv,
}

/// The resizer works out its weights anew for each strip, which costs as much as narrowing some fifty rows.
const STRIP_BYTES: usize = 4 << 20;

impl RowScaler {
    pub(super) fn new(layout: Layout, from: (u32, u32), size: (u32, u32)) -> Self {
        let row = (from.0 as usize * layout.channels()).max(1);
        let strip_rows = (STRIP_BYTES / row).clamp(1, 1024) as u32;
        Self {
            layout,
            from,
            size,
            strip: Vec::with_capacity(row * strip_rows as usize),
            strip_rows,
            transparent: false,
            narrow: Vec::with_capacity(size.0 as usize * from.1 as usize * layout.channels()),
            resizer: Resizer::new(),
            alpha: MulDiv::new(),
        }
    }

    /// The bytes that it holds at most.
    pub(super) fn memory(channels: u64, from: (u32, u32), size: (u32, u32)) -> u64 {
        let strip = (u64::from(from.0) * channels).max(STRIP_BYTES as u64) * 2;
        strip + (u64::from(from.1) + u64::from(size.1) * 2) * u64::from(size.0) * channels
    }

    /// Takes the next row; whether a strip was worked off (a moment to look whether to go on).
    pub(super) fn push(&mut self, row: &[u8]) -> Result<bool, Mismatch> {
        self.strip.extend_from_slice(row);
        let full =
            self.strip.len() >= self.from.0 as usize * self.layout.channels() * self.strip_rows as usize;
        if full {
            self.narrow_strip()?;
        }
        Ok(full)
    }

    fn narrow_strip(&mut self) -> Result<(), Mismatch> {
        let kind = pixel_type(self.layout);
        let row = self.from.0 as usize * self.layout.channels();
        let rows = u32::try_from(self.strip.len() / row.max(1)).map_err(|_| Mismatch)?;
        if rows == 0 {
            return Ok(());
        }
        let channels = self.layout.channels();
        let alphas = || self.strip.chunks_exact(channels).filter_map(|pixel| pixel.last());
        if self.layout.has_alpha() && alphas().any(|alpha| *alpha != 255) {
            self.transparent = true;
            let mut strip =
                Image::from_slice_u8(self.from.0, rows, &mut self.strip, kind).map_err(|_| Mismatch)?;
            self.alpha.multiply_alpha_inplace(&mut strip).map_err(|_| Mismatch)?;
        }
        let source = ImageRef::new(self.from.0, rows, &self.strip, kind).map_err(|_| Mismatch)?;
        let start = self.narrow.len();
        self.narrow.resize(start + self.size.0 as usize * rows as usize * channels, 0);
        let mut target =
            Image::from_slice_u8(self.size.0, rows, &mut self.narrow[start..], kind).map_err(|_| Mismatch)?;
        self.resizer.resize(&source, &mut target, &lanczos(false)).map_err(|_| Mismatch)?;
        self.strip.clear();
        Ok(())
    }

    /// The scaled image, once all rows were pushed.
    pub(super) fn finish(mut self) -> Result<Pixels, Mismatch> {
        self.narrow_strip()?;
        let kind = pixel_type(self.layout);
        let source = ImageRef::new(self.size.0, self.from.1, &self.narrow, kind).map_err(|_| Mismatch)?;
        let mut target = Image::new(self.size.0, self.size.1, kind);
        self.resizer.resize(&source, &mut target, &lanczos(false)).map_err(|_| Mismatch)?;
        if self.transparent {
            self.alpha.divide_alpha_inplace(&mut target).map_err(|_| Mismatch)?;
        }
        Ok(Pixels { size: self.size, layout: self.layout, data: target.into_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_that_fit() {
        type Case = ((u32, u32), u64, u64, (u32, u32));
        let cases: &[Case] = &[
            ((100, 80), 1_000_000, 100, (100, 80)),
            ((101, 80), 1_000_000, 100, (100, 79)),
            ((400, 200), 1_000_000, 100, (100, 50)),
            ((2400, 2400), 1_150_000, 1568, (1072, 1072)),
            ((4000, 3000), 1_150_000, 1568, (1237, 929)),
            ((20_000, 1), 1_150_000, 1568, (1568, 1)),
            ((3, 9000), 1_150_000, 1568, (1, 1568)),
            ((16_000, 900), 1_150_000, 1568, (1568, 88)),
            ((10, 10), 1, 100, (1, 1)),
            ((10, 10), 0, 0, (1, 1)),
        ];
        for (size, max_pixels, max_side, expect) in cases {
            assert_eq!(fit(*size, *max_pixels, *max_side), *expect, "{size:?}");
        }
    }

    proptest! {
        #[test]
        fn every_size_fits(width in 1u32..70_000, height in 1u32..70_000, pixels in 1u64..2_000_000, side in 1u64..3_000) {
            let (w, h) = fit((width, height), pixels, side);
            prop_assert!(w >= 1 && h >= 1 && w <= width && h <= height);
            prop_assert!(u64::from(w) * u64::from(h) <= pixels && u64::from(w.max(h)) <= side);
        }
    }

    #[test]
    fn row_by_row_is_the_same_as_at_once() {
        for layout in [Layout::Grey, Layout::GreyAlpha, Layout::Rgb, Layout::Rgba] {
            let from = (1000, 700);
            let row = from.0 as usize * layout.channels();
            let data: Vec<u8> =
                (0..row * 700).map(|i| ((i * 7919) ^ (i >> 7) ^ (i / row * 3)) as u8).collect();
            let pixels = Pixels::new(from, layout, data).unwrap();
            let at_once = resize(&pixels, (310, 217)).unwrap();
            let mut scaler = RowScaler::new(layout, from, (310, 217));
            for row in pixels.data.chunks(row) {
                scaler.push(row).unwrap();
            }
            let by_rows = scaler.finish().unwrap();
            let far = at_once.data.iter().zip(&by_rows.data).filter(|(a, b)| a.abs_diff(**b) > 2).count();
            // Where alpha is near 0, rounding decides on a colour that nobody sees.
            let allowed = if layout.has_alpha() { at_once.data.len() / 20 } else { 0 };
            assert!(far <= allowed, "{layout:?}: {far} of {}", at_once.data.len());
        }
    }

    #[test]
    fn hidden_colours_do_not_bleed() {
        // Opaque red beside green that cannot be seen.
        let data: Vec<u8> =
            (0..64 * 64).flat_map(|i| if i % 64 < 33 { [200, 0, 0, 255] } else { [0, 255, 0, 0] }).collect();
        let pixels = Pixels::new((64, 64), Layout::Rgba, data).unwrap();
        let mut scaler = RowScaler::new(Layout::Rgba, (64, 64), (17, 17));
        for row in pixels.data.chunks(64 * 4) {
            scaler.push(row).unwrap();
        }
        for scaled in [resize(&pixels, (17, 17)).unwrap(), scaler.finish().unwrap()] {
            assert!(scaled.data.chunks(4).all(|pixel| pixel[3] == 0 || pixel[1] == 0));
        }
    }
}
