//! The content of a file as a search wants it: decoded to UTF-8, without its byte order mark, a line's end as LF alone,
//! no line longer than [`LONGEST_LINE`]. Read block by block, never more than the file held when it was opened. What is
//! no text is not searched, and is told by `bytes/kind.rs`.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::{memchr, memrchr};

use crate::buffers::{Buffers, Reservation};
use crate::bytes::encoding::TextEncoding;
use crate::bytes::kind::{Kind, classify};
use crate::disk::open::Opened;
use crate::disk::source::Source;
use crate::{Cancel, Error};

/// The longest line that is searched; in this package's tests a short one, for their speed.
pub(crate) const LONGEST_LINE: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
/// Of a file that does not know its size, so much is read.
const UNSIZED_BYTES: u64 = 64 << 20;
/// The first block: most files are smaller.
const FIRST_BLOCK: usize = 64 << 10;
/// The blocks after it.
const BLOCK: usize = 256 << 10;
/// A search that keeps more than this of one file in memory reserves it first.
const WIDE: usize = 4 << 20;
/// And so much of it: a line in the searcher's buffer, which doubles as it grows, and in ours.
const RESERVED: u64 = 3 * LONGEST_LINE as u64;

/// Whether a search goes on: its caller is there, it has time, and its answer has room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GoingOn<'a> {
    pub(crate) cancel: &'a Cancel,
    pub(crate) full: &'a AtomicBool,
}

impl GoingOn<'_> {
    /// Fails when the search is to end.
    pub(crate) fn check(self) -> Result<(), Error> {
        if self.full.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { self.cancel.check() }
    }
}

/// The text of an open file.
pub(crate) struct Content<'a> {
    source: Source,
    /// How much of it is read.
    offset: u64,
    /// Why reading through [`Read`] failed.
    failed: Option<Error>,
    encoding: TextEncoding,
    /// Bytes that are not decoded yet.
    raw: Vec<u8>,
    /// A CR at the end of the last block: does LF follow?
    held_cr: bool,
    /// Length of the line at hand.
    line: usize,
    /// Whether a line was too long.
    cut: bool,
    /// Plain text that [`Read`] has not given out yet, and how much of it is given out.
    ready: (Vec<u8>, usize),
    buffers: &'a Arc<Buffers>,
    reserved: Option<Reservation>,
    going_on: GoingOn<'a>,
}

impl<'a> Content<'a> {
    /// Begins to read; `plain` becomes the first block. `None`: it is no text.
    pub(crate) fn open(
        opened: Opened,
        name: &[u8],
        plain: &mut Vec<u8>,
        buffers: &'a Arc<Buffers>,
        going_on: GoingOn<'a>,
    ) -> Result<Option<Self>, Error> {
        let mut content = Self {
            source: Source::new(opened, UNSIZED_BYTES, going_on.cancel)?,
            offset: 0,
            failed: None,
            encoding: TextEncoding::Utf8,
            raw: Vec::new(),
            held_cr: false,
            line: 0,
            cut: false,
            ready: (Vec::new(), 0),
            buffers,
            reserved: None,
            going_on,
        };
        plain.clear();
        content.fill(plain, FIRST_BLOCK)?;
        let Kind::Text(text) = classify(plain, content.is_read(), name) else { return Ok(None) };
        content.encoding = text.encoding;
        plain.drain(..text.bom);
        if text.encoding != TextEncoding::Utf8 {
            content.raw.append(plain);
            content.decode(plain);
        }
        content.tidy(plain, 0);
        Ok(Some(content))
    }

    /// Whether all of it was given out.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_read() && self.raw.is_empty() && !self.held_cr
    }

    /// Whether there is nothing left to read.
    fn is_read(&self) -> bool {
        self.offset >= self.source.size()
    }

    /// Why reading through [`Read`] failed.
    pub(crate) fn failure(&mut self) -> Option<Error> {
        self.failed.take()
    }

    /// Whether a line was too long to be searched.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }

    /// Appends the next block to `plain`.
    pub(crate) fn next_block(&mut self, plain: &mut Vec<u8>) -> Result<(), Error> {
        self.going_on.check()?;
        let from = plain.len();
        if std::mem::take(&mut self.held_cr) {
            plain.push(b'\r');
        }
        if self.encoding == TextEncoding::Utf8 {
            self.fill(plain, BLOCK)?;
        } else {
            let mut raw = std::mem::take(&mut self.raw);
            let filled = self.fill(&mut raw, BLOCK);
            self.raw = raw;
            filled?;
            self.decode(plain);
        }
        self.tidy(plain, from);
        if self.line > WIDE { self.reserve() } else { Ok(()) }
    }

    /// Waits until this search may keep much of the file in memory.
    pub(crate) fn reserve(&mut self) -> Result<(), Error> {
        if self.reserved.is_none() {
            self.reserved = Some(self.buffers.reserve(RESERVED, self.going_on.cancel)?);
        }
        Ok(())
    }

    /// Reads up to `block` more bytes.
    fn fill(&mut self, bytes: &mut Vec<u8>, block: usize) -> Result<(), Error> {
        let from = bytes.len();
        if self.line > LONGEST_LINE {
            // What is left of this line is dropped, and no line ends in a hole. By whole units of every encoding.
            self.offset += (self.source.data_from(self.offset) - self.offset) & !3;
        }
        let left = self.source.size() - self.offset;
        let wanted = usize::try_from(left).map_or(block, |left| left.min(block));
        bytes.resize(from + wanted, 0);
        let got = self.source.read_at(&mut bytes[from..], self.offset);
        bytes.truncate(from + got.as_ref().map_or(0, |got| *got));
        let got = got?;
        // A file that became shorter has ended.
        self.offset = if got < wanted { self.source.size() } else { self.offset + got as u64 };
        Ok(())
    }

    /// Decodes what is read, but for the beginning of a character at its end.
    fn decode(&mut self, plain: &mut Vec<u8>) {
        let tail = if self.is_read() { 0 } else { self.encoding.incomplete_tail(&self.raw) };
        let whole = self.raw.len() - tail;
        plain.extend_from_slice(self.encoding.decode(&self.raw[..whole]).text.as_bytes());
        self.raw.drain(..whole);
    }

    /// Makes the new part of `plain` what a search wants: CR LF to LF, and what a line has too much dropped.
    fn tidy(&mut self, plain: &mut Vec<u8>, from: usize) {
        if !self.is_read() && plain.len() > from && plain.last() == Some(&b'\r') {
            plain.pop();
            self.held_cr = true;
        }
        if let Some(first) = memchr(b'\r', &plain[from..]) {
            drop_cr_before_lf(plain, from + first);
        }
        let new = &plain[from..];
        let first = memchr(b'\n', new).unwrap_or(new.len());
        let rest = memrchr(b'\n', new).map(|last| new.len() - last - 1);
        let length = self.line + first;
        if length > LONGEST_LINE {
            // One byte too many stays: who gets the line sees that it is none to search.
            let keep = first.min((LONGEST_LINE + 1).saturating_sub(self.line));
            plain.drain(from + keep..from + first);
            self.cut = true;
        }
        self.line = rest.unwrap_or(length.min(LONGEST_LINE + 1));
    }
}

/// The plain text, block by block.
impl Read for Content<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.ready.1 == self.ready.0.len() {
            if self.is_at_end() {
                return Ok(0);
            }
            let mut block = std::mem::take(&mut self.ready.0);
            block.clear();
            let read = self.next_block(&mut block);
            self.ready = (block, 0);
            if let Err(error) = read {
                self.failed = Some(error);
                return Err(io::Error::other("see Content::failure"));
            }
        }
        let (block, given) = &mut self.ready;
        let len = out.len().min(block.len() - *given);
        out[..len].copy_from_slice(&block[*given..*given + len]);
        *given += len;
        Ok(len)
    }
}

/// Drops each CR that LF follows; `first` is where the first CR stands.
fn drop_cr_before_lf(text: &mut Vec<u8>, first: usize) {
    let (mut read, mut write) = (first, first);
    while read < text.len() {
        if text.get(read + 1) != Some(&b'\n') {
            text[write] = b'\r';
            write += 1;
        }
        read += 1;
        let next = memchr(b'\r', &text[read..]).map_or(text.len(), |next| read + next);
        text.copy_within(read..next, write);
        write += next - read;
        read = next;
    }
    text.truncate(write);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::{FenceConfig, Fences};

    /// What a search sees of a file with these bytes, as a whole and block by block; `None`: no text.
    fn seen(bytes: &[u8]) -> Option<Vec<u8>> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, bytes).unwrap();
        seen_at(&path)
    }

    fn seen_at(path: &std::path::Path) -> Option<Vec<u8>> {
        let fences = Fences::new(&FenceConfig::default()).unwrap();
        let at = fences.locate(path.to_str(), None, None, "").unwrap();
        let (buffers, full) = (Buffers::new(1 << 30), AtomicBool::new(false));
        let cancel = Cancel::after(Duration::from_secs(60));
        let going_on = GoingOn { cancel: &cancel, full: &full };
        let open = |plain: &mut Vec<u8>| {
            Content::open(fences.open_file(&at).unwrap(), b"f", plain, &buffers, going_on).unwrap()
        };
        let (mut whole, mut streamed) = (Vec::new(), Vec::new());
        let mut content = open(&mut whole)?;
        while !content.is_at_end() {
            content.next_block(&mut whole).unwrap();
        }
        let mut content = open(&mut streamed)?;
        content.read_to_end(&mut streamed).unwrap();
        assert!(whole == streamed, "blocks and Read differ");
        assert!(!content.was_cut() || whole.len() > LONGEST_LINE);
        Some(whole)
    }

    #[test]
    fn text_is_plain() {
        for (bytes, plain) in [
            (&b""[..], Some(&b""[..])),
            (b"a\r\nb\r\n", Some(b"a\nb\n")),
            (b"a\rb\r\r\nc\r", Some(b"a\rb\r\nc\r")),
            (b"\xef\xbb\xbfa\r\n", Some(b"a\n")),
            (b"\xff\xfea\0\r\0\n\0\xe9\0", Some("a\n\u{e9}".as_bytes())),
            (b"\xff\xfe\0\0a\0\0\0", Some(b"a")),
            (
                b"caf\xe9 d\xe9j\xe0 vu, \xe9t\xe9\n",
                Some("caf\u{e9} d\u{e9}j\u{e0} vu, \u{e9}t\u{e9}\n".as_bytes()),
            ),
            (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0", None),
        ] {
            assert_eq!(seen(bytes).as_deref(), plain, "{bytes:?}");
        }
    }

    #[test]
    fn a_cr_at_a_blocks_end_waits_for_its_lf() {
        for before in [FIRST_BLOCK - 2, FIRST_BLOCK - 1, FIRST_BLOCK, FIRST_BLOCK + BLOCK - 1] {
            let text = [&b"x".repeat(before)[..], b"\r\ny\r"].concat();
            let plain = [&b"x".repeat(before)[..], b"\ny\r"].concat();
            assert!(seen(&text) == Some(plain), "{before}");
        }
    }

    #[test]
    fn characters_across_blocks_are_decoded_whole() {
        let text = "\u{1f9ca}\u{e9}x\r\n".repeat(40_000);
        let raw = TextEncoding::Utf16Be.encode(&text).unwrap();
        let raw = [TextEncoding::Utf16Be.bom(), &raw].concat();
        assert!(seen(&raw) == Some(text.replace("\r\n", "\n").into_bytes()));
    }

    #[test]
    fn a_line_that_is_too_long_leaves_a_stub() {
        let text = [&b"a\n"[..], &b"x".repeat(LONGEST_LINE + BLOCK), b"\nb\n"].concat();
        let plain = seen(&text).unwrap();
        assert_eq!(plain.len(), 2 + LONGEST_LINE + 1 + 3);
        assert!(plain.ends_with(b"xx\nb\n"));
    }

    #[test]
    fn a_hole_is_passed_over() {
        use std::os::unix::fs::FileExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        // Its beginning is text, or it would not be searched at all.
        let beginning = "a\n".repeat(8 << 10);
        std::fs::write(&path, &beginning).unwrap();
        // Read byte by byte, this would take minutes.
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_at(b"\nb\n", 1 << 40).unwrap();
        let plain = seen_at(&path).unwrap();
        assert_eq!(plain.len(), beginning.len() + LONGEST_LINE + 1 + 3);
        assert!(plain.ends_with(b"\nb\n"));
    }

    proptest! {
        #[test]
        fn only_cr_before_lf_goes(text in proptest::collection::vec(proptest::sample::select(&b"a\r\n"[..]), 0..40)) {
            let expected = String::from_utf8(text.clone()).unwrap().replace("\r\n", "\n");
            let mut plain = text.clone();
            if let Some(first) = memchr(b'\r', &text) {
                drop_cr_before_lf(&mut plain, first);
            }
            prop_assert_eq!(plain, expected.into_bytes());
        }
    }
}
