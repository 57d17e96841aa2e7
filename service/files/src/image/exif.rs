//! The little of TIFF that is needed: the orientation in EXIF data, and the size and pages of a TIFF file.

use std::collections::HashSet;

use super::bytes::Endian;

/// How an image lies in its file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Orientation {
    #[default]
    Upright,
    FlipHorizontal,
    Rotate180,
    FlipVertical,
    Transpose,
    Rotate90,
    Transverse,
    Rotate270,
}

impl Orientation {
    /// The orientation of an EXIF value; one that does not exist is upright.
    fn from_exif(value: u16) -> Self {
        match value {
            2 => Orientation::FlipHorizontal,
            3 => Orientation::Rotate180,
            4 => Orientation::FlipVertical,
            5 => Orientation::Transpose,
            6 => Orientation::Rotate90,
            7 => Orientation::Transverse,
            8 => Orientation::Rotate270,
            _ => Orientation::Upright,
        }
    }

    /// Whether width and height change places.
    pub(super) fn swaps(self) -> bool {
        use Orientation::{Rotate90, Rotate270, Transpose, Transverse};
        matches!(self, Transpose | Rotate90 | Transverse | Rotate270)
    }

    /// A size as stored, upright (and the other way round).
    pub(super) fn turn(self, size: (u32, u32)) -> (u32, u32) {
        if self.swaps() { (size.1, size.0) } else { size }
    }
}

/// What the first directory of a TIFF structure says, and how many directories there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Directory {
    pub(super) width: Option<u32>,
    pub(super) height: Option<u32>,
    pub(super) orientation: Orientation,
    pub(super) directories: u64,
    /// Bits of a sample (of the first, where they differ).
    pub(super) bits: Option<u32>,
    /// Samples of a pixel.
    pub(super) samples: Option<u32>,
    /// Where it stands that pixels are places in a palette, if they are.
    pub(super) palette_at: Option<usize>,
}

/// The orientation in EXIF data, with or without the `Exif\0\0` before it.
pub(super) fn orientation(exif: &[u8]) -> Orientation {
    let tiff = exif.strip_prefix(b"Exif\0\0").unwrap_or(exif);
    directory(tiff).unwrap_or_default().orientation
}

/// Reads a TIFF structure (not BigTIFF).
pub(super) fn directory(tiff: &[u8]) -> Option<Directory> {
    let endian = match tiff.get(..4)? {
        [b'I', b'I', 42, 0] => Endian::Little,
        [b'M', b'M', 0, 42] => Endian::Big,
        _ => return None,
    };
    let mut found = Directory::default();
    let mut at = endian.u32(tiff, 4)? as usize;
    // Directories may point back at each other.
    let mut seen = HashSet::new();
    while at != 0 && seen.insert(at) && found.directories < 100_000 {
        let Some(count) = endian.u16(tiff, at) else { break };
        let entries = at + 2;
        if found.directories == 0 {
            read_entries(endian, tiff, entries, count, &mut found);
        }
        found.directories += 1;
        let Some(next) = endian.u32(tiff, entries + 12 * usize::from(count)) else { break };
        at = next as usize;
    }
    Some(found).filter(|found| found.directories > 0)
}

fn read_entries(endian: Endian, tiff: &[u8], entries: usize, count: u16, found: &mut Directory) {
    for at in (0..usize::from(count)).map(|index| entries + 12 * index) {
        let (Some(tag), Some(kind)) = (endian.u16(tiff, at), endian.u16(tiff, at + 2)) else { return };
        let value = match kind {
            3 => endian.u16(tiff, at + 8).map(u32::from),
            4 => endian.u32(tiff, at + 8),
            _ => None,
        };
        match tag {
            0x100 => found.width = value,
            0x101 => found.height = value,
            0x102 => found.bits = first_of_shorts(endian, tiff, at).map(u32::from),
            0x106 if value == Some(3) => found.palette_at = Some(at + 8),
            0x115 => found.samples = value,
            0x112 => {
                let value = value.and_then(|value| u16::try_from(value).ok());
                found.orientation = Orientation::from_exif(value.unwrap_or(1));
            }
            _ => {}
        }
    }
}

/// The first of an entry's short numbers: up to two stand in the entry, more elsewhere.
fn first_of_shorts(endian: Endian, tiff: &[u8], at: usize) -> Option<u16> {
    match endian.u32(tiff, at + 4)? {
        0..=2 => endian.u16(tiff, at + 8),
        _ => endian.u16(tiff, endian.u32(tiff, at + 8)? as usize),
    }
}

/// The same TIFF structure with the short number at `at` set.
pub(super) fn with_short(tiff: &[u8], at: usize, value: u16) -> Vec<u8> {
    let raw = if tiff.starts_with(b"MM") { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut changed = tiff.to_vec();
    if let Some(field) = changed.get_mut(at..at.saturating_add(2)) {
        field.copy_from_slice(&raw);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exif(orientation: u8) -> Vec<u8> {
        let mut bytes = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        bytes.extend([orientation, 0, 0, 0, 0, 0, 0]);
        bytes
    }

    #[test]
    fn orientations() {
        for (value, swaps) in
            [(1, false), (2, false), (3, false), (4, false), (5, true), (6, true), (7, true), (8, true)]
        {
            let found = orientation(&[b"Exif\0\0", &exif(value)[..]].concat());
            assert_eq!(found.swaps(), swaps, "{value}");
            assert_eq!(found == Orientation::Upright, value == 1, "{value}");
        }
        assert_eq!(orientation(&exif(99)), Orientation::Upright);
        assert_eq!(orientation(b""), Orientation::Upright);
        assert_eq!(orientation(b"Exif\0\0"), Orientation::Upright);
        for end in 0..exif(6).len() {
            orientation(&exif(6)[..end]);
        }
    }

    #[test]
    fn pages_are_counted_once() {
        // Two directories without entries; the second points back to the first.
        let tiff = b"II*\0\x08\0\0\0\0\0\x0e\0\0\0\0\0\x08\0\0\0";
        assert_eq!(directory(tiff).map(|found| found.directories), Some(2));
    }
}
