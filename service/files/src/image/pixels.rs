//! Decoded pixels, eight bits a sample, and what is done to them without looking at a format: turning, dropping what
//! is not needed, and laying them on a background.

use super::exif::Orientation;

/// What a pixel consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Grey,
    GreyAlpha,
    Rgb,
    Rgba,
    /// Amounts of ink, 0 being none.
    Cmyk,
}

impl Layout {
    pub(super) fn channels(self) -> usize {
        match self {
            Layout::Grey => 1,
            Layout::GreyAlpha => 2,
            Layout::Rgb => 3,
            Layout::Rgba | Layout::Cmyk => 4,
        }
    }

    pub(super) fn has_alpha(self) -> bool {
        matches!(self, Layout::GreyAlpha | Layout::Rgba)
    }
}

/// An image in memory; `data` holds exactly its pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pixels {
    pub(super) size: (u32, u32),
    pub(super) layout: Layout,
    pub(super) data: Vec<u8>,
}

/// What lies behind pixels that show through, where a format has no transparency: white, as paper and most viewers.
pub(super) const BACKGROUND: u8 = 255;

impl Pixels {
    /// Pixels whose data have the right length.
    pub(super) fn new(size: (u32, u32), layout: Layout, data: Vec<u8>) -> Option<Self> {
        let length = (size.0 as usize).checked_mul(size.1 as usize)?.checked_mul(layout.channels())?;
        (data.len() == length).then_some(Self { size, layout, data })
    }

    /// Whether any pixel can be seen.
    pub(super) fn shows_something(&self) -> bool {
        !self.layout.has_alpha() || self.alphas().any(|alpha| alpha != 0)
    }

    fn alphas(&self) -> impl Iterator<Item = u8> {
        let channels = self.layout.channels();
        self.data.chunks_exact(channels).filter_map(move |pixel| pixel.last().copied())
    }

    /// The same image upright.
    pub(super) fn turned(self, orientation: Orientation) -> Self {
        if orientation == Orientation::Upright {
            return self;
        }
        match self.layout.channels() {
            1 => self.turned_by::<1>(orientation),
            2 => self.turned_by::<2>(orientation),
            3 => self.turned_by::<3>(orientation),
            _ => self.turned_by::<4>(orientation),
        }
    }

    fn turned_by<const CHANNELS: usize>(self, orientation: Orientation) -> Self {
        let (source, _) = self.data.as_chunks::<CHANNELS>();
        let (width, height) = (self.size.0 as usize, self.size.1 as usize);
        let size = orientation.turn(self.size);
        let mut data = Vec::with_capacity(self.data.len());
        for y in 0..size.1 as usize {
            // Where the row begins in the source, and how far apart its pixels lie there.
            let (start, step) = match orientation {
                Orientation::Upright => (y * width, 1),
                Orientation::FlipHorizontal => (y * width + width - 1, -1),
                Orientation::Rotate180 => ((height - 1 - y) * width + width - 1, -1),
                Orientation::FlipVertical => ((height - 1 - y) * width, 1),
                Orientation::Transpose => (y, width.cast_signed()),
                Orientation::Rotate90 => ((height - 1) * width + y, -width.cast_signed()),
                Orientation::Transverse => ((height - 1) * width + width - 1 - y, -width.cast_signed()),
                Orientation::Rotate270 => (width - 1 - y, width.cast_signed()),
            };
            let row = (0..size.0 as isize).map(|x| start.wrapping_add_signed(step * x));
            data.extend(row.filter_map(|at| source.get(at)).flatten());
        }
        Self { size, layout: self.layout, data }
    }

    /// The same image in the plainest layout that holds it: no alpha where all is opaque, no colour where all is grey.
    pub(super) fn simplified(self) -> Self {
        let opaque = !self.layout.has_alpha() || self.alphas().all(|alpha| alpha == 255);
        let grey = match self.layout {
            Layout::Grey | Layout::GreyAlpha => true,
            Layout::Cmyk => false,
            Layout::Rgb => all_grey::<3>(&self.data),
            Layout::Rgba => all_grey::<4>(&self.data),
        };
        match (self.layout, grey, opaque) {
            (Layout::GreyAlpha, _, true) => self.picked::<2, 1>(Layout::Grey, [0]),
            (Layout::Rgb, true, _) => self.picked::<3, 1>(Layout::Grey, [0]),
            (Layout::Rgba, true, true) => self.picked::<4, 1>(Layout::Grey, [0]),
            (Layout::Rgba, true, false) => self.picked::<4, 2>(Layout::GreyAlpha, [0, 3]),
            (Layout::Rgba, false, true) => self.picked::<4, 3>(Layout::Rgb, [0, 1, 2]),
            _ => self,
        }
    }

    /// The same image as RGB or RGBA.
    pub(super) fn coloured(self) -> Self {
        match self.layout {
            Layout::Grey => self.picked::<1, 3>(Layout::Rgb, [0, 0, 0]),
            Layout::GreyAlpha => self.picked::<2, 4>(Layout::Rgba, [0, 0, 0, 1]),
            _ => self,
        }
    }

    /// The same image on the background, without transparency.
    pub(super) fn opaque(self) -> Self {
        let size = self.size;
        let data = match self.layout {
            Layout::GreyAlpha => laid_down::<2>(&self.data),
            Layout::Rgba => laid_down::<4>(&self.data),
            _ => return self,
        };
        let layout = if self.layout == Layout::Rgba { Layout::Rgb } else { Layout::Grey };
        Self { size, layout, data }
    }

    /// The same image with some of its samples.
    fn picked<const FROM: usize, const TO: usize>(self, layout: Layout, samples: [usize; TO]) -> Self {
        let (source, _) = self.data.as_chunks::<FROM>();
        let mut data = vec![0; source.len() * TO];
        let (target, _) = data.as_chunks_mut::<TO>();
        for (to, from) in target.iter_mut().zip(source) {
            *to = samples.map(|sample| from[sample]);
        }
        Self { size: self.size, layout, data }
    }
}

fn all_grey<const CHANNELS: usize>(data: &[u8]) -> bool {
    data.as_chunks::<CHANNELS>().0.iter().all(|pixel| pixel[0] == pixel[1] && pixel[1] == pixel[2])
}

fn laid_down<const CHANNELS: usize>(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() / CHANNELS * (CHANNELS - 1));
    for pixel in data.as_chunks::<CHANNELS>().0 {
        let alpha = u16::from(pixel[CHANNELS - 1]);
        for sample in &pixel[..CHANNELS - 1] {
            let mixed = u16::from(*sample) * alpha + u16::from(BACKGROUND) * (255 - alpha);
            out.push(((mixed + 127) / 255) as u8);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grey(size: (u32, u32), data: &[u8]) -> Pixels {
        Pixels::new(size, Layout::Grey, data.to_vec()).unwrap()
    }

    #[test]
    fn every_orientation_has_its_turn() {
        // As stored: 1 2 3 / 4 5 6.
        let cases: &[(Orientation, (u32, u32), [u8; 6])] = &[
            (Orientation::Upright, (3, 2), [1, 2, 3, 4, 5, 6]),
            (Orientation::FlipHorizontal, (3, 2), [3, 2, 1, 6, 5, 4]),
            (Orientation::Rotate180, (3, 2), [6, 5, 4, 3, 2, 1]),
            (Orientation::FlipVertical, (3, 2), [4, 5, 6, 1, 2, 3]),
            (Orientation::Transpose, (2, 3), [1, 4, 2, 5, 3, 6]),
            (Orientation::Rotate90, (2, 3), [4, 1, 5, 2, 6, 3]),
            (Orientation::Transverse, (2, 3), [6, 3, 5, 2, 4, 1]),
            (Orientation::Rotate270, (2, 3), [3, 6, 2, 5, 1, 4]),
        ];
        for (orientation, size, expect) in cases {
            let turned = grey((3, 2), &[1, 2, 3, 4, 5, 6]).turned(*orientation);
            assert_eq!(turned, grey(*size, expect), "{orientation:?}");
        }
    }

    #[test]
    fn plainest_layout() {
        let cases: &[(Layout, &[u8], Layout, &[u8])] = &[
            (Layout::Rgba, &[1, 2, 3, 255], Layout::Rgb, &[1, 2, 3]),
            (Layout::Rgba, &[1, 2, 3, 254], Layout::Rgba, &[1, 2, 3, 254]),
            (Layout::Rgba, &[7, 7, 7, 255], Layout::Grey, &[7]),
            (Layout::Rgba, &[7, 7, 7, 9], Layout::GreyAlpha, &[7, 9]),
            (Layout::GreyAlpha, &[7, 255], Layout::Grey, &[7]),
            (Layout::Rgb, &[7, 7, 7], Layout::Grey, &[7]),
            (Layout::Rgb, &[7, 7, 8], Layout::Rgb, &[7, 7, 8]),
            (Layout::Grey, &[7], Layout::Grey, &[7]),
        ];
        for (layout, data, expect, result) in cases {
            let pixels = Pixels::new((1, 1), *layout, data.to_vec()).unwrap().simplified();
            assert_eq!((pixels.layout, &pixels.data[..]), (*expect, *result));
        }
    }

    #[test]
    fn what_shows_through_is_white() {
        let pixels = Pixels::new((3, 1), Layout::Rgba, vec![9, 9, 9, 0, 0, 0, 0, 128, 5, 6, 7, 255]).unwrap();
        assert_eq!(pixels.opaque().data, [255, 255, 255, 127, 127, 127, 5, 6, 7]);
    }
}
