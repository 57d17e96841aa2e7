//! The encodings of text: names, decoding, encoding, and where characters begin. Which encoding a file has is not
//! decided here (`kind.rs`), nor where its lines end (`breaks.rs`).

use std::borrow::Cow;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, GB18030, GBK, ISO_2022_JP, SHIFT_JIS};

/// The encoding of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEncoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, least significant byte first.
    Utf16Le,
    /// UTF-16, most significant byte first.
    Utf16Be,
    /// UTF-32, least significant byte first.
    Utf32Le,
    /// UTF-32, most significant byte first.
    Utf32Be,
    /// An older encoding of the WHATWG's list, in which ASCII stays ASCII.
    Legacy(&'static encoding_rs::Encoding),
}

use TextEncoding::{Legacy, Utf8, Utf16Be, Utf16Le, Utf32Be, Utf32Le};

/// Decoded text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded<'a> {
    /// The characters.
    pub text: Cow<'a, str>,
    /// Whether undecodable bytes became U+FFFD.
    pub lossy: bool,
}

impl TextEncoding {
    /// The WHATWG name in lower case; `utf-32le` and `utf-32be` besides.
    pub fn name(self) -> String {
        match self {
            Utf8 => "utf-8".into(),
            Utf16Le => "utf-16le".into(),
            Utf16Be => "utf-16be".into(),
            Utf32Le => "utf-32le".into(),
            Utf32Be => "utf-32be".into(),
            Legacy(encoding) => encoding.name().to_ascii_lowercase(),
        }
    }

    /// The encoding that a byte order mark at the start tells, with the mark's length.
    pub fn of_bom(head: &[u8]) -> Option<(Self, usize)> {
        match head {
            // Before UTF-16: its mark begins alike.
            [0xff, 0xfe, 0, 0, ..] => Some((Utf32Le, 4)),
            [0, 0, 0xfe, 0xff, ..] => Some((Utf32Be, 4)),
            [0xef, 0xbb, 0xbf, ..] => Some((Utf8, 3)),
            [0xff, 0xfe, ..] => Some((Utf16Le, 2)),
            [0xfe, 0xff, ..] => Some((Utf16Be, 2)),
            _ => None,
        }
    }

    /// The bytes of the byte order mark, empty where the encoding has none.
    pub fn bom(self) -> &'static [u8] {
        match self {
            Utf8 => b"\xef\xbb\xbf",
            Utf16Le => b"\xff\xfe",
            Utf16Be => b"\xfe\xff",
            Utf32Le => b"\xff\xfe\0\0",
            Utf32Be => b"\0\0\xfe\xff",
            Legacy(_) => b"",
        }
    }

    /// Bytes of a code unit: offsets inside one are not between characters.
    pub fn unit(self) -> usize {
        match self {
            Utf8 | Legacy(_) => 1,
            Utf16Le | Utf16Be => 2,
            Utf32Le | Utf32Be => 4,
        }
    }

    /// At least so many bytes of UTF-8 come out of so many bytes of this encoding: `raw / max_shrink`.
    pub fn max_shrink(self) -> u64 {
        match self {
            Utf8 => 1,
            Utf16Le | Utf16Be => 2,
            Utf32Le | Utf32Be => 4,
            Legacy(encoding) if encoding == ISO_2022_JP => 8,
            Legacy(_) => 1,
        }
    }

    /// Whether a byte range has to be decoded from the start of its line to find the characters.
    pub fn is_multibyte_legacy(self) -> bool {
        matches!(self, Legacy(encoding) if [BIG5, EUC_JP, EUC_KR, GB18030, GBK, ISO_2022_JP, SHIFT_JIS].contains(&encoding))
    }

    /// Decodes all of `raw`, without looking for a byte order mark.
    pub fn decode(self, raw: &[u8]) -> Decoded<'_> {
        match self {
            Utf8 => match simdutf8::basic::from_utf8(raw) {
                Ok(text) => Decoded { text: Cow::Borrowed(text), lossy: false },
                Err(_) => Decoded { text: String::from_utf8_lossy(raw), lossy: true },
            },
            Utf16Le => from_encoding_rs(encoding_rs::UTF_16LE, raw),
            Utf16Be => from_encoding_rs(encoding_rs::UTF_16BE, raw),
            Utf32Le => utf32(raw, u32::from_le_bytes),
            Utf32Be => utf32(raw, u32::from_be_bytes),
            Legacy(encoding) => from_encoding_rs(encoding, raw),
        }
    }

    /// Encodes `text`; the first character that has no bytes in this encoding is the error.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Utf8 => Ok(text.as_bytes().to_vec()),
            Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Utf32Le => Ok(text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
            Utf32Be => Ok(text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
            Legacy(encoding) => {
                let (bytes, _, unmappable) = encoding.encode(text);
                if !unmappable {
                    return Ok(bytes.into_owned());
                }
                let without_bytes = |c: &char| encoding.encode(c.encode_utf8(&mut [0; 4])).2;
                Err(text.chars().find(without_bytes).unwrap_or(char::REPLACEMENT_CHARACTER))
            }
        }
    }

    /// How many bytes at the end of `raw`, the beginning of more, are the beginning of a character.
    pub fn incomplete_tail(self, raw: &[u8]) -> usize {
        match self {
            Utf8 => utf8_incomplete_tail(raw),
            Utf16Le | Utf16Be => {
                let odd = raw.len() % 2;
                let even = &raw[..raw.len() - odd];
                let high =
                    even.last_chunk::<2>().is_some_and(|&unit| (0xd800..0xdc00).contains(&self.unit16(unit)));
                odd + if high { 2 } else { 0 }
            }
            Utf32Le | Utf32Be => raw.len() % 4,
            Legacy(_) if self.is_multibyte_legacy() => {
                let last = self.char_starts(raw).last().unwrap_or(0);
                let left = raw.len() - last;
                if left > 0 && self.char_len(raw, last) > left { left } else { 0 }
            }
            Legacy(_) => 0,
        }
    }

    /// How many bytes of `raw` the first `prefix.len()` bytes of its decoded text come from.
    pub fn raw_len(self, raw: &[u8], prefix: &str) -> usize {
        match self {
            Utf8 if !prefix.contains(char::REPLACEMENT_CHARACTER) => prefix.len(),
            Utf8 => utf8_raw_len(raw, prefix.len()),
            Utf16Le | Utf16Be => (prefix.encode_utf16().count() * 2).min(raw.len()),
            Utf32Le | Utf32Be => (prefix.chars().count() * 4).min(raw.len()),
            Legacy(_) if self.is_multibyte_legacy() => {
                self.char_starts(raw).nth(prefix.chars().count()).unwrap_or(raw.len())
            }
            Legacy(_) => prefix.chars().count().min(raw.len()),
        }
    }

    /// The largest offset of at most `at` where a character begins. `raw` begins where one does: at the start of the
    /// line for a multi-byte legacy encoding, a few characters before `at` for the others.
    pub fn char_start(self, raw: &[u8], at: usize) -> usize {
        let at = at.min(raw.len());
        match self {
            Utf8 => utf8_char_start(raw, at),
            Utf16Le | Utf16Be => {
                let even = at - at % 2;
                let unit = |i: usize| raw.get(i..i + 2).map(|unit| self.unit16([unit[0], unit[1]]));
                let splits = even >= 2
                    && unit(even).is_some_and(|low| (0xdc00..0xe000).contains(&low))
                    && unit(even - 2).is_some_and(|high| (0xd800..0xdc00).contains(&high));
                if splits { even - 2 } else { even }
            }
            Utf32Le | Utf32Be => at - at % 4,
            Legacy(_) if self.is_multibyte_legacy() => {
                self.char_starts(raw).take_while(|&start| start <= at).last().unwrap_or(0)
            }
            Legacy(_) => at,
        }
    }

    fn unit16(self, unit: [u8; 2]) -> u16 {
        if self == Utf16Be { u16::from_be_bytes(unit) } else { u16::from_le_bytes(unit) }
    }

    /// Where the characters of a multi-byte legacy text begin; its end is the last item.
    fn char_starts(self, raw: &[u8]) -> impl Iterator<Item = usize> {
        let mut at = Some(0);
        std::iter::from_fn(move || {
            let start = at?;
            at = (start < raw.len()).then(|| (start + self.char_len(raw, start)).min(raw.len()));
            Some(start)
        })
    }

    /// Bytes of the character at `at` by its lead byte; a lead without its trail stands alone, as decoders have it.
    fn char_len(self, raw: &[u8], at: usize) -> usize {
        let Legacy(encoding) = self else { return 1 };
        let (lead, trail) = (raw[at], raw.get(at + 1).copied());
        let long = if encoding == SHIFT_JIS {
            if matches!(lead, 0x81..=0x9f | 0xe0..=0xfc) { 2 } else { 1 }
        } else if encoding == EUC_JP {
            if lead == 0x8f {
                3
            } else if matches!(lead, 0x8e | 0xa1..=0xfe) {
                2
            } else {
                1
            }
        } else if encoding == GBK || encoding == GB18030 {
            match (lead, trail) {
                (0x81..=0xfe, Some(0x30..=0x39)) => 4,
                (0x81..=0xfe, _) => 2,
                _ => 1,
            }
        } else if encoding == ISO_2022_JP {
            1
        } else if matches!(lead, 0x81..=0xfe) {
            2
        } else {
            1
        };
        let stands_alone = long == 2 && trail.is_some_and(|trail| trail < 0x40);
        if stands_alone { 1 } else { long }
    }
}

fn from_encoding_rs<'a>(encoding: &'static encoding_rs::Encoding, raw: &'a [u8]) -> Decoded<'a> {
    let (text, lossy) = encoding.decode_without_bom_handling(raw);
    Decoded { text, lossy }
}

fn utf32(raw: &[u8], unit: fn([u8; 4]) -> u32) -> Decoded<'static> {
    let (units, tail) = raw.as_chunks::<4>();
    let mut lossy = !tail.is_empty();
    let mut text = String::with_capacity(raw.len() / 4);
    for &bytes in units {
        let c = char::from_u32(unit(bytes));
        lossy |= c.is_none();
        text.push(c.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if !tail.is_empty() {
        text.push(char::REPLACEMENT_CHARACTER);
    }
    Decoded { text: Cow::Owned(text), lossy }
}

/// How long the UTF-8 sequence that `lead` begins should be; 1 for what begins none.
fn utf8_len(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn utf8_incomplete_tail(raw: &[u8]) -> usize {
    let back = raw.iter().rev().take(3).take_while(|&&b| b & 0xc0 == 0x80).count();
    let Some(&lead) = raw.len().checked_sub(back + 1).and_then(|i| raw.get(i)) else { return 0 };
    let tail = &raw[raw.len() - back - 1..];
    // Only what more bytes could still complete: `Utf8Error` knows.
    let incomplete = utf8_len(lead) > back + 1
        && std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none());
    if incomplete { back + 1 } else { 0 }
}

fn utf8_char_start(raw: &[u8], at: usize) -> usize {
    let inside = |start: usize| {
        let end = start + utf8_len(raw[start]);
        end > at && raw.get(start..end).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
    };
    (at.saturating_sub(3)..at).find(|&start| inside(start)).unwrap_or(at)
}

fn utf8_raw_len(raw: &[u8], decoded: usize) -> usize {
    let (mut out, mut used) = (0, 0);
    for chunk in raw.utf8_chunks() {
        let valid = chunk.valid().len();
        if out + valid >= decoded {
            return used + (decoded - out);
        }
        (out, used) = (out + valid + 3, used + valid + chunk.invalid().len());
        if out >= decoded {
            return used;
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: &[TextEncoding] = &[
        Utf8,
        Utf16Le,
        Utf16Be,
        Utf32Le,
        Utf32Be,
        Legacy(encoding_rs::WINDOWS_1252),
        Legacy(GB18030),
        Legacy(SHIFT_JIS),
        Legacy(EUC_JP),
        Legacy(EUC_KR),
        Legacy(BIG5),
    ];

    #[test]
    fn boms() {
        for &encoding in ALL {
            let mut bytes = encoding.bom().to_vec();
            bytes.extend(encoding.encode("x").unwrap());
            let told = TextEncoding::of_bom(&bytes);
            let expected = (!encoding.bom().is_empty()).then(|| (encoding, encoding.bom().len()));
            assert_eq!(told, expected, "{encoding:?}");
        }
    }

    #[test]
    fn what_has_no_bytes_is_named() {
        assert_eq!(Legacy(encoding_rs::WINDOWS_1252).encode("caf\u{e9} \u{6c34}"), Err('\u{6c34}'));
    }

    proptest! {
        #[test]
        fn what_is_encoded_decodes(text in "[a-z\\n\u{e9}\u{6c34}\u{3042}\u{1f9ca}]{0,40}") {
            for encoding in [Utf8, Utf16Le, Utf16Be, Utf32Le, Utf32Be, Legacy(GB18030)] {
                let raw = encoding.encode(&text).unwrap();
                let decoded = encoding.decode(&raw);
                prop_assert_eq!(&decoded.text, &text);
                prop_assert!(!decoded.lossy);
                prop_assert_eq!(encoding.raw_len(&raw, &text), raw.len());
            }
        }

        #[test]
        fn prefixes_know_their_bytes(text in "[a-z\u{e9}\u{6c34}\u{1f9ca}]{0,20}", cut in 0usize..80) {
            let cut = text.floor_char_boundary(cut.min(text.len()));
            for encoding in [Utf8, Utf16Le, Utf32Be, Legacy(GB18030)] {
                let raw = encoding.encode(&text).unwrap();
                let used = encoding.raw_len(&raw, &text[..cut]);
                let head = encoding.decode(&raw[..used]);
                prop_assert_eq!(head.text.as_ref(), &text[..cut]);
                prop_assert_eq!(encoding.char_start(&raw, used), used);
                prop_assert_eq!(encoding.incomplete_tail(&raw[..used]), 0);
            }
        }

        #[test]
        fn lossy_prefixes_know_their_bytes(raw in proptest::collection::vec(any::<u8>(), 0..40), cut in 0usize..80) {
            let decoded = Utf8.decode(&raw);
            let cut = decoded.text.floor_char_boundary(cut.min(decoded.text.len()));
            let used = Utf8.raw_len(&raw, &decoded.text[..cut]);
            let again = Utf8.decode(&raw[..used]);
            prop_assert_eq!(again.text.as_ref(), &decoded.text[..cut]);
        }

        #[test]
        fn a_start_is_a_start(raw in proptest::collection::vec(any::<u8>(), 0..24), at in 0usize..24) {
            for &encoding in ALL {
                let start = encoding.char_start(&raw, at);
                prop_assert!(start <= at.min(raw.len()));
                prop_assert_eq!(encoding.char_start(&raw, start), start);
            }
        }
    }
}
