//! GIF: a screen, then blocks: frames, what belongs to them, and comments.

use std::ops::Range;

use super::super::bytes::{Endian, slice};
use super::{Damaged, Outline, plain};

pub(super) fn outline(bytes: &[u8]) -> Result<Outline, Damaged> {
    let little = Endian::Little;
    let (Some(width), Some(height), Some(&flags)) =
        (little.u16(bytes, 6), little.u16(bytes, 8), bytes.get(10))
    else {
        return Err(Damaged("it ends inside its header"));
    };
    let screen = (u32::from(width), u32::from(height));
    let mut blocks = Blocks { screen, at: 13 + colour_table(flags), ..Blocks::default() };
    blocks.keep(0..blocks.at);
    let ended = blocks.walk(bytes).is_some();
    let mut outline = Outline { size: screen, ..Outline::default() };
    if let Some(reach) = blocks.reach {
        outline.size = (screen.0.max(reach.0), screen.1.max(reach.1));
    }
    if ended {
        outline.frames = Some(blocks.frames);
        // Several frames are an animation; a text block is drawn by nobody but would have to be.
        if blocks.frames == 1 && !blocks.odd {
            outline.plain = plain(!blocks.dropped && blocks.at == bytes.len(), blocks.parts);
        }
    }
    if blocks.frames == 0 && outline.frames.is_some() {
        return Err(Damaged("it holds no frame"));
    }
    Ok(outline)
}

/// Length of the table of colours that the flags announce.
fn colour_table(flags: u8) -> usize {
    if flags & 0x80 == 0 { 0 } else { 3 << ((flags & 7) + 1) }
}

#[derive(Default)]
struct Blocks {
    at: usize,
    screen: (u32, u32),
    /// How far the first frame reaches. Where that is beyond the screen, viewers show all of it.
    reach: Option<(u32, u32)>,
    frames: u64,
    dropped: bool,
    odd: bool,
    parts: Vec<Range<usize>>,
}

impl Blocks {
    /// Walks all blocks; `None` when the bytes end before the trailer, or are damaged.
    fn walk(&mut self, bytes: &[u8]) -> Option<()> {
        loop {
            let start = self.at;
            match bytes.get(start)? {
                0x3b => {
                    self.at += 1;
                    self.keep(start..self.at);
                    return Some(());
                }
                0x2c => {
                    let flags = slice(bytes, start + 1, 9)?[8];
                    self.frame(bytes, start + 1)?;
                    self.at = start + 10 + colour_table(flags) + 1;
                    self.sub_blocks(bytes)?;
                    self.keep(start..self.at);
                }
                0x21 => {
                    let label = *bytes.get(start + 1)?;
                    self.at = start + 2;
                    self.sub_blocks(bytes)?;
                    match label {
                        0xf9 => self.keep(start..self.at),
                        0x01 => self.odd = true,
                        _ => self.dropped = true,
                    }
                }
                _ => return None,
            }
        }
    }

    fn frame(&mut self, bytes: &[u8], at: usize) -> Option<()> {
        let side = |at| Endian::Little.u16(bytes, at).map(u32::from);
        let reach = (side(at)? + side(at + 4)?, side(at + 2)? + side(at + 6)?);
        self.frames += 1;
        // Readers do not agree on what such a file shows.
        self.odd |= reach.0 > self.screen.0 || reach.1 > self.screen.1;
        self.reach.get_or_insert(reach);
        Some(())
    }

    fn sub_blocks(&mut self, bytes: &[u8]) -> Option<()> {
        loop {
            let length = usize::from(*bytes.get(self.at)?);
            self.at += 1 + length;
            if length == 0 {
                return Some(());
            }
        }
    }

    fn keep(&mut self, part: Range<usize>) {
        match self.parts.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => self.parts.push(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plain;
    use super::*;

    const FRAME: &[u8] = b",\0\0\0\0\x02\0\x01\0\0\x02\x02\x4c\x01\0";

    fn gif(blocks: &[&[u8]], after: &[u8]) -> Vec<u8> {
        [b"GIF89a\x02\0\x01\0\x80\0\0\0\0\0\xff\xff\xff", &blocks.concat()[..], b";", after].concat()
    }

    #[test]
    fn only_a_picture_is_clean() {
        let control = b"!\xf9\x04\x01\0\0\x01\0";
        let comment = b"!\xfe\x02hi\0";
        type Case<'a> = (&'a [&'a [u8]], &'a [u8], u64, &'a str);
        let cases: &[Case<'_>] = &[
            (&[control, FRAME], b"", 1, "clean"),
            (&[control, FRAME, comment], b"", 1, "parts"),
            (&[control, FRAME], b"junk", 1, "parts"),
            (&[control, FRAME, control, FRAME], b"", 2, "no"),
            (&[b"!\x01\x00", control, FRAME], b"", 1, "no"),
        ];
        for (blocks, after, frames, expect) in cases {
            let bytes = gif(blocks, after);
            let outline = outline(&bytes).unwrap();
            assert_eq!((outline.size, outline.frames), ((2, 1), Some(*frames)));
            match outline.plain {
                Plain::Clean => assert_eq!(*expect, "clean"),
                Plain::No => assert_eq!(*expect, "no"),
                Plain::Parts(parts) => {
                    assert_eq!(*expect, "parts");
                    let stripped = super::super::strip(&bytes, super::super::Format::Gif, &parts);
                    assert_eq!(stripped, gif(&[control, FRAME], b""));
                }
            }
        }
    }

    #[test]
    fn a_frame_beyond_the_screen_makes_the_picture_larger_and_unclean() {
        let cases =
            [([0, 0, 2, 1], (2, 1), true), ([1, 0, 2, 1], (3, 1), false), ([0, 4, 1, 2], (2, 6), false)];
        for ([left, top, width, height], size, clean) in cases {
            let frame = [b',', left, 0, top, 0, width, 0, height, 0, 0, 2, 2, 0x4c, 1, 0];
            let found = outline(&gif(&[&frame], b"")).unwrap();
            assert_eq!((found.size, found.plain == Plain::Clean), (size, clean), "{frame:?}");
        }
    }

    #[test]
    fn every_prefix_is_bearable() {
        let whole = gif(&[FRAME, FRAME], b"");
        for end in 0..whole.len() {
            if let Ok(outline) = outline(&whole[..end]) {
                assert_eq!((outline.plain, outline.frames), (Plain::No, None));
            }
        }
        assert_eq!(outline(&gif(&[], b"")).err(), Some(Damaged("it holds no frame")));
    }
}
