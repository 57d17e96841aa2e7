//! Colours become sRGB: by the image's own profile where it has one that can be used, by the plain formula where
//! ink has none.

use moxcms::{ColorProfile, DataColorSpace, TransformOptions};

use super::pixels::{Layout, Pixels};

/// The image in sRGB (or grey), without a profile.
pub(super) fn to_srgb(pixels: Pixels, icc: Option<&[u8]>) -> Pixels {
    let converted = icc.and_then(|icc| by_profile(&pixels, icc));
    match converted {
        Some(converted) => converted,
        None if pixels.layout == Layout::Cmyk => by_formula(&pixels),
        None => pixels,
    }
}

/// By its profile; `None` where that is damaged or describes other pixels: it is dropped then, as viewers do.
fn by_profile(pixels: &Pixels, icc: &[u8]) -> Option<Pixels> {
    let profile = ColorProfile::new_from_slice(icc).ok()?;
    let (from, to, layout) = match (profile.color_space, pixels.layout) {
        (DataColorSpace::Rgb, Layout::Rgb) => (moxcms::Layout::Rgb, moxcms::Layout::Rgb, Layout::Rgb),
        (DataColorSpace::Rgb, Layout::Rgba) => (moxcms::Layout::Rgba, moxcms::Layout::Rgba, Layout::Rgba),
        (DataColorSpace::Gray, Layout::Grey) => (moxcms::Layout::Gray, moxcms::Layout::Rgb, Layout::Rgb),
        (DataColorSpace::Gray, Layout::GreyAlpha) => {
            (moxcms::Layout::GrayAlpha, moxcms::Layout::Rgba, Layout::Rgba)
        }
        // Ink travels in four channels, as RGBA does.
        (DataColorSpace::Cmyk, Layout::Cmyk) => (moxcms::Layout::Rgba, moxcms::Layout::Rgb, Layout::Rgb),
        // Greys of a colour image, stored as grey.
        (DataColorSpace::Rgb, Layout::Grey | Layout::GreyAlpha) => {
            return by_profile(&pixels.clone().coloured(), icc);
        }
        _ => return None,
    };
    let options = TransformOptions::default();
    let transform = profile.create_transform_8bit(from, &ColorProfile::new_srgb(), to, options).ok()?;
    let count = pixels.size.0 as usize * pixels.size.1 as usize;
    let mut data = vec![0; count * layout.channels()];
    transform.transform(&pixels.data, &mut data).ok()?;
    Pixels::new(pixels.size, layout, data)
}

fn by_formula(pixels: &Pixels) -> Pixels {
    let mut data = Vec::with_capacity(pixels.data.len() / 4 * 3);
    for [cyan, magenta, yellow, black] in pixels.data.as_chunks::<4>().0 {
        for ink in [cyan, magenta, yellow] {
            let light = u16::from(255 - ink) * u16::from(255 - black);
            data.push(((light + 127) / 255) as u8);
        }
    }
    Pixels { size: pixels.size, layout: Layout::Rgb, data }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ink_without_a_profile() {
        let pixels = Pixels::new((3, 1), Layout::Cmyk, vec![0, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 255]).unwrap();
        assert_eq!(to_srgb(pixels, None).data, [255, 255, 255, 0, 255, 255, 0, 0, 0]);
    }

    #[test]
    fn profiles() {
        let green = || Pixels::new((1, 1), Layout::Rgb, vec![0, 200, 0]).unwrap();
        let wide = ColorProfile::new_display_p3().encode().unwrap();
        let converted = to_srgb(green(), Some(&wide));
        assert!(converted.data[1] > 200 && converted.layout == Layout::Rgb, "{converted:?}");
        let same = ColorProfile::new_srgb().encode().unwrap();
        let kept = to_srgb(green(), Some(&same)).data;
        assert!(kept.iter().zip([0, 200, 0]).all(|(a, b): (&u8, u8)| a.abs_diff(b) <= 1), "{kept:?}");
        assert_eq!(to_srgb(green(), Some(b"no profile")), green());
        // A profile of other pixels than these.
        let grey = ColorProfile::new_gray_with_gamma(1.0).encode().unwrap();
        assert_eq!(to_srgb(green(), Some(&grey)), green());
    }
}
