//! What a file is, by its content: text of some encoding, an image, or binary. A name is a hint, asked only for the
//! words of a MIME type.

use super::encoding::TextEncoding;
use crate::image::{Sniffed, sniff};
use encoding_rs::WINDOWS_1252;

/// How much of a file decides what it is.
pub const SAMPLE: usize = 8 << 10;

/// What a file is.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Text.
    Text(Text),
    /// An image of a format that has a decoder, or of one that is known and has none.
    Image(Sniffed),
    /// Anything else, with its MIME type.
    Binary(String),
}

/// How a text is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its encoding.
    pub encoding: TextEncoding,
    /// Length of the byte order mark, 0 without.
    pub bom: usize,
    /// Whether a legacy encoding was guessed: then only ASCII may be written into it.
    pub guessed: bool,
}

/// What the file is that begins with `head`. `whole`: there is no more. `name`: the file's name, for formats that no
/// content tells, and for MIME types.
pub fn classify(head: &[u8], whole: bool, name: &[u8]) -> Kind {
    let whole = whole && head.len() <= SAMPLE;
    let head = &head[..head.len().min(SAMPLE)];
    if let Some((encoding, bom)) = TextEncoding::of_bom(head) {
        if few_controls(encoding, &head[bom..], whole) {
            return Kind::Text(Text { encoding, bom, guessed: false });
        }
        return Kind::Binary(binary_mime(head, name));
    }
    if let Some(sniffed) = sniff(head, name) {
        return Kind::Image(sniffed);
    }
    if signature(head).is_some() {
        return Kind::Binary(binary_mime(head, name));
    }
    match text(head, whole) {
        Some(text) => Kind::Text(text),
        None => Kind::Binary(binary_mime(head, name)),
    }
}

/// How a file is read that is to be text whatever it is: by its byte order mark, else as UTF-8.
pub fn as_text(head: &[u8]) -> Text {
    let (encoding, bom) = TextEncoding::of_bom(head).unwrap_or((TextEncoding::Utf8, 0));
    Text { encoding, bom, guessed: false }
}

/// The text without a byte order mark that `head` begins, if it is one.
fn text(head: &[u8], whole: bool) -> Option<Text> {
    let told = |encoding| Text { encoding, bom: 0, guessed: false };
    if is_utf8(head, whole) && few_controls(TextEncoding::Utf8, head, whole) {
        return Some(told(TextEncoding::Utf8));
    }
    for encoding in [TextEncoding::Utf16Le, TextEncoding::Utf16Be] {
        if is_utf16(encoding, head, whole) && few_controls(encoding, head, whole) {
            return Some(told(encoding));
        }
    }
    // A valid UTF-8 that holds too many controls is no legacy text either.
    if is_utf8(head, whole) {
        return None;
    }
    // In all of these encodings a control is a byte of its own, and no byte is more than a character: a guess, which takes
    // long, would change nothing.
    if has_many_controls(head) {
        return None;
    }
    let encoding = TextEncoding::Legacy(legacy(head, whole));
    few_controls(encoding, head, whole).then_some(Text { encoding, bom: 0, guessed: true })
}

fn is_utf8(head: &[u8], whole: bool) -> bool {
    let complete = if whole { head } else { &head[..head.len() - TextEncoding::Utf8.incomplete_tail(head)] };
    simdutf8::basic::from_utf8(complete).is_ok()
}

/// Strong evidence for UTF-16 without a mark: whole pairs of surrogates, and half of it plain ASCII characters.
fn is_utf16(encoding: TextEncoding, head: &[u8], whole: bool) -> bool {
    if head.len() < 4 || (whole && head.len() % 2 == 1) {
        return false;
    }
    let (units, _) = head.as_chunks::<2>();
    let plain = |unit: &&[u8; 2]| {
        let (low, high) =
            if encoding == TextEncoding::Utf16Le { (unit[0], unit[1]) } else { (unit[1], unit[0]) };
        high == 0 && matches!(low, b'\t' | b'\n' | b'\r' | b' '..=b'~')
    };
    let tail = if whole { 0 } else { encoding.incomplete_tail(head) };
    units.iter().filter(plain).count() * 2 >= units.len()
        && !encoding.decode(&head[..head.len() - tail]).lossy
}

fn legacy(head: &[u8], whole: bool) -> &'static encoding_rs::Encoding {
    use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(head, whole);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let encoding = TextEncoding::Legacy(guess);
    let tail = if whole { 0 } else { encoding.incomplete_tail(head) };
    // A guess that does not decode is none; windows-1252 gives every byte a character.
    if encoding.decode(&head[..head.len() - tail]).lossy { WINDOWS_1252 } else { guess }
}

/// Whether `sample` holds too many controls in each encoding in which ASCII stays ASCII.
fn has_many_controls(sample: &[u8]) -> bool {
    let controls = sample.iter().filter(|&&byte| is_control(byte)).count();
    controls > 1 && controls * 100 > sample.len()
}

/// At most one character, or one in a hundred, is a control that no text needs.
fn few_controls(encoding: TextEncoding, sample: &[u8], whole: bool) -> bool {
    let tail = if whole { 0 } else { encoding.incomplete_tail(sample) };
    let sample = &sample[..sample.len() - tail];
    if encoding == TextEncoding::Utf8 && !holds_control(sample) {
        return true;
    }
    let decoded = encoding.decode(sample);
    let controls = decoded.text.bytes().filter(|&b| is_control(b)).count();
    controls <= 1 || controls * 100 <= decoded.text.chars().count()
}

/// Whether a byte of `sample` is a control. Every file that is searched is asked: without a branch a byte, so that the
/// compiler compares many at once.
fn holds_control(sample: &[u8]) -> bool {
    sample.chunks(1 << 10).any(|chunk| chunk.iter().fold(false, |any, &b| any | is_control(b)))
}

/// U+0000 to U+001F other than TAB LF VT FF CR BS ESC FS GS RS, and U+007F. Bytes of longer characters are none.
fn is_control(byte: u8) -> bool {
    (byte <= 0x07) | (byte.wrapping_sub(0x0e) <= 0x1a - 0x0e) | (byte == 0x1f) | (byte == 0x7f)
}

/// A known signature with a plausible header: one that no text begins with. Many magics are plain letters (`BM`,
/// `MZ`, `ID3`); a real header holds a control among its first bytes, except PDF's, which holds a version.
fn signature(head: &[u8]) -> Option<infer::Type> {
    let start = &head[..head.len().min(24)];
    let pdf = start.starts_with(b"%PDF-") && start.get(5).is_some_and(u8::is_ascii_digit);
    if !pdf && !start.iter().any(|&b| is_control(b)) {
        return None;
    }
    infer::get(head).filter(|kind| kind.matcher_type() != infer::MatcherType::Text)
}

fn binary_mime(head: &[u8], name: &[u8]) -> String {
    if let Some(kind) = infer::get(head).filter(|kind| kind.matcher_type() != infer::MatcherType::Text) {
        return kind.mime_type().to_owned();
    }
    let guess = guess(name).filter(|mime| !mime.starts_with("text/"));
    guess.unwrap_or_else(|| "application/octet-stream".to_owned())
}

/// The MIME type of a text, by its name where that names a kind of text.
pub fn text_mime(name: &[u8]) -> String {
    let extension = name.rsplit(|&b| b == b'.').next().unwrap_or_default();
    // Its registered type is a video's.
    if [&b"ts"[..], b"mts", b"cts", b"tsx"].iter().any(|ts| extension.eq_ignore_ascii_case(ts)) {
        return "text/x-typescript".to_owned();
    }
    let textual = |mime: &String| {
        mime.starts_with("text/")
            || mime.ends_with("+xml")
            || mime.ends_with("+json")
            || ["json", "xml", "javascript", "toml", "x-sh", "sql", "yaml", "x-yaml"]
                .iter()
                .any(|kind| mime.strip_prefix("application/") == Some(kind))
    };
    guess(name).filter(textual).unwrap_or_else(|| "text/plain".to_owned())
}

fn guess(name: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(name).ok()?;
    let (_, extension) = name.rsplit_once('.')?;
    mime_guess::from_ext(extension).first_raw().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name_of(kind: &Kind) -> String {
        match kind {
            Kind::Text(text) => text.encoding.name(),
            Kind::Image(sniffed) => sniffed.mime_type().to_owned(),
            Kind::Binary(mime) => mime.clone(),
        }
    }

    fn check(head: &[u8], expected: &str) {
        assert_eq!(name_of(&classify(head, true, b"x")), expected, "{:?}", head.escape_ascii().to_string());
    }

    #[test]
    fn texts() {
        check(b"", "utf-8");
        check(b"plain\n", "utf-8");
        check(b"\0", "utf-8");
        check(b"\x1b[31mred\x1b[0m\nback\x08\x08\n\x07one bell\n", "utf-8");
        check(b"\x0b\x0c\x08\x1b\x1c\x1d\x1e\n", "utf-8");
        check(b"\xef\xbb\xbfx", "utf-8");
        check(b"\xff\xfea\0", "utf-16le");
        check(b"\xff\xfe\0\0a\0\0\0", "utf-32le");
        check(b"a\0b\0c\0\r\0\n\0", "utf-16le");
        check(b"\0a\0b\0c\0\n", "utf-16be");
        check(b"caf\xe9 no\xebl, d\xe9j\xe0 vu, \xe9t\xe9 fran\xe7ais\n", "windows-1252");
        check(b"<svg xmlns='http://www.w3.org/2000/svg'/>\n", "utf-8");
    }

    #[test]
    fn texts_that_begin_like_a_signature() {
        for text in [
            "BMW is a car\n",
            "MZ was here\n",
            "ID3 tags are\n",
            "RIFF and WAVE\n",
            "GIF89a is a format\n",
            "OggS\n",
            "%PDF is a format\n",
        ] {
            check(text.as_bytes(), "utf-8");
        }
        check(b"P3\n2 1\n255\n255 0 0 0 0 255\n", "utf-8");
    }

    #[test]
    fn binaries() {
        check(b"\x01\x02\x03\x04ab\n", "application/octet-stream");
        check(b"abc\x7f\x7f\n", "application/octet-stream");
        check(b"\xef\xbb\xbf\x01\x02\x03ab\n", "application/octet-stream");
        check(b"\xff\xfea\0\x01\0\x02\0\x03\0", "application/octet-stream");
        check(b"%PDF-1.4\n1 0 obj\n", "application/pdf");
        check(b"PK\x03\x04\x14\0\0\0\0\0", "application/zip");
        check(b"\0\x01\x02\xff\xfe\0rec\0", "application/octet-stream");
    }

    #[test]
    fn images_even_if_damaged() {
        check(b"\x89PNG\r\n\x1a\nnot really", "image/png");
        check(b"\xff\xd8\xff\xe0\0\x10JFIF\0", "image/jpeg");
    }

    #[test]
    fn a_character_cut_by_the_sample_is_no_evidence() {
        let text = "a".to_owned() + &"\u{6c34}".repeat(4000);
        assert_eq!(name_of(&classify(text.as_bytes(), true, b"x")), "utf-8");
        let mut cut = vec![b'a'; SAMPLE - 1];
        cut.push(0xe6);
        assert_eq!(name_of(&classify(&cut, false, b"x")), "utf-8");
        assert_ne!(name_of(&classify(&cut, true, b"x")), "utf-8");
    }

    #[test]
    fn mime_types() {
        assert_eq!(text_mime(b"app.ts"), "text/x-typescript");
        assert_eq!(text_mime(b"song.mp3"), "text/plain");
        assert_eq!(text_mime(b"a.rs"), "text/x-rust");
        assert_eq!(text_mime(b"a.json"), "application/json");
        assert_eq!(text_mime(b"LICENSE"), "text/plain");
    }

    proptest! {
        #[test]
        fn many_controls_are_too_many_in_every_legacy_encoding(
            sample in proptest::collection::vec(prop_oneof![Just(1u8), Just(0x7f), Just(b'a'), any::<u8>()], 0..300),
        ) {
            if has_many_controls(&sample) {
                let encoding = TextEncoding::Legacy(legacy(&sample, true));
                prop_assert!(!few_controls(encoding, &sample, true));
            }
        }
    }
}
