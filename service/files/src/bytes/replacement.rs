//! The text that an edit puts in: literal, in the file's encoding, and with the line ends of the place where it goes.

use super::encoding::TextEncoding;
use super::kind::Text;
use super::needle::{LineEndBytes, Span};

/// The bytes of a new text, in each style of line ends.
#[derive(Debug)]
pub(crate) struct Replacement {
    sent: Vec<u8>,
    lf: Vec<u8>,
    crlf: Vec<u8>,
}

/// How the lines of a place end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Nobody says: as sent.
    Sent,
    Lf,
    CrLf,
}

impl Replacement {
    /// The bytes of `new`; the first character that has none in this text is the error.
    pub(crate) fn of(text: Text, new: &str) -> Result<Self, char> {
        if text.guessed
            && let Some(character) = new.chars().find(|c| !c.is_ascii())
        {
            return Err(character);
        }
        let sent = text.encoding.encode(new)?;
        if !new.contains('\n') {
            return Ok(Self { lf: sent.clone(), crlf: sent.clone(), sent });
        }
        let lf = new.replace("\r\n", "\n");
        let crlf = lf.replace('\n', "\r\n");
        Ok(Self { lf: text.encoding.encode(&lf)?, crlf: text.encoding.encode(&crlf)?, sent })
    }

    /// The bytes in `style`, and whether they differ from those sent.
    pub(crate) fn bytes(&self, style: Style) -> (&[u8], bool) {
        let bytes = match style {
            Style::Sent => &self.sent,
            Style::Lf => &self.lf,
            Style::CrLf => &self.crlf,
        };
        (bytes, *bytes != self.sent)
    }
}

/// The style of the first line end in `span`; where it has none, of the line in which it starts; where that has none,
/// of the line before.
pub(crate) fn style_at(body: &[u8], encoding: TextEncoding, ends: &LineEndBytes, span: Span) -> Style {
    let lf = next_lf(body, encoding, ends, span.start).or_else(|| last_lf(body, encoding, ends, span.start));
    match lf {
        None => Style::Sent,
        Some(lf) if body[..lf].ends_with(&ends.cr) => Style::CrLf,
        Some(_) => Style::Lf,
    }
}

fn next_lf(body: &[u8], encoding: TextEncoding, ends: &LineEndBytes, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let hit = at + memchr::memmem::find(&body[at..], &ends.lf)?;
        if hit.is_multiple_of(encoding.unit()) {
            return Some(hit);
        }
        at = hit + 1;
    }
}

fn last_lf(body: &[u8], encoding: TextEncoding, ends: &LineEndBytes, before: usize) -> Option<usize> {
    let mut end = before;
    loop {
        let hit = memchr::memmem::rfind(&body[..end], &ends.lf)?;
        if hit.is_multiple_of(encoding.unit()) {
            return Some(hit);
        }
        end = hit + ends.lf.len() - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles() {
        let ends = LineEndBytes::of(TextEncoding::Utf8);
        let style = |body: &str, start, end| {
            style_at(body.as_bytes(), TextEncoding::Utf8, &ends, Span { start, end })
        };
        assert_eq!(style("ab", 0, 1), Style::Sent);
        assert_eq!(style("a\r\nb\nc", 0, 1), Style::CrLf);
        assert_eq!(style("a\r\nb\nc", 3, 4), Style::Lf);
        // The last line has no end: the one before tells.
        assert_eq!(style("a\r\nb\r\nc", 6, 7), Style::CrLf);
        assert_eq!(style("a\nb", 2, 3), Style::Lf);
        // The region's own first line end decides.
        assert_eq!(style("a\nb\r\nc\r\n", 0, 6), Style::Lf);
    }

    #[test]
    fn wide_styles_are_aligned() {
        let encoding = TextEncoding::Utf16Le;
        let ends = LineEndBytes::of(encoding);
        // U+0A0A U+000A: the bytes of a line feed straddle the first two units.
        let body = b"\x0a\x0a\x00\x0aa\0\r\0\n\0";
        assert_eq!(style_at(body, encoding, &ends, Span { start: 0, end: 2 }), Style::CrLf);
    }

    #[test]
    fn a_guessed_encoding_takes_ascii_alone() {
        let told = Text { encoding: TextEncoding::Legacy(encoding_rs::WINDOWS_1252), bom: 0, guessed: false };
        let guessed = Text { guessed: true, ..told };
        assert_eq!(Replacement::of(told, "\u{e9}").unwrap().sent, b"\xe9");
        assert_eq!(Replacement::of(guessed, "e\u{e9}").unwrap_err(), '\u{e9}');
        assert_eq!(Replacement::of(told, "\u{6c34}").unwrap_err(), '\u{6c34}');
        assert!(Replacement::of(guessed, "x\r\n").is_ok());
    }
}
