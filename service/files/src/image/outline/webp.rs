//! WebP: chunks in a RIFF container; the extended form names in flags what else is there.

use std::iter;
use std::ops::Range;

use super::super::bytes::{Endian, slice};
use super::super::exif;
use super::{Damaged, Detail, Outline, plain};

const LITTLE: Endian = Endian::Little;
const ALPHA: u8 = 0x10;
const ANIMATION: u8 = 0x02;

/// How the (first) picture is coded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Webp {
    pub(in super::super) lossless: bool,
    pub(in super::super) alpha: bool,
    pub(in super::super) animated: bool,
}

#[derive(Default)]
struct Chunks {
    parts: Vec<Range<usize>>,
    dropped: bool,
    size: Option<(u32, u32)>,
    webp: Webp,
    /// The alpha of a lossy picture lies in a chunk of its own, which only the extended form may have.
    extended: Option<Range<usize>>,
    alpha_chunk: bool,
    frames: u64,
    pictures: u64,
    outline: Outline,
}

pub(super) fn outline(bytes: &[u8]) -> Result<Outline, Damaged> {
    if slice(bytes, 8, 4) != Some(b"WEBP") {
        return Err(Damaged("it is no WebP"));
    }
    let mut chunks = Chunks::default();
    let ended = chunks.walk(bytes);
    let Some(size) = chunks.size else {
        return Err(Damaged("it has no picture, or ends before it"));
    };
    let mut outline = Outline { size, detail: Detail::Webp(chunks.webp), ..chunks.outline };
    let Some(end) = ended else { return Ok(outline) };
    outline.frames = Some(if chunks.webp.animated { chunks.frames.max(1) } else { 1 });
    if !chunks.webp.animated && chunks.pictures == 1 && outline.icc.is_none() {
        // The extended form of a picture that needs none is rewritten: its flags may promise what was left out.
        let extended = chunks.extended.filter(|_| chunks.alpha_chunk);
        let parts = iter::once(0..12).chain(extended).chain(chunks.parts).collect();
        outline.plain = plain(!chunks.dropped && end == bytes.len(), parts);
    }
    Ok(outline)
}

impl Chunks {
    /// Walks all chunks; where the container ends, if its bytes are there.
    fn walk(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = (LITTLE.u32(bytes, 4)? as usize).checked_add(8)?;
        let mut at = 12;
        while at < end {
            let name = slice(bytes, at, 4)?;
            let length = LITTLE.u32(bytes, at + 4)? as usize;
            let next = (at + 8).checked_add(length)?.checked_add(length & 1)?;
            let body = bytes.get(at + 8..(at + 8).checked_add(length)?.min(bytes.len()))?;
            self.chunk(name, body, at..next);
            if next > bytes.len() {
                return None;
            }
            at = next;
        }
        (at == end).then_some(end)
    }

    fn chunk(&mut self, name: &[u8], body: &[u8], whole: Range<usize>) {
        match name {
            b"VP8X" if self.extended.is_none() && body.len() >= 10 => {
                self.size = Some((u24(body, 4) + 1, u24(body, 7) + 1));
                self.webp.animated = body[0] & ANIMATION != 0;
                // Flags that promise anything but transparency are not what a bare picture has.
                self.dropped |= body[0] & !ALPHA != 0 || body.len() != 10;
                self.extended = Some(whole);
            }
            b"VP8 " => {
                self.picture(
                    lossy_size(body),
                    Webp { lossless: false, alpha: self.alpha_chunk, ..self.webp },
                );
                self.parts.push(whole);
            }
            b"VP8L" => {
                let alpha = body.get(4).is_some_and(|flags| flags & 0x10 != 0);
                self.picture(lossless_size(body), Webp { lossless: true, alpha, ..self.webp });
                // A lossless picture brings its alpha along; a chunk of it beside that is nobody's.
                self.dropped |= self.extended.is_some();
                self.parts.push(whole);
            }
            b"ALPH" => {
                self.alpha_chunk = true;
                self.parts.push(whole);
            }
            b"ANMF" => self.frames += 1,
            b"ANIM" => {}
            b"EXIF" => {
                self.outline.orientation = exif::orientation(body);
                self.dropped = true;
            }
            b"ICCP" => {
                self.outline.icc = Some(body.to_vec());
                self.dropped = true;
            }
            _ => self.dropped = true,
        }
    }

    fn picture(&mut self, size: Option<(u32, u32)>, webp: Webp) {
        self.pictures += 1;
        self.webp = webp;
        self.size = self.size.or(size);
    }
}

fn u24(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 3)
        .map_or(0, |raw| u32::from(raw[0]) | u32::from(raw[1]) << 8 | u32::from(raw[2]) << 16)
}

fn lossy_size(body: &[u8]) -> Option<(u32, u32)> {
    (slice(body, 3, 3)? == [0x9d, 0x01, 0x2a]).then_some(())?;
    Some((u32::from(LITTLE.u16(body, 6)? & 0x3fff), u32::from(LITTLE.u16(body, 8)? & 0x3fff)))
}

fn lossless_size(body: &[u8]) -> Option<(u32, u32)> {
    (*body.first()? == 0x2f).then_some(())?;
    let bits = LITTLE.u32(body, 1)?;
    Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
}

/// Makes a container true again after parts of it were left out: its length, and the flags of the extended form.
pub(super) fn amend(bytes: &mut [u8]) {
    if let Ok(length) = u32::try_from(bytes.len().saturating_sub(8))
        && let Some(field) = bytes.get_mut(4..8)
    {
        field.copy_from_slice(&length.to_le_bytes());
    }
    if slice(bytes, 12, 4) == Some(b"VP8X")
        && let Some(flags) = bytes.get_mut(20)
    {
        *flags = ALPHA;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plain;
    use super::*;

    fn chunk(name: &[u8], body: &[u8]) -> Vec<u8> {
        let pad = vec![0; body.len() & 1];
        [name, &(body.len() as u32).to_le_bytes(), body, &pad].concat()
    }

    fn webp(chunks: &[Vec<u8>]) -> Vec<u8> {
        let body = chunks.concat();
        [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &body].concat()
    }

    fn vp8x(flags: u8) -> Vec<u8> {
        chunk(b"VP8X", &[flags, 0, 0, 0, 3, 0, 0, 1, 0, 0])
    }

    #[test]
    fn only_a_picture_is_clean() {
        let lossy = chunk(b"VP8 ", &[0, 0, 0, 0x9d, 1, 0x2a, 4, 0, 2, 0, 9]);
        let lossless = chunk(b"VP8L", &[0x2f, 3, 0x40, 0, 0x10, 9]);
        let alpha = chunk(b"ALPH", b"..");
        let exif = chunk(b"EXIF", b"MM");
        let of = |chunks: &[&Vec<u8>]| webp(&chunks.iter().map(|chunk| (*chunk).clone()).collect::<Vec<_>>());
        let cases: Vec<(Vec<u8>, &str, Vec<u8>)> = vec![
            (of(&[&lossy]), "clean", vec![]),
            (of(&[&lossless]), "clean", vec![]),
            (of(&[&vp8x(0x10), &alpha, &lossy]), "clean", vec![]),
            (of(&[&vp8x(0x08), &lossy, &exif]), "parts", of(&[&lossy])),
            (of(&[&vp8x(0x18), &lossless, &exif]), "parts", of(&[&lossless])),
            (of(&[&vp8x(0x18), &alpha, &lossy, &exif]), "parts", of(&[&vp8x(0x10), &alpha, &lossy])),
            ([of(&[&lossy]), b"junk".to_vec()].concat(), "parts", of(&[&lossy])),
            (of(&[&vp8x(0x20), &chunk(b"ICCP", b"profile"), &lossy]), "no", vec![]),
            (
                of(&[&vp8x(0x02), &chunk(b"ANIM", b""), &chunk(b"ANMF", b"."), &chunk(b"ANMF", b".")]),
                "no",
                vec![],
            ),
        ];
        for (bytes, expect, result) in cases {
            let outline = outline(&bytes).unwrap();
            assert_eq!(outline.size, (4, 2));
            match outline.plain {
                Plain::Clean => assert_eq!(expect, "clean"),
                Plain::No => assert_eq!(expect, "no"),
                Plain::Parts(parts) => {
                    assert_eq!(expect, "parts");
                    assert_eq!(super::super::strip(&bytes, super::super::Format::Webp, &parts), result);
                }
            }
        }
    }

    #[test]
    fn every_prefix_is_bearable() {
        let whole = webp(&[vp8x(0x18), chunk(b"VP8L", &[0x2f, 3, 0x40, 0, 0, 9]), chunk(b"EXIF", b"MM")]);
        for end in 0..whole.len() {
            if let Ok(outline) = outline(&whole[..end]) {
                assert_eq!((outline.plain, outline.frames), (Plain::No, None));
            }
        }
    }
}
