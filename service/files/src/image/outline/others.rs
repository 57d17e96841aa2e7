//! The size that the formats declare which are only sources: BMP, TIFF, ICO, TGA, PNM, QOI.

use super::super::bytes::Endian;
use super::super::exif;
use super::super::pnm as pnm_header;
use super::{Damaged, Detail, Outline};

const LITTLE: Endian = Endian::Little;
/// What the first directory of a TIFF says of its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Tiff {
    /// Bytes of a pixel.
    pub(in super::super) pixel_bytes: u64,
    /// Where it stands that pixels are places in a palette, if they are.
    pub(in super::super) palette_at: Option<usize>,
}

const SHORT: Damaged = Damaged("it ends inside its header");

fn of_size(width: u32, height: u32) -> Outline {
    Outline { size: (width, height), frames: Some(1), ..Outline::default() }
}

pub(super) fn bmp(bytes: &[u8]) -> Result<Outline, Damaged> {
    let size = if LITTLE.u32(bytes, 14) == Some(12) {
        LITTLE.u16(bytes, 18).map(u32::from).zip(LITTLE.u16(bytes, 20).map(u32::from))
    } else {
        // A negative height is that of a picture stored from its top.
        LITTLE.u32(bytes, 18).zip(LITTLE.u32(bytes, 22).map(|height| height.cast_signed().unsigned_abs()))
    };
    size.map(|(width, height)| of_size(width, height)).ok_or(SHORT)
}

pub(super) fn tiff(bytes: &[u8]) -> Result<Outline, Damaged> {
    let Some(directory) = exif::directory(bytes) else {
        return Err(Damaged("its first directory is not to be found"));
    };
    let (Some(width), Some(height)) = (directory.width, directory.height) else {
        return Err(Damaged("its first directory names no size"));
    };
    let samples = u64::from(directory.samples.unwrap_or(1));
    let pixel_bytes = samples.saturating_mul(u64::from(directory.bits.unwrap_or(1)).div_ceil(8));
    Ok(Outline {
        size: (width, height),
        orientation: directory.orientation,
        frames: Some(directory.directories),
        detail: Detail::Tiff(Tiff { pixel_bytes, palette_at: directory.palette_at }),
        ..Outline::default()
    })
}

/// The largest of an icon's pictures, which is the one that is shown.
pub(super) fn ico(bytes: &[u8]) -> Result<Outline, Damaged> {
    let count = LITTLE.u16(bytes, 4).ok_or(SHORT)?;
    let side = |byte: u8| if byte == 0 { 256 } else { u32::from(byte) };
    let entries = (0..usize::from(count)).filter_map(|index| bytes.get(6 + 16 * index..22 + 16 * index));
    let sizes = entries.map(|entry| picture_size(bytes, entry).unwrap_or((side(entry[0]), side(entry[1]))));
    sizes
        .max_by_key(|(width, height)| u64::from(*width) * u64::from(*height))
        .map(|(width, height)| of_size(width, height))
        .ok_or(SHORT)
}

/// The size that an icon's picture declares itself: more than the directory of icons can say.
fn picture_size(bytes: &[u8], entry: &[u8]) -> Option<(u32, u32)> {
    let at = LITTLE.u32(entry, 12)? as usize;
    if bytes.get(at..)?.starts_with(b"\x89PNG") {
        return Some((Endian::Big.u32(bytes, at + 16)?, Endian::Big.u32(bytes, at + 20)?));
    }
    // A bitmap and its mask lie one above the other.
    Some((LITTLE.u32(bytes, at + 4)?, LITTLE.u32(bytes, at + 8)?.cast_signed().unsigned_abs() / 2))
}

pub(super) fn tga(bytes: &[u8]) -> Result<Outline, Damaged> {
    let size = LITTLE.u16(bytes, 12).zip(LITTLE.u16(bytes, 14));
    size.map(|(width, height)| of_size(width.into(), height.into())).ok_or(SHORT)
}

pub(super) fn pnm(bytes: &[u8]) -> Result<Outline, Damaged> {
    let header = pnm_header::header(bytes).ok_or(Damaged("its header is damaged"))?;
    let side = |side: u64| u32::try_from(side).unwrap_or(u32::MAX);
    Ok(of_size(side(header.width), side(header.height)))
}

pub(super) fn qoi(bytes: &[u8]) -> Result<Outline, Damaged> {
    let size = Endian::Big.u32(bytes, 4).zip(Endian::Big.u32(bytes, 8));
    size.map(|(width, height)| of_size(width, height)).ok_or(SHORT)
}

#[cfg(test)]
mod tests {
    use super::super::{Format, outline};

    #[test]
    fn declared_sizes() {
        let ico = b"\0\0\x01\0\x02\0\x10\x10\0\0\x01\0\x20\0\x28\0\0\0\x26\0\0\0\x20\x20\0\0\x01\0\x20\0\x28\0\0\0\x26\0\0\0\x28\0\0\0\x20\0\0\0\x40\0\0\0";
        let tiff = b"II*\0\x08\0\0\0\x03\0\0\x01\x03\0\x01\0\0\0\x20\0\0\0\x01\x01\x04\0\x01\0\0\0\x10\0\0\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
        let cases: &[(Format, &[u8], (u32, u32))] = &[
            (Format::Bmp, b"BM............\x28\0\0\0\x20\0\0\0\xf0\xff\xff\xff", (32, 16)),
            (Format::Bmp, b"BM............\x0c\0\0\0\x20\0\x10\0", (32, 16)),
            (Format::Ico, ico, (32, 32)),
            (Format::Tiff, tiff, (16, 32)),
            (Format::Tga, b"............\x20\0\x10\0..", (32, 16)),
            (Format::Pnm, b"P6\n#x\n32 16 255\n", (32, 16)),
            (Format::Pnm, b"P7\nWIDTH 32\nHEIGHT 16\nDEPTH 1\nMAXVAL 255\nENDHDR\n", (32, 16)),
            (Format::Qoi, b"qoif\0\0\0\x20\0\0\0\x10..", (32, 16)),
        ];
        for (format, bytes, size) in cases {
            assert_eq!(outline(bytes, *format).unwrap().upright(), *size, "{format:?}");
            for end in 0..bytes.len() {
                let _ = outline(&bytes[..end], *format);
            }
        }
        assert!(outline(b"............\0\0\x10\0..", Format::Tga).is_err());
    }
}
