//! What a content is like, learnt while it passes by: length, hash, line ends, byte order mark.

use filectx_openapi::{LineEnding, Warning, WarningCode};
use xxhash_rust::xxh3::Xxh3Default;

use super::kind::{Kind, SAMPLE, Text, classify};

/// The facts of a content, or of its beginning.
#[derive(Clone)]
pub(crate) struct Facts {
    length: u64,
    hasher: Xxh3Default,
    head: Vec<u8>,
    crlf: bool,
    lf: bool,
    last: u8,
}

impl Default for Facts {
    fn default() -> Self {
        Self { length: 0, hasher: Xxh3Default::new(), head: Vec::new(), crlf: false, lf: false, last: 0 }
    }
}

impl Facts {
    /// The facts of a content that is all there.
    #[cfg(test)]
    pub(crate) fn of(content: &[u8]) -> Self {
        let mut facts = Self::default();
        facts.add(content);
        facts
    }

    /// Takes in what comes next.
    pub(crate) fn add(&mut self, chunk: &[u8]) {
        self.hasher.update(chunk);
        let wanted = SAMPLE.saturating_sub(self.head.len()).min(chunk.len());
        self.head.extend_from_slice(&chunk[..wanted]);
        for at in memchr::memchr_iter(b'\n', chunk) {
            let before = if at == 0 { self.last } else { chunk[at - 1] };
            if before == b'\r' {
                self.crlf = true;
            } else {
                self.lf = true;
            }
            if self.crlf && self.lf {
                break;
            }
        }
        self.last = chunk.last().copied().unwrap_or(self.last);
        self.length += chunk.len() as u64;
    }

    /// Its length in bytes.
    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Its hash.
    pub(crate) fn hash(&self) -> u128 {
        self.hasher.digest128()
    }

    fn text(&self) -> Option<Text> {
        match classify(&self.head, self.length <= SAMPLE as u64, b"") {
            Kind::Text(text) => Some(text),
            Kind::Image(_) | Kind::Binary(_) => None,
        }
    }

    fn line_ending(&self, text: Text) -> LineEnding {
        let (crlf, lf) = if text.encoding.unit() == 1 {
            (self.crlf, self.lf)
        } else {
            // Of the wider encodings the beginning tells.
            let decoded = text.encoding.decode(&self.head);
            let crlf = decoded.text.matches("\r\n").count();
            (crlf > 0, decoded.text.matches('\n').count() > crlf)
        };
        match (crlf, lf) {
            (true, true) => LineEnding::Mixed,
            (true, false) => LineEnding::Crlf,
            (false, true) => LineEnding::Lf,
            (false, false) => LineEnding::None,
        }
    }
}

/// What a reader of the old content may miss in the new one.
pub(crate) fn warnings_of_change(old: &Facts, new: &Facts) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let (Some(before), after) = (old.text(), new.text()) else { return warnings };
    if let Some(after) = after {
        let (was, is) = (old.line_ending(before), new.line_ending(after));
        if was != is && was != LineEnding::None && is != LineEnding::None {
            let message = format!("the lines ended in {}, and now in {}", words(was), words(is));
            warnings.push(Warning { code: WarningCode::LineEndingsChanged, message });
        }
    }
    if before.bom > 0 && after.is_none_or(|after| after.bom == 0) {
        let message = format!("the file began with the byte order mark of {}", before.encoding.name());
        warnings.push(Warning { code: WarningCode::BomRemoved, message });
    }
    warnings
}

fn words(ending: LineEnding) -> &'static str {
    match ending {
        LineEnding::Lf => "LF",
        LineEnding::Crlf => "CRLF",
        LineEnding::Mixed => "both LF and CRLF",
        LineEnding::None => "nothing",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_warned_of() {
        let cases: &[(&[u8], &[u8], &[WarningCode])] = &[
            (b"a\nb\n", b"c\nd\n", &[]),
            (b"a\r\nb\r\n", b"c\nd\n", &[WarningCode::LineEndingsChanged]),
            (b"a\nb\n", b"c\r\nd\n", &[WarningCode::LineEndingsChanged]),
            (b"a\r\nb\n", b"c\r\nd\n", &[]),
            (b"a\r\n", b"b", &[]),
            (b"\xef\xbb\xbfa\n", b"a\n", &[WarningCode::BomRemoved]),
            (b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb\n", &[]),
            (b"\xff\xfea\0\r\0\n\0", b"a\n", &[WarningCode::LineEndingsChanged, WarningCode::BomRemoved]),
            (b"\x89PNG\r\n\x1a\n", b"a\n", &[]),
            (b"a\r\n", b"\x89PNG\r\n\x1a\n\0", &[]),
        ];
        for (old, new, expected) in cases {
            let warnings = warnings_of_change(&Facts::of(old), &Facts::of(new));
            let codes: Vec<_> = warnings.into_iter().map(|warning| warning.code).collect();
            assert_eq!(&codes, expected, "{} -> {}", old.escape_ascii(), new.escape_ascii());
        }
    }

    #[test]
    fn chunks_do_not_matter() {
        let content = b"one\r\ntwo\r\n";
        for cut in 0..=content.len() {
            let mut facts = Facts::default();
            facts.add(&content[..cut]);
            facts.add(&content[cut..]);
            assert!(warnings_of_change(&Facts::of(content), &facts).is_empty(), "{cut}");
            assert_eq!(facts.hash(), Facts::of(content).hash());
            assert_eq!(facts.length(), 10);
        }
    }
}
