//! JPEG: segments with a length, and between them entropy-coded data that ends at the next marker.

use std::ops::Range;

use super::super::bytes::{Endian, slice};
use super::super::exif;
use super::{Damaged, Detail, Outline, plain};

const BIG: Endian = Endian::Big;

/// What the frame header says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Jpeg {
    pub(in super::super) coding: Coding,
    pub(in super::super) precision: u8,
    pub(in super::super) components: u8,
    /// Whether colour is stored at a lower resolution than brightness.
    pub(in super::super) subsampled: bool,
    /// Whether Adobe's marker is there: then amounts of ink are stored inverted.
    pub(in super::super) adobe: bool,
    /// How many scans there are; each passes over the whole image.
    pub(in super::super) scans: u32,
    /// Whether the end of the image was there.
    pub(in super::super) ended: bool,
}

/// How the pixels are coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum Coding {
    #[default]
    Baseline,
    Progressive,
    /// Lossless, hierarchical or arithmetic.
    Rare,
}

#[derive(Default)]
struct Segments {
    parts: Vec<Range<usize>>,
    dropped: bool,
    odd: bool,
    size: Option<(u32, u32)>,
    jpeg: Jpeg,
    /// Pieces of the colour profile, with their numbers.
    profile: Vec<(u8, Range<usize>)>,
    exif: Option<Range<usize>>,
}

pub(super) fn outline(bytes: &[u8]) -> Result<Outline, Damaged> {
    let mut segments = Segments::default();
    segments.keep(0..2);
    let end = segments.walk(bytes);
    let Some(size) = segments.size else {
        return Err(Damaged("it has no frame header, or ends before it"));
    };
    let exif = segments.exif.clone().and_then(|range| bytes.get(range));
    let mut outline = Outline {
        size,
        orientation: exif.map(exif::orientation).unwrap_or_default(),
        frames: Some(1),
        icc: segments.icc(bytes),
        ..Outline::default()
    };
    let ordinary = segments.jpeg.precision == 8
        && matches!(segments.jpeg.components, 1 | 3)
        && segments.jpeg.coding != Coding::Rare;
    if let Some(end) = end.filter(|_| ordinary && !segments.odd && outline.icc.is_none()) {
        outline.plain = plain(!segments.dropped && end == bytes.len(), segments.parts);
    }
    outline.detail = Detail::Jpeg(Jpeg { ended: end.is_some(), ..segments.jpeg });
    Ok(outline)
}

impl Segments {
    /// Walks all segments; where the image ends, if it does.
    fn walk(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 2;
        loop {
            if *bytes.get(at)? != 0xff {
                // Bytes that belong to nothing: readers skip them, and so does what is sent.
                self.dropped = true;
                at += memchr::memchr(0xff, bytes.get(at..)?)?;
            }
            let start = at;
            // Any number of fill bytes may come before a marker.
            while *bytes.get(at + 1)? == 0xff {
                at += 1;
            }
            let marker = bytes[at + 1];
            at += 2;
            match marker {
                0xd9 => {
                    self.keep(start..at);
                    return Some(at);
                }
                0x00 | 0x01 | 0xd0..=0xd8 => {
                    self.odd = true;
                    continue;
                }
                _ => {}
            }
            let length = usize::from(BIG.u16(bytes, at)?);
            let body = slice(bytes, at + 2, length.checked_sub(2)?)?;
            let end = at + length;
            self.segment(marker, body, start..end);
            at = if marker == 0xda {
                let data = scan_end(bytes, end)?;
                self.keep(end..data);
                data
            } else {
                end
            };
        }
    }

    fn segment(&mut self, marker: u8, body: &[u8], whole: Range<usize>) {
        let inside = |skip: usize| whole.end - (body.len() - skip)..whole.end;
        let kept = match marker {
            0xc4 | 0xdb | 0xdd => true,
            0xda => {
                self.jpeg.scans += 1;
                true
            }
            0xc0..=0xcf => {
                self.frame(marker, body);
                true
            }
            // JFIF: version and density; a thumbnail inside it is more than that.
            0xe0 if body.starts_with(b"JFIF\0") => {
                self.odd |= body.len() != 14;
                true
            }
            // Adobe: how colours are coded.
            0xee if body.starts_with(b"Adobe") => {
                self.odd |= body.len() != 12;
                self.jpeg.adobe = true;
                true
            }
            0xe1 if body.starts_with(b"Exif\0\0") => {
                self.exif.get_or_insert(inside(6));
                false
            }
            0xe2 if body.len() > 14 && body.starts_with(b"ICC_PROFILE\0") => {
                self.profile.push((body[12], inside(14)));
                false
            }
            0xe0..=0xef | 0xfe => false,
            // Heights told late, hierarchies, and what nobody knows.
            _ => {
                self.odd = true;
                true
            }
        };
        if kept {
            self.keep(whole);
        } else {
            self.dropped = true;
        }
    }

    fn frame(&mut self, marker: u8, body: &[u8]) {
        let coding = match marker {
            0xc0 | 0xc1 => Coding::Baseline,
            0xc2 => Coding::Progressive,
            _ => Coding::Rare,
        };
        let (Some(height), Some(width), Some(&components)) =
            (BIG.u16(body, 1), BIG.u16(body, 3), body.get(5))
        else {
            self.odd = true;
            return;
        };
        // A second frame header is a second image, or a lie about the first one.
        self.odd |= self.size.is_some();
        self.size.get_or_insert((width.into(), height.into()));
        let samplings: Vec<u8> =
            (0..usize::from(components)).filter_map(|index| body.get(7 + 3 * index)).copied().collect();
        let subsampled = samplings.iter().any(|sampling| Some(sampling) != samplings.first());
        self.jpeg = Jpeg { coding, precision: body[0], components, subsampled, ..self.jpeg };
    }

    /// The colour profile, put together in the order of its numbers.
    fn icc(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.profile.sort_by_key(|(number, _)| *number);
        let profile: Vec<u8> = self
            .profile
            .iter()
            .filter_map(|(_, range)| bytes.get(range.clone()))
            .flatten()
            .copied()
            .collect();
        Some(profile).filter(|profile| !profile.is_empty())
    }

    fn keep(&mut self, part: Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
    }
}

/// Where the entropy-coded data that begins at `at` ends: at a marker that is neither stuffing nor a restart.
fn scan_end(bytes: &[u8], at: usize) -> Option<usize> {
    let data = bytes.get(at..)?;
    memchr::memchr_iter(0xff, data)
        .find(|found| data.get(found + 1).is_some_and(|next| !matches!(next, 0 | 0xd0..=0xd7 | 0xff)))
        .map(|found| at + found)
}

#[cfg(test)]
mod tests {
    use super::super::Plain;
    use super::*;

    fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u16 + 2).to_be_bytes();
        [&[0xff, marker][..], &length, body].concat()
    }

    fn jpeg(before: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0xff, 0xd8];
        bytes.extend(before.concat());
        bytes.extend(segment(0xc0, &[8, 0, 2, 0, 4, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]));
        bytes.extend(segment(0xda, &[3, 1, 0, 2, 0, 3, 0, 0, 63, 0]));
        bytes.extend([1, 2, 0xff, 0, 3, 0xff, 0xd0, 4, 0xff, 0xd9]);
        bytes.extend(after);
        bytes
    }

    #[test]
    fn only_a_picture_is_clean() {
        let jfif = segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        let thumb = segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\x01\x01...");
        type Case<'a> = (Vec<Vec<u8>>, &'a [u8], &'a str);
        let cases: &[Case<'_>] = &[
            (vec![], b"", "clean"),
            (vec![segment(0xe1, b"Exif\0\0MM")], b"", "parts"),
            (vec![segment(0xfe, b"made by hand")], b"", "parts"),
            (vec![segment(0xe2, b"MPF\0")], b"\xff\xd8second image", "parts"),
            (vec![], b"junk", "parts"),
            (vec![segment(0xe2, b"ICC_PROFILE\0\x01\x01profile")], b"", "no"),
            (vec![segment(0xc0, &[8, 0, 2, 0, 4, 1, 1, 0x11, 0])], b"", "no"),
        ];
        for (before, after, expect) in cases {
            let all = [&[jfif.clone()][..], before].concat();
            let bytes = jpeg(&all, after);
            let outline = outline(&bytes).unwrap();
            assert_eq!(outline.size, (4, 2));
            match outline.plain {
                Plain::Clean => assert_eq!(*expect, "clean"),
                Plain::No => assert_eq!(*expect, "no"),
                Plain::Parts(parts) => {
                    assert_eq!(*expect, "parts");
                    let stripped = super::super::strip(&bytes, super::super::Format::Jpeg, &parts);
                    assert_eq!(stripped, jpeg(std::slice::from_ref(&jfif), b""));
                }
            }
        }
        assert_eq!(outline(&jpeg(&[thumb], b"")).unwrap().plain, Plain::No);
    }

    #[test]
    fn details() {
        let outline = outline(&jpeg(
            &[segment(0xe2, b"ICC_PROFILE\0\x02\x02le"), segment(0xe2, b"ICC_PROFILE\0\x01\x02profi")],
            b"",
        ))
        .unwrap();
        assert_eq!(outline.icc.as_deref(), Some(&b"profile"[..]));
        let Detail::Jpeg(jpeg) = outline.detail else { panic!("no JPEG") };
        let expect = Jpeg {
            coding: Coding::Baseline,
            precision: 8,
            components: 3,
            subsampled: true,
            adobe: false,
            scans: 1,
            ended: true,
        };
        assert_eq!(jpeg, expect);
    }

    #[test]
    fn every_prefix_is_bearable() {
        let whole = jpeg(&[segment(0xe1, b"Exif\0\0MM")], b"");
        for end in 0..whole.len() {
            if let Ok(outline) = outline(&whole[..end]) {
                assert_eq!(outline.plain, Plain::No);
            }
        }
    }
}
