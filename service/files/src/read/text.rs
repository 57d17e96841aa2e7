//! Text files: windows of lines by one scan from the start, or a range of bytes moved to characters.

use filectx_openapi::{ByteRange, FileContext, Truncation};
use xxhash_rust::xxh3::Xxh3;

use super::file::Job;
use super::settle::{CutBy, Piece};
use crate::Error;
use crate::bytes::breaks::{Breaks, LineEnds};
use crate::bytes::kind::{Text, text_mime};
use crate::bytes::window::{Cut, Scan, Scanner, Wanted, Window};
use crate::disk::identity::{format_hash, hash_revision};

/// Up to this size lines are counted when the request does not say.
const COUNTED_BYTES: u64 = 64 << 20;
/// How far back the start of a line is looked for, to find the characters of a multi-byte legacy encoding.
const LINE_SEARCH_BYTES: u64 = 4 << 20;

/// Reads a text file.
pub(super) fn read(mut job: Job<'_>, text: Text, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    job.base.mime_type = Some(text_mime(job.name));
    job.base.encoding = Some(text.encoding.name());
    job.base.bom = (text.bom > 0).then_some(true);
    match job.file.byte_range {
        Some(range) => bytes(job, text, range, block),
        None => lines(job, text, block),
    }
}

fn lines(mut job: Job<'_>, text: Text, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let all = [Wanted { start: 1, end: None, indexes: Vec::new() }];
    let asked = !job.wanted.is_empty();
    let wanted = if asked { &job.wanted[..] } else { &all[..] };
    let open = wanted.iter().any(|range| range.end.is_none());
    let (scan, revision) = scan(&job, text, wanted, job.counts(open), block)?;
    let base = std::mem::take(&mut job.base);
    let mut whole = with_facts(&job, base, &scan.line_ends, scan.end, revision);
    let breaks = Breaks::new(text.encoding, job.plan.request.line_breaks);
    let last = scan.windows.len() - 1;
    let pieces = scan.windows.into_iter().enumerate().map(|(index, window)| {
        let base = if index == last { std::mem::take(&mut whole) } else { whole.clone() };
        context(&job, base, &wanted[window.wanted], window, asked, breaks)
    });
    Ok(pieces.collect())
}

/// The context of one window of a file of which `base` tells the whole.
fn context(
    job: &Job<'_>,
    base: FileContext,
    range: &Wanted,
    window: Window,
    asked: bool,
    breaks: Breaks,
) -> Piece {
    // Only a range that was asked for can lie past the end; the whole of an empty file is just empty.
    let past_end = window.past_end && asked;
    let (next_line, next_byte) = match window.cut {
        Some(Cut::BeforeLine(line)) => (Some(line), None),
        Some(Cut::InLine(line, byte)) => (Some(line), Some(byte)),
        None => (None, None),
    };
    let inside = next_byte.is_some();
    let context = FileContext {
        range_indexes: asked.then(|| range.indexes.clone()),
        line_range_start: window.lines.map(|(first, _)| first),
        line_range_end: window.lines.map(|(_, last)| last),
        byte_range_start: inside.then_some(window.bytes.0),
        byte_range_end: inside.then_some(window.bytes.1),
        past_end: past_end.then_some(true),
        lossy: window.lossy.then_some(true),
        truncation: next_line.map(|_| Truncation { limit: job.plan.text.name, next_line, next_byte }),
        text_content: Some(window.text),
        ..base
    };
    let cut = if inside { CutBy::PartOfLine(range.start) } else { CutBy::Lines(breaks, range.start) };
    Piece { context, cut, stored: None }
}

/// Scans the file once: windows, line count, line ends, and the revision.
fn scan(
    job: &Job<'_>,
    text: Text,
    wanted: &[Wanted],
    to_end: bool,
    block: &mut [u8],
) -> Result<(Scan, String), Error> {
    let mut scanner = Scanner::new(text, job.plan.request.line_breaks, wanted, job.plan.text.bytes, to_end);
    let content = text.bom.min(job.head);
    scanner.feed(&block[content..job.head]);
    let mut offset = job.head as u64;
    let size = job.source.size();
    if offset == size {
        let revision = if job.hashed() { hash_revision(&block[..job.head]) } else { job.revision(block)? };
        return Ok((scanner.finish(job.source.is_complete()), revision));
    }
    // One pass serves the windows and the hash.
    let mut hash = job.hashed().then(Xxh3::new);
    if let Some(hash) = &mut hash {
        hash.update(&block[..job.head]);
    }
    let mut at_end = false;
    while !at_end && (hash.is_some() || !scanner.is_done()) {
        job.plan.cancel.check()?;
        let n = job.source.read_at(block, offset)?;
        if let Some(hash) = &mut hash {
            hash.update(&block[..n]);
        }
        scanner.feed(&block[..n]);
        offset += n as u64;
        // Less than the size: the file shrank, and this is its end now.
        at_end = n == 0 || offset >= size;
    }
    let revision = match hash {
        Some(hash) => format_hash(hash.digest128()),
        None => job.source.identity().stat_revision(),
    };
    Ok((scanner.finish(at_end && job.source.is_complete()), revision))
}

fn bytes(mut job: Job<'_>, text: Text, range: ByteRange, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let size = job.source.size();
    let slice = slice(&job, text, range)?;
    let mut line_ends = LineEnds::default();
    let counts = job.counts(range.length.is_none());
    let (end, revision) = if counts {
        let (scan, revision) = scan(&job, text, &[], true, block)?;
        line_ends = scan.line_ends;
        (scan.end, revision)
    } else {
        let breaks = Breaks::new(text.encoding, job.plan.request.line_breaks);
        breaks.tally(&mut line_ends, &slice.raw, breaks.count(&slice.raw));
        (None, job.revision(block)?)
    };
    let base = std::mem::take(&mut job.base);
    let whole = with_facts(&job, base, &line_ends, end, revision);
    let next = slice.start + slice.raw.len() as u64;
    let cut = Truncation { limit: job.plan.text.name, next_line: None, next_byte: Some(next) };
    let past_end = range.offset >= size || text.bom as u64 >= size;
    let context = FileContext {
        byte_range_start: Some(if past_end { size } else { slice.start }),
        byte_range_end: Some(if past_end { size } else { next }),
        past_end: past_end.then_some(true),
        lossy: slice.lossy.then_some(true),
        truncation: slice.cut.then_some(cut),
        text_content: Some(slice.text),
        ..whole
    };
    Ok(vec![Piece { context, cut: CutBy::Characters(text.encoding, slice.raw), stored: None }])
}

/// A range of bytes whose ends were moved down to characters.
struct Slice {
    start: u64,
    raw: Vec<u8>,
    text: String,
    lossy: bool,
    /// The file's budget ended it.
    cut: bool,
}

fn slice(job: &Job<'_>, text: Text, range: ByteRange) -> Result<Slice, Error> {
    let (size, bom, budget) = (job.source.size(), text.bom as u64, job.plan.text.bytes);
    let start = range.offset.clamp(bom.min(size), size);
    let end = range.length.map_or(size, |length| range.offset.saturating_add(length)).clamp(start, size);
    let context = if text.encoding.is_multibyte_legacy() {
        line_start(job, start)?
    } else {
        // A few characters before are enough to know where one begins; the mark is a whole number of units.
        bom.max(start.saturating_sub(8 + (start - bom) % 4))
    };
    // More bytes than this are more text than the whole budget.
    let most = start.saturating_add(budget.saturating_mul(text.encoding.max_shrink())).saturating_add(16);
    let bytes = job.source.read_range(context, end.saturating_add(8).min(most), &job.plan.cancel)?;
    let at = |offset: u64| usize::try_from(offset - context).unwrap_or(usize::MAX).min(bytes.len());
    let from = text.encoding.char_start(&bytes, at(start));
    let to = if end >= size { at(end) } else { text.encoding.char_start(&bytes, at(end)) }.max(from);
    let overflowed = most < end;
    let to = if overflowed { to - text.encoding.incomplete_tail(&bytes[from..to]) } else { to };
    let raw = &bytes[from..to];
    let decoded = text.encoding.decode(raw);
    let start = context + from as u64;
    let fits = usize::try_from(budget).unwrap_or(usize::MAX);
    if decoded.text.len() <= fits && !overflowed {
        let lossy = decoded.lossy;
        return Ok(Slice { start, raw: raw.to_vec(), text: decoded.text.into_owned(), lossy, cut: false });
    }
    let kept = &decoded.text[..decoded.text.floor_char_boundary(fits)];
    let used = text.encoding.raw_len(raw, kept);
    let lossy = decoded.lossy && text.encoding.decode(&raw[..used]).lossy;
    Ok(Slice { start, raw: raw[..used].to_vec(), text: kept.to_owned(), lossy, cut: true })
}

/// Where the line begins that holds the byte `at`.
fn line_start(job: &Job<'_>, at: u64) -> Result<u64, Error> {
    const STEP: u64 = 64 << 10;
    let stop = at.saturating_sub(LINE_SEARCH_BYTES);
    let mut end = at;
    while end > stop {
        let begin = end.saturating_sub(STEP).max(stop);
        let bytes = job.source.read_range(begin, end, &job.plan.cancel)?;
        if let Some(newline) = memchr::memrchr(b'\n', &bytes) {
            return Ok(begin + newline as u64 + 1);
        }
        end = begin;
    }
    Ok(stop)
}

/// `base` with what every context of a text file says of the whole.
fn with_facts(
    job: &Job<'_>,
    base: FileContext,
    line_ends: &LineEnds,
    end: Option<(u64, bool)>,
    revision: String,
) -> FileContext {
    FileContext {
        revision,
        line_count: end.map(|(count, _)| count),
        ends_with_newline: end.map(|(_, ended)| ended),
        line_ending: Some(line_ends.kind()),
        lone_cr: line_ends.lone_cr(end.is_some()).then_some(true),
        changed_during_read: job.source.changed().then_some(true),
        ..base
    }
}

impl Job<'_> {
    /// Whether lines are counted to the end of the file.
    fn counts(&self, open_ended: bool) -> bool {
        self.plan.request.count_lines.unwrap_or(open_ended || self.source.size() <= COUNTED_BYTES)
    }
}
