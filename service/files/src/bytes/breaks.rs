//! Where lines end, in the bytes of any encoding: finding, counting, and which kinds of line ends there are. The
//! common case (LF in an encoding where a byte is a unit) runs at the speed of memory; the others unit by unit.

use encoding_rs::{GB18030, GBK};
use filectx_openapi::{LineBreaks, LineEnding};

use super::encoding::TextEncoding;

/// What ends a line in a text of one encoding.
#[derive(Clone, Copy, Debug)]
pub struct Breaks {
    encoding: TextEncoding,
    wide: bool,
    /// Whether the byte 0x85 is U+0085 in this encoding.
    nel: bool,
}

/// The line ends that were met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineEnds {
    lf: u64,
    crlf: u64,
    lone_cr: bool,
    /// The bytes so far end with a CR, whose LF may follow.
    open_cr: bool,
}

impl LineEnds {
    /// The kind of the line ends.
    pub fn kind(&self) -> LineEnding {
        match (self.lf > 0, self.crlf > 0) {
            (true, true) => LineEnding::Mixed,
            (true, false) => LineEnding::Lf,
            (false, true) => LineEnding::Crlf,
            (false, false) => LineEnding::None,
        }
    }

    /// Whether a CR without its LF was met. `ended`: no more bytes follow, so a last CR stands alone.
    pub fn lone_cr(&self, ended: bool) -> bool {
        self.lone_cr || (ended && self.open_cr)
    }
}

/// A mark in a text that may end a line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Lf,
    CrLf,
    Cr,
    Wide,
}

impl Breaks {
    /// What ends a line in `encoding` under `mode`.
    pub fn new(encoding: TextEncoding, mode: LineBreaks) -> Self {
        let nel = matches!(encoding, TextEncoding::Legacy(_)) && encoding.decode(b"\x85").text == "\u{85}";
        Self { encoding, wide: mode == LineBreaks::Unicode, nel }
    }

    /// What ends a line: LF alone, or the wider set.
    pub fn mode(&self) -> LineBreaks {
        if self.wide { LineBreaks::Unicode } else { LineBreaks::Newline }
    }

    /// Whether every LF byte ends a line and nothing else does.
    fn plain(&self) -> bool {
        self.encoding.unit() == 1 && !self.wide
    }

    /// How many bytes at the end of `bytes`, the beginning of more, may be the beginning of a line end or of a unit.
    pub fn held_back(&self, bytes: &[u8]) -> usize {
        if self.plain() {
            return 0;
        }
        let unit = self.encoding.unit();
        let partial = bytes.len() % unit;
        let whole = &bytes[..bytes.len() - partial];
        if self.unit_at(whole, whole.len().wrapping_sub(unit)) == Some(u32::from(b'\r')) {
            return partial + unit;
        }
        if unit > 1 || !self.wide {
            return partial;
        }
        let sequences: &[&[u8]] = match self.encoding {
            TextEncoding::Utf8 => &[b"\xc2\x85", b"\xe2\x80\xa8"],
            TextEncoding::Legacy(encoding) if encoding == GBK || encoding == GB18030 => {
                &[b"\x81\x30\x81\x35", b"\x81\x36\xa6\x35"]
            }
            _ => &[],
        };
        let beginnings = sequences.iter().flat_map(|sequence| (1..sequence.len()).map(|n| &sequence[..n]));
        beginnings.filter(|beginning| bytes.ends_with(beginning)).map(<[u8]>::len).max().unwrap_or(0)
    }

    /// How many lines end in `bytes`.
    pub fn count(&self, bytes: &[u8]) -> u64 {
        if self.plain() {
            return bytecount::count(bytes, b'\n') as u64;
        }
        let mut count = 0;
        self.visit(bytes, |_, mark| {
            count += u64::from(self.ends_line(mark));
            true
        });
        count
    }

    /// How many bytes reach to the `n`th line end in `bytes` (all, without one), and how many line ends they hold.
    pub fn seek(&self, bytes: &[u8], n: Option<u64>) -> (usize, u64) {
        match n.map(|n| (n, self.nth(bytes, n))) {
            Some((n, Ok(end))) => (end, n),
            Some((_, Err(count))) => (bytes.len(), count),
            None => (bytes.len(), self.count(bytes)),
        }
    }

    /// The offset behind the `n`th line end in `bytes`, `n` from 1; else how many there are.
    pub fn nth(&self, bytes: &[u8], n: u64) -> Result<usize, u64> {
        if self.plain() {
            return nth_newline(bytes, n);
        }
        let (mut count, mut found) = (0, None);
        self.visit(bytes, |end, mark| {
            count += u64::from(self.ends_line(mark));
            found = (count == n).then_some(end);
            found.is_none()
        });
        found.ok_or(count)
    }

    /// The offset behind the last line end in `bytes`, 0 without one.
    pub fn last(&self, bytes: &[u8]) -> usize {
        if self.plain() {
            return memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        }
        let mut last = 0;
        self.visit(bytes, |end, mark| {
            if self.ends_line(mark) {
                last = end;
            }
            true
        });
        last
    }

    /// Whether `bytes` end with a line end.
    pub fn ends_with_break(&self, bytes: &[u8]) -> bool {
        if self.plain() {
            return bytes.ends_with(b"\n");
        }
        // The longest line end is CR LF of UTF-32.
        let unit = self.encoding.unit();
        let from = bytes.len().saturating_sub(2 * unit.max(2));
        let tail = &bytes[from - from % unit..];
        !tail.is_empty() && self.last(tail) == tail.len()
    }

    /// Whether a CR and its LF lie on either side of the cut between `before` and `after`.
    pub fn splits_crlf(&self, before: &[u8], after: &[u8]) -> bool {
        let unit = self.encoding.unit();
        self.unit_at(after, 0) == Some(0x0a)
            && self.unit_at(before, before.len().wrapping_sub(unit)) == Some(0x0d)
    }

    /// Adds the line ends of `bytes`, which follow those that were added before; `count` of them end lines.
    pub fn tally(&self, ends: &mut LineEnds, bytes: &[u8], count: u64) {
        if bytes.is_empty() {
            return;
        }
        if self.plain() {
            return tally_plain(ends, bytes, count);
        }
        self.visit(bytes, |_, mark| {
            match mark {
                Mark::Lf => ends.lf += 1,
                Mark::CrLf => ends.crlf += 1,
                Mark::Cr => ends.lone_cr = true,
                Mark::Wide => {}
            }
            true
        });
    }

    fn ends_line(&self, mark: Mark) -> bool {
        matches!(mark, Mark::Lf | Mark::CrLf) || self.wide
    }

    fn unit_at(&self, bytes: &[u8], at: usize) -> Option<u32> {
        let unit = bytes.get(at..at.checked_add(self.encoding.unit())?)?;
        Some(match (self.encoding, unit) {
            (TextEncoding::Utf16Le, &[a, b]) => u16::from_le_bytes([a, b]).into(),
            (TextEncoding::Utf16Be, &[a, b]) => u16::from_be_bytes([a, b]).into(),
            (TextEncoding::Utf32Le, &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
            (TextEncoding::Utf32Be, &[a, b, c, d]) => u32::from_be_bytes([a, b, c, d]),
            _ => unit[0].into(),
        })
    }

    /// Every mark in `bytes` with the offset behind it, until `f` says no.
    fn visit(&self, bytes: &[u8], mut f: impl FnMut(usize, Mark) -> bool) {
        let unit = self.encoding.unit();
        let mut at = 0;
        while let Some(value) = self.unit_at(bytes, at) {
            let next = at + unit;
            let (end, mark) = match value {
                0x0a => (next, Some(Mark::Lf)),
                0x0d if self.unit_at(bytes, next) == Some(0x0a) => (next + unit, Some(Mark::CrLf)),
                0x0d => (next, Some(Mark::Cr)),
                _ if !self.wide => (next, None),
                0x0b | 0x0c | 0x1c..=0x1e => (next, Some(Mark::Wide)),
                _ if unit > 1 => (next, matches!(value, 0x85 | 0x2028 | 0x2029).then_some(Mark::Wide)),
                _ => self.wide_sequence(&bytes[at..]).map_or((next, None), |n| (at + n, Some(Mark::Wide))),
            };
            if mark.is_some_and(|mark| !f(end, mark)) {
                return;
            }
            at = end;
        }
    }

    /// The length of U+0085, U+2028 or U+2029 at the start of `bytes`, where a byte is a unit.
    fn wide_sequence(&self, bytes: &[u8]) -> Option<usize> {
        match (self.encoding, bytes) {
            (TextEncoding::Utf8, [0xc2, 0x85, ..]) => Some(2),
            (TextEncoding::Utf8, [0xe2, 0x80, 0xa8 | 0xa9, ..]) => Some(3),
            (
                TextEncoding::Legacy(encoding),
                [0x81, 0x30, 0x81, 0x35, ..] | [0x81, 0x36, 0xa6, 0x35 | 0x36, ..],
            ) if encoding == GBK || encoding == GB18030 => Some(4),
            (TextEncoding::Legacy(_), [0x85, ..]) if self.nel => Some(1),
            _ => None,
        }
    }
}

fn nth_newline(bytes: &[u8], n: u64) -> Result<usize, u64> {
    const STEP: usize = 4 << 10;
    let mut seen = 0;
    for (i, step) in bytes.chunks(STEP).enumerate() {
        let count = bytecount::count(step, b'\n') as u64;
        if seen + count >= n {
            let within = usize::try_from(n - seen - 1).unwrap_or(usize::MAX);
            return memchr::memchr_iter(b'\n', step)
                .nth(within)
                .map(|at| i * STEP + at + 1)
                .ok_or(seen + count);
        }
        seen += count;
    }
    Err(seen)
}

fn tally_plain(ends: &mut LineEnds, bytes: &[u8], lines: u64) {
    let mut crlf = 0;
    if ends.open_cr {
        if bytes[0] == b'\n' {
            crlf += 1;
        } else {
            ends.lone_cr = true;
        }
        ends.open_cr = false;
    }
    for at in memchr::memchr_iter(b'\r', bytes) {
        match bytes.get(at + 1) {
            Some(b'\n') => crlf += 1,
            Some(_) => ends.lone_cr = true,
            None => ends.open_cr = true,
        }
    }
    ends.crlf += crlf;
    ends.lf += lines - crlf;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn breaks(encoding: TextEncoding, mode: LineBreaks) -> Breaks {
        Breaks::new(encoding, mode)
    }

    /// The lines of a text, its line ends included, by the definition.
    fn lines(text: &str, mode: LineBreaks) -> Vec<String> {
        let (mut out, mut line) = (Vec::new(), String::new());
        let chars: Vec<char> = text.chars().collect();
        for (i, &c) in chars.iter().enumerate() {
            line.push(c);
            let wide = mode == LineBreaks::Unicode
                && (matches!(c, '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
                    || (c == '\r' && chars.get(i + 1) != Some(&'\n')));
            if c == '\n' || wide {
                out.push(std::mem::take(&mut line));
            }
        }
        out.extend((!line.is_empty()).then_some(line));
        out
    }

    proptest! {
        #[test]
        fn lines_are_those_of_the_definition(text in "[a\\r\\n\u{b}\u{1d}\u{85}\u{2028}\u{6c34}]{0,30}", n in 1u64..8) {
            use TextEncoding::*;
            for mode in [LineBreaks::Newline, LineBreaks::Unicode] {
                let lines = lines(&text, mode);
                for encoding in [Utf8, Utf16Le, Utf16Be, Utf32Le, Legacy(GB18030)] {
                    let raw = encoding.encode(&text).unwrap();
                    let breaks = breaks(encoding, mode);
                    let ended = lines.iter().filter(|line| breaks.ends_with_break(&encoding.encode(line).unwrap())).count();
                    prop_assert_eq!(breaks.count(&raw), ended as u64);
                    let nth = lines.iter().take(n as usize).map(|line| encoding.encode(line).unwrap().len()).sum::<usize>();
                    let expected = if n as usize <= ended { Ok(nth) } else { Err(ended as u64) };
                    prop_assert_eq!(breaks.nth(&raw, n), expected);
                    let last = lines.iter().take(ended).map(|line| encoding.encode(line).unwrap().len()).sum::<usize>();
                    prop_assert_eq!(breaks.last(&raw), last);
                }
            }
        }

        #[test]
        fn a_tally_in_pieces_is_the_tally(text in "[ab\\r\\n]{0,24}", cut in 0usize..24) {
            use TextEncoding::*;
            for encoding in [Utf8, Utf16Be] {
                let raw = encoding.encode(&text).unwrap();
                let breaks = breaks(encoding, LineBreaks::Newline);
                let mut whole = LineEnds::default();
                breaks.tally(&mut whole, &raw, breaks.count(&raw));
                let cut = cut.min(raw.len());
                let cut = cut - breaks.held_back(&raw[..cut]);
                let mut pieces = LineEnds::default();
                breaks.tally(&mut pieces, &raw[..cut], breaks.count(&raw[..cut]));
                breaks.tally(&mut pieces, &raw[cut..], breaks.count(&raw[cut..]));
                prop_assert_eq!((whole.kind(), whole.lone_cr(true)), (pieces.kind(), pieces.lone_cr(true)));
                let crlf = text.matches("\r\n").count();
                let lf = text.matches('\n').count() - crlf;
                prop_assert_eq!((whole.lf, whole.crlf), (lf as u64, crlf as u64));
                prop_assert_eq!(whole.lone_cr(true), text.matches('\r').count() > crlf);
            }
        }
    }
}
