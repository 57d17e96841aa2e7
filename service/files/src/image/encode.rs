//! From pixels to bytes, each format by its encoder.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use jpeg_encoder::{ColorType as JpegColour, SamplingFactor};
use png::{BitDepth, ColorType, DeflateCompression, Filter};
use webpx::{EncoderConfig, Unstoppable};

use super::pixels::{Layout, Pixels};
use super::sniff::Format;

/// One way to encode an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Fast, a little larger.
    PngFast,
    /// Slower and smaller; with a palette where the colours fit one.
    PngSmall,
    Jpeg {
        quality: u8,
        subsampled: bool,
    },
    WebpLossless,
    Webp {
        quality: u8,
    },
    Gif,
}

/// An image that this format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unfit;

impl Way {
    /// The format that it makes.
    pub(super) fn format(self) -> Format {
        match self {
            Way::PngFast | Way::PngSmall => Format::Png,
            Way::Jpeg { .. } => Format::Jpeg,
            Way::WebpLossless | Way::Webp { .. } => Format::Webp,
            Way::Gif => Format::Gif,
        }
    }
}

/// Encodes the image. It has been simplified, and is no ink.
pub(super) fn encode(pixels: &Pixels, way: Way) -> Result<Vec<u8>, Unfit> {
    match way {
        Way::PngFast => png(pixels, DeflateCompression::FdeflateUltraFast, Filter::Adaptive),
        Way::PngSmall => match palette(pixels) {
            Some(palette) => png_with_palette(pixels, &palette),
            None => png_small(pixels),
        },
        Way::Jpeg { quality, subsampled } => jpeg(pixels, quality, subsampled),
        Way::WebpLossless => webp(pixels, &EncoderConfig::new_lossless_level(1)),
        Way::Webp { quality } => webp(pixels, &EncoderConfig::new().quality(f32::from(quality)).method(0)),
        Way::Gif => gif(pixels),
    }
}

/// Of deflate's levels: those above it take several times as long and gain little, or nothing.
const SMALL: DeflateCompression = DeflateCompression::Level(2);

/// Flat colours, as of a screen, are smallest as they are: filters only disturb the repeats. Everything else needs them.
fn png_small(pixels: &Pixels) -> Result<Vec<u8>, Unfit> {
    let plain = png(pixels, SMALL, Filter::NoFilter)?;
    if plain.len() < pixels.data.len() / 4 {
        return Ok(plain);
    }
    let filtered = png(pixels, SMALL, Filter::Adaptive)?;
    Ok(if filtered.len() < plain.len() { filtered } else { plain })
}

fn png(pixels: &Pixels, compression: DeflateCompression, filter: Filter) -> Result<Vec<u8>, Unfit> {
    let colour = match pixels.layout {
        Layout::Grey => ColorType::Grayscale,
        Layout::GreyAlpha => ColorType::GrayscaleAlpha,
        Layout::Rgb => ColorType::Rgb,
        Layout::Rgba => ColorType::Rgba,
        Layout::Cmyk => return Err(Unfit),
    };
    let mut out = Vec::with_capacity(pixels.data.len() / 2);
    let mut encoder = png::Encoder::new(&mut out, pixels.size.0, pixels.size.1);
    encoder.set_color(colour);
    encoder.set_depth(BitDepth::Eight);
    encoder.set_deflate_compression(compression);
    encoder.set_filter(filter);
    let mut writer = encoder.write_header().map_err(|_| Unfit)?;
    writer.write_image_data(&pixels.data).map_err(|_| Unfit)?;
    writer.finish().map_err(|_| Unfit)?;
    Ok(out)
}

/// The colours of an image that has at most 256, and each pixel's place among them.
struct Palette {
    colours: Vec<[u8; 4]>,
    indexes: Vec<u8>,
}

fn palette(pixels: &Pixels) -> Option<Palette> {
    let coloured = match pixels.layout {
        Layout::Rgb => |pixel: &[u8]| [pixel[0], pixel[1], pixel[2], 255],
        Layout::Rgba => |pixel: &[u8]| [pixel[0], pixel[1], pixel[2], pixel[3]],
        // Grey needs no palette, and grey with alpha is rare.
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => return None,
    };
    let mut found: HashMap<[u8; 4], u8> = HashMap::new();
    let mut colours = Vec::new();
    let mut indexes = Vec::with_capacity(pixels.size.0 as usize * pixels.size.1 as usize);
    let mut last = ([0; 4], None);
    for pixel in pixels.data.chunks_exact(pixels.layout.channels()) {
        let colour = coloured(pixel);
        let index = match (last, found.entry(colour)) {
            ((same, Some(index)), _) if same == colour => index,
            (_, Entry::Occupied(entry)) => *entry.get(),
            (_, Entry::Vacant(entry)) => {
                let index = u8::try_from(colours.len()).ok()?;
                colours.push(colour);
                *entry.insert(index)
            }
        };
        last = (colour, Some(index));
        indexes.push(index);
    }
    Some(Palette { colours, indexes })
}

fn png_with_palette(pixels: &Pixels, palette: &Palette) -> Result<Vec<u8>, Unfit> {
    let mut out = Vec::with_capacity(palette.indexes.len() / 4);
    let mut encoder = png::Encoder::new(&mut out, pixels.size.0, pixels.size.1);
    encoder.set_color(ColorType::Indexed);
    encoder.set_deflate_compression(SMALL);
    encoder.set_filter(Filter::NoFilter);
    encoder.set_palette(
        palette.colours.iter().flat_map(|[red, green, blue, _]| [*red, *green, *blue]).collect::<Vec<_>>(),
    );
    if palette.colours.iter().any(|colour| colour[3] != 255) {
        encoder.set_trns(palette.colours.iter().map(|colour| colour[3]).collect::<Vec<_>>());
    }
    let (depth, per_byte) = match palette.colours.len() {
        0..=2 => (BitDepth::One, 8),
        3..=4 => (BitDepth::Two, 4),
        5..=16 => (BitDepth::Four, 2),
        _ => (BitDepth::Eight, 1),
    };
    encoder.set_depth(depth);
    let mut writer = encoder.write_header().map_err(|_| Unfit)?;
    let rows = palette.indexes.chunks(pixels.size.0 as usize);
    let packed: Vec<u8> =
        rows.flat_map(|row| row.chunks(per_byte).map(move |group| pack(group, per_byte))).collect();
    writer.write_image_data(&packed).map_err(|_| Unfit)?;
    writer.finish().map_err(|_| Unfit)?;
    Ok(out)
}

/// Several indexes in one byte, the first one highest.
fn pack(group: &[u8], per_byte: usize) -> u8 {
    let bits = 8 / per_byte;
    let byte = group.iter().fold(0u16, |byte, index| byte << bits | u16::from(*index));
    (byte << (bits * (per_byte - group.len()))) as u8
}

fn jpeg(pixels: &Pixels, quality: u8, subsampled: bool) -> Result<Vec<u8>, Unfit> {
    let opaque;
    let pixels = if pixels.layout.has_alpha() {
        opaque = pixels.clone().opaque();
        &opaque
    } else {
        pixels
    };
    let colour = match pixels.layout {
        Layout::Grey => JpegColour::Luma,
        Layout::Rgb => JpegColour::Rgb,
        Layout::GreyAlpha | Layout::Rgba | Layout::Cmyk => return Err(Unfit),
    };
    let (Ok(width), Ok(height)) = (u16::try_from(pixels.size.0), u16::try_from(pixels.size.1)) else {
        return Err(Unfit);
    };
    let mut out = Vec::with_capacity(pixels.data.len() / 8);
    let mut encoder = jpeg_encoder::Encoder::new(&mut out, quality);
    encoder.set_sampling_factor(if subsampled { SamplingFactor::F_2_2 } else { SamplingFactor::F_1_1 });
    encoder.encode(&pixels.data, width, height, colour).map_err(|_| Unfit)?;
    Ok(out)
}

fn webp(pixels: &Pixels, config: &EncoderConfig) -> Result<Vec<u8>, Unfit> {
    let (width, height) = pixels.size;
    let coloured;
    let pixels = if matches!(pixels.layout, Layout::Grey | Layout::GreyAlpha) {
        coloured = pixels.clone().coloured();
        &coloured
    } else {
        pixels
    };
    match pixels.layout {
        Layout::Rgb => config.encode_rgb(&pixels.data, width, height, Unstoppable),
        Layout::Rgba => config.encode_rgba(&pixels.data, width, height, Unstoppable),
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => return Err(Unfit),
    }
    .map_err(|_| Unfit)
}

/// GIF: at most 256 colours, chosen by NeuQuant where there are more; what is less than half opaque is transparent.
fn gif(pixels: &Pixels) -> Result<Vec<u8>, Unfit> {
    let (Ok(width), Ok(height)) = (u16::try_from(pixels.size.0), u16::try_from(pixels.size.1)) else {
        return Err(Unfit);
    };
    let coloured = pixels.clone().coloured();
    let mut rgba = match coloured.layout {
        Layout::Rgba => coloured.data,
        Layout::Rgb => coloured
            .data
            .as_chunks::<3>()
            .0
            .iter()
            .flat_map(|[red, green, blue]| [*red, *green, *blue, 255])
            .collect(),
        Layout::Grey | Layout::GreyAlpha | Layout::Cmyk => return Err(Unfit),
    };
    for pixel in rgba.as_chunks_mut::<4>().0 {
        *pixel = if pixel[3] < 128 { [0; 4] } else { [pixel[0], pixel[1], pixel[2], 255] };
    }
    let frame = gif::Frame::from_rgba_speed(width, height, &mut rgba, 10);
    let mut out = Vec::new();
    let mut encoder = gif::Encoder::new(&mut out, width, height, &[]).map_err(|_| Unfit)?;
    encoder.write_frame(&frame).map_err(|_| Unfit)?;
    drop(encoder);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixels(layout: Layout, colours: u32) -> Pixels {
        let size = (37, 23);
        let data = (0..37 * 23u32)
            .flat_map(|at| {
                let colour = (at * 31 + at / 37) % colours;
                let all = [
                    (colour * 7) as u8,
                    (colour / 3) as u8,
                    (colour * 5) as u8,
                    if at % 5 == 0 { 0 } else { 255 },
                ];
                match layout {
                    Layout::Grey => vec![all[0]],
                    Layout::GreyAlpha => vec![all[0], all[3]],
                    Layout::Rgb => all[..3].to_vec(),
                    _ => all.to_vec(),
                }
            })
            .collect();
        Pixels::new(size, layout, data).unwrap()
    }

    /// Each lossless way gives back what went in.
    #[test]
    fn lossless_ways() {
        for colours in [1, 2, 3, 5, 17, 200, 3000] {
            for layout in [Layout::Grey, Layout::GreyAlpha, Layout::Rgb, Layout::Rgba] {
                let pixels = pixels(layout, colours);
                for way in [Way::PngFast, Way::PngSmall] {
                    let bytes = encode(&pixels, way).unwrap();
                    let back = image::load_from_memory(&bytes).unwrap().into_rgba8().into_raw();
                    let expect = pixels.clone().coloured();
                    let expect = if expect.layout == Layout::Rgb {
                        expect.data.chunks(3).flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect()
                    } else {
                        expect.data
                    };
                    assert!(back == expect, "{layout:?} {colours} {way:?}");
                }
            }
        }
    }

    #[test]
    fn every_way_makes_its_format() {
        let ways = [
            Way::PngFast,
            Way::PngSmall,
            Way::Jpeg { quality: 80, subsampled: true },
            Way::WebpLossless,
            Way::Webp { quality: 80 },
            Way::Gif,
        ];
        for layout in [Layout::Grey, Layout::GreyAlpha, Layout::Rgb, Layout::Rgba] {
            for way in ways {
                let bytes = encode(&pixels(layout, 3000), way).unwrap();
                let sniffed = super::super::sniff(&bytes, b"");
                assert_eq!(sniffed, Some(super::super::Sniffed::Image(way.format())), "{layout:?} {way:?}");
            }
        }
    }
}
