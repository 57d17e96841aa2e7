//! PNG: a row of chunks, each with its length, its name and its checksum.

use std::io::Read;

use super::super::bytes::{Endian, slice};
use super::super::exif;
use super::{Damaged, Outline, Plain, plain};

const BIG: Endian = Endian::Big;
/// Larger profiles than this are not looked at; a real one has some hundred kilobytes at most.
const MAX_PROFILE: u64 = 4 << 20;

pub(super) fn outline(bytes: &[u8]) -> Result<Outline, Damaged> {
    if !bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Err(Damaged("its signature is damaged, as by a transfer in text mode"));
    }
    if slice(bytes, 12, 4) != Some(b"IHDR") {
        return Err(Damaged("it has no header"));
    }
    let size = (BIG.u32(bytes, 16), BIG.u32(bytes, 20));
    let (Some(width), Some(height), Some(&[depth, colours])) =
        (size.0, size.1, bytes.get(24..26).and_then(<[u8]>::first_chunk))
    else {
        return Err(Damaged("it ends inside its header"));
    };
    let mut outline = Outline { size: (width, height), ..Outline::default() };
    let mut chunks = Chunks::default();
    let ended = chunks.walk(bytes, &mut outline);
    let eight_bits = depth == 8 || (colours == 3 && depth < 8);
    if ended {
        outline.frames = Some(chunks.frames.unwrap_or(1));
        let still = chunks.frames.is_none_or(|frames| frames == 1);
        if eight_bits && !chunks.odd {
            let clean = chunks.dropped == 0 && chunks.end == bytes.len() && still;
            outline.plain = plain(clean, chunks.parts);
        }
    }
    if outline.icc.is_some() {
        outline.plain = Plain::No;
    }
    Ok(outline)
}

#[derive(Default)]
struct Chunks {
    parts: Vec<std::ops::Range<usize>>,
    dropped: usize,
    /// Something that makes the file unfit to be sent, whole or in parts.
    odd: bool,
    frames: Option<u64>,
    end: usize,
}

impl Chunks {
    /// Walks all chunks; whether it came to the end.
    fn walk(&mut self, bytes: &[u8], outline: &mut Outline) -> bool {
        let mut at = 8;
        self.keep(0..8);
        while let (Some(length), Some(name)) = (BIG.u32(bytes, at), slice(bytes, at + 4, 4)) {
            let length = length as usize;
            let (Some(body), Some(end)) = (slice(bytes, at + 8, length), at.checked_add(12 + length)) else {
                return false;
            };
            if end > bytes.len() {
                return false;
            }
            match name {
                b"IHDR" | b"PLTE" | b"IDAT" | b"IEND" => self.keep(at..end),
                // The decoder leaves these out when their checksum is wrong, other readers refuse the file.
                b"tRNS" | b"pHYs" => {
                    self.odd |= BIG.u32(bytes, end - 4) != Some(checksum(&bytes[at + 4..end - 4]));
                    self.keep(at..end);
                }
                _ => {
                    self.dropped += 1;
                    self.odd |= name[0].is_ascii_uppercase();
                    self.note(name, body, outline);
                }
            }
            at = end;
            if name == b"IEND" {
                self.end = end;
                return true;
            }
        }
        false
    }

    fn note(&mut self, name: &[u8], body: &[u8], outline: &mut Outline) {
        match name {
            b"eXIf" => outline.orientation = exif::orientation(body),
            b"iCCP" => outline.icc = Some(body.to_vec()),
            b"acTL" => self.frames = BIG.u32(body, 0).map(u64::from).filter(|frames| *frames > 0),
            _ => {}
        }
    }

    fn keep(&mut self, part: std::ops::Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The profile in the body of an `iCCP` chunk: a name, a method, and a stream that may be a bomb.
pub(in super::super) fn decompress_profile(body: &[u8]) -> Option<Vec<u8>> {
    let name = memchr::memchr(0, body.get(..body.len().min(80))?)?;
    let stream = body.get(name + 2..)?;
    let mut profile = Vec::new();
    let read = flate2::read::ZlibDecoder::new(stream).take(MAX_PROFILE + 1).read_to_end(&mut profile).ok()?;
    (read as u64 <= MAX_PROFILE).then_some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(name: &[u8], body: &[u8]) -> Vec<u8> {
        let mut named = name.to_vec();
        named.extend_from_slice(body);
        let mut bytes = (body.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(&named);
        bytes.extend(checksum(&named).to_be_bytes());
        bytes
    }

    fn png(depth: u8, colours: u8, before: &[Vec<u8>], after: &[u8]) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
        bytes.extend(chunk(b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 2, depth, colours, 0, 0, 0]));
        bytes.extend(before.concat());
        bytes.extend(chunk(b"IDAT", b"..."));
        bytes.extend(chunk(b"IEND", b""));
        bytes.extend(after);
        bytes
    }

    #[test]
    fn only_a_picture_is_clean() {
        let wrong_sum = [0, 0, 0, 1, b't', b'R', b'N', b'S', 0, 1, 2, 3, 4].to_vec();
        type Case<'a> = (u8, u8, Vec<Vec<u8>>, &'a [u8], &'a str);
        let cases: &[Case<'_>] = &[
            (8, 2, vec![], b"", "clean"),
            (8, 6, vec![chunk(b"pHYs", &[0; 9])], b"", "clean"),
            (4, 3, vec![chunk(b"PLTE", &[0; 6]), chunk(b"tRNS", &[0])], b"", "clean"),
            (16, 2, vec![], b"", "no"),
            (1, 0, vec![], b"", "no"),
            (8, 2, vec![chunk(b"tEXt", b"a\0b")], b"", "parts"),
            (8, 2, vec![chunk(b"eXIf", b"MM")], b"", "parts"),
            (8, 2, vec![chunk(b"acTL", &[0, 0, 0, 3, 0, 0, 0, 0])], b"", "parts"),
            (8, 2, vec![chunk(b"iCCP", b"x\0\0..")], b"", "no"),
            (8, 2, vec![chunk(b"CgBI", b"")], b"", "no"),
            (8, 2, vec![wrong_sum], b"", "no"),
            (8, 2, vec![], b"junk", "parts"),
        ];
        for (depth, colours, before, after, expect) in cases {
            let bytes = png(*depth, *colours, before, after);
            let outline = outline(&bytes).unwrap();
            assert_eq!(outline.size, (4, 2));
            match outline.plain {
                Plain::Clean => assert_eq!(*expect, "clean"),
                Plain::No => assert_eq!(*expect, "no"),
                Plain::Parts(parts) => {
                    assert_eq!(*expect, "parts");
                    let stripped = super::super::strip(&bytes, super::super::Format::Png, &parts);
                    assert_eq!(stripped, png(*depth, *colours, &[], b""));
                }
            }
        }
    }

    #[test]
    fn every_prefix_is_bearable() {
        let whole = png(8, 2, &[chunk(b"tEXt", b"a\0b")], b"");
        for end in 0..whole.len() {
            if let Ok(outline) = outline(&whole[..end]) {
                assert_eq!((outline.plain, outline.frames), (Plain::No, None));
            }
        }
    }
}
