//! Finding a text in a body of bytes: as exact bytes of its encoding, or with line ends that may be CRLF or LF. Matches
//! begin where a character begins; nothing else is ever taken for equal.

use memchr::memmem::Finder;

use super::encoding::TextEncoding;

/// A place in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A text that is searched for.
#[derive(Debug)]
pub(crate) struct Needle {
    encoding: TextEncoding,
    ends: LineEndBytes,
    /// What lies between the line ends; one piece when the bytes have to be exact.
    pieces: Vec<Vec<u8>>,
    /// The piece that is searched for first: the longest.
    anchor: usize,
    finder: Finder<'static>,
    /// At least so many bytes of a match lie before the anchor.
    before: usize,
}

/// The bytes of the line ends in an encoding.
#[derive(Clone, Debug)]
pub(crate) struct LineEndBytes {
    pub(crate) cr: Vec<u8>,
    pub(crate) lf: Vec<u8>,
}

impl LineEndBytes {
    pub(crate) fn of(encoding: TextEncoding) -> Self {
        // Both are ASCII, which has bytes in every encoding.
        let bytes = |text| encoding.encode(text).unwrap_or_default();
        Self { cr: bytes("\r"), lf: bytes("\n") }
    }
}

impl Needle {
    /// The exact bytes of `text`; `None` where it has none in this encoding, and so cannot be there.
    pub(crate) fn exact(encoding: TextEncoding, text: &str) -> Option<Self> {
        let piece = encoding.encode(text).ok()?;
        Some(Self::of(encoding, vec![piece]))
    }

    /// `text` with each of its line ends, CRLF or LF, standing for both; `None` when it has none.
    pub(crate) fn any_line_end(encoding: TextEncoding, text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.split('\n').collect();
        let (last, ended) = lines.split_last()?;
        if ended.is_empty() {
            return None;
        }
        let ended = ended.iter().map(|line| line.strip_suffix('\r').unwrap_or(line));
        let pieces = ended.chain([*last]).map(|line| encoding.encode(line).ok()).collect::<Option<_>>()?;
        Some(Self::of(encoding, pieces))
    }

    fn of(encoding: TextEncoding, pieces: Vec<Vec<u8>>) -> Self {
        let ends = LineEndBytes::of(encoding);
        let longest = pieces.iter().map(Vec::len).max().unwrap_or(0);
        let anchor = pieces.iter().position(|piece| piece.len() == longest).unwrap_or(0);
        let before = pieces[..anchor].iter().map(Vec::len).sum::<usize>() + anchor * ends.lf.len();
        // Nothing but line ends: the first of them is the anchor.
        let finder = Finder::new(if longest == 0 { &ends.lf } else { &pieces[anchor] }).into_owned();
        Self { encoding, ends, pieces, anchor, finder, before }
    }

    /// The most bytes that a match takes.
    pub(crate) fn most(&self) -> usize {
        let ends = (self.pieces.len() - 1) * (self.ends.cr.len() + self.ends.lf.len());
        self.pieces.iter().map(Vec::len).sum::<usize>() + ends
    }

    /// The first match in `body` that begins at `from` or later.
    pub(crate) fn find(&self, body: &[u8], from: usize) -> Option<Span> {
        let mut at = from.checked_add(self.before)?;
        loop {
            let hit = at + self.finder.find(body.get(at..)?)?;
            if let Some(span) = self.match_at(body, hit)
                && span.start >= from
            {
                return Some(span);
            }
            at = hit + 1;
        }
    }

    /// The next search after `span` that counts overlapping matches begins here.
    pub(crate) fn behind_start(&self, span: Span) -> usize {
        span.start + self.encoding.unit()
    }

    /// The match whose anchor lies at `hit`.
    fn match_at(&self, body: &[u8], hit: usize) -> Option<Span> {
        if !hit.is_multiple_of(self.encoding.unit()) {
            return None;
        }
        let mut span = if self.pieces[self.anchor].is_empty() {
            let start = self.line_end_before(body, hit + self.ends.lf.len())?;
            Span { start, end: start }
        } else {
            let mut span = Span { start: hit, end: hit + self.pieces[self.anchor].len() };
            for piece in self.pieces[..self.anchor].iter().rev() {
                let before = self.line_end_before(body, span.start)?;
                span.start = body[..before].ends_with(piece).then(|| before - piece.len())?;
            }
            span
        };
        for piece in &self.pieces[self.anchor + 1..] {
            let behind = self.line_end_after(body, span.end)?;
            span.end = body[behind..].starts_with(piece).then_some(behind + piece.len())?;
        }
        self.begins_character(body, span.start).then_some(span)
    }

    /// Where the line end begins that ends at `at`: a CR right before the LF belongs to it.
    fn line_end_before(&self, body: &[u8], at: usize) -> Option<usize> {
        let line = body.get(..at)?.strip_suffix(self.ends.lf.as_slice())?;
        Some(line.strip_suffix(self.ends.cr.as_slice()).unwrap_or(line).len())
    }

    /// Where the line end ends that begins at `at`.
    fn line_end_after(&self, body: &[u8], at: usize) -> Option<usize> {
        let rest = body.get(at..)?;
        if let Some(rest) = rest.strip_prefix(self.ends.cr.as_slice())
            && rest.starts_with(&self.ends.lf)
        {
            return Some(at + self.ends.cr.len() + self.ends.lf.len());
        }
        // The CR before a bare LF would belong to the line end, not to the piece.
        let bare = rest.starts_with(&self.ends.lf) && !body[..at].ends_with(&self.ends.cr);
        bare.then_some(at + self.ends.lf.len())
    }

    /// In the encodings whose later bytes look like ASCII, a match may begin inside a character.
    fn begins_character(&self, body: &[u8], at: usize) -> bool {
        if !self.encoding.is_multibyte_legacy() {
            return true;
        }
        let line = memchr::memrchr(b'\n', &body[..at]).map_or(0, |lf| lf + 1);
        self.encoding.char_start(&body[line..], at - line) == at - line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use TextEncoding::{Legacy, Utf8, Utf16Le};

    fn starts(needle: &Needle, body: &[u8]) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(span) = needle.find(body, from) {
            found.push((span.start, span.end));
            from = needle.behind_start(span);
        }
        found
    }

    #[test]
    fn exact_matches_overlap_and_begin_characters() {
        let exact = |encoding, text| Needle::exact(encoding, text).unwrap();
        assert_eq!(starts(&exact(Utf8, "aa"), b"aaaa"), [(0, 2), (1, 3), (2, 4)]);
        // U+0161 U+6101 hold the bytes of "a" between them.
        assert_eq!(starts(&exact(Utf16Le, "a"), b"\x61\x01\x61\x00\x00\x61\x00\x00"), [(2, 4)]);
        // The second byte of a Shift_JIS character is a backslash.
        let sjis = Legacy(encoding_rs::SHIFT_JIS);
        assert_eq!(starts(&exact(sjis, "\\"), b"\x83\\\\x"), [(2, 3)]);
        assert!(Needle::exact(Legacy(encoding_rs::WINDOWS_1252), "\u{6c34}").is_none());
    }

    #[test]
    fn line_ends_stand_for_both() {
        let loose = |text| Needle::any_line_end(Utf8, text).unwrap();
        type Places = &'static [(usize, usize)];
        let cases: &[(&str, &str, Places)] = &[
            ("a\nb", "a\r\nb a\nb", &[(0, 4), (5, 8)]),
            ("a\r\nb", "a\nb", &[(0, 3)]),
            ("\nb", "a\r\nb", &[(1, 4)]),
            ("a\n", "a\r\n", &[(0, 3)]),
            ("\n", "\r\n\n", &[(0, 2), (2, 3)]),
            ("\n\n", "\n\r\n\n", &[(0, 3), (1, 4)]),
            // A lone CR is text.
            ("a\r\r\nb", "a\r\nb", &[]),
            ("a\r\r\nb", "a\r\r\nb", &[(0, 5)]),
            ("a\nb", "a\r\r\nb", &[]),
            ("x\nlong line\ny", "x\r\nlong line\ny", &[(0, 14)]),
        ];
        for (text, body, expected) in cases {
            assert_eq!(starts(&loose(text), body.as_bytes()), *expected, "{text:?} in {body:?}");
        }
        assert!(Needle::any_line_end(Utf8, "no line end").is_none());
    }

    #[test]
    fn line_ends_of_wider_encodings() {
        let body = Utf16Le.encode("one\r\ntwo\r\n").unwrap();
        let needle = Needle::any_line_end(Utf16Le, "one\ntwo").unwrap();
        assert_eq!(starts(&needle, &body), [(0, 16)]);
    }
}
