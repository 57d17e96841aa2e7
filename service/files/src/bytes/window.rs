//! Windows of lines: a scanner that is fed a file's bytes once, in blocks, and keeps only what the wanted ranges and
//! their budget need. How much memory it takes depends on the budget, never on the file.

use filectx_openapi::{LineBreaks, LineRange};

use super::breaks::{Breaks, LineEnds};
use super::kind::Text;

/// A range of lines to return, and the ranges of the request that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// First line, from 1.
    pub start: u64,
    /// Last line, `None` = to the end.
    pub end: Option<u64>,
    /// Indexes of the request's ranges.
    pub indexes: Vec<u64>,
}

/// Sorts ranges and merges those that overlap; adjacent ones stay apart. The index of a range that cannot be is the error.
pub fn merge(ranges: &[LineRange]) -> Result<Vec<Wanted>, usize> {
    if let Some(bad) = ranges.iter().position(|r| r.start == 0 || r.end.is_some_and(|end| end < r.start)) {
        return Err(bad);
    }
    let mut sorted: Vec<(usize, &LineRange)> = ranges.iter().enumerate().collect();
    sorted.sort_by_key(|(index, range)| (range.start, *index));
    let mut merged: Vec<Wanted> = Vec::new();
    for (index, range) in sorted {
        match merged.last_mut() {
            Some(last) if last.end.is_none_or(|end| range.start <= end) => {
                last.end = last.end.and_then(|end| range.end.map(|other| end.max(other)));
                last.indexes.push(index as u64);
            }
            _ => merged.push(Wanted { start: range.start, end: range.end, indexes: vec![index as u64] }),
        }
    }
    Ok(merged)
}

/// What a wanted range came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Which wanted range it answers.
    pub wanted: usize,
    /// The text.
    pub text: String,
    /// Whether undecodable bytes became U+FFFD in it.
    pub lossy: bool,
    /// First and last line returned, where any is.
    pub lines: Option<(u64, u64)>,
    /// The bytes of the file that the text comes from.
    pub bytes: (u64, u64),
    /// Where the budget cut it.
    pub cut: Option<Cut>,
    /// Whether the range lies beyond the end.
    pub past_end: bool,
}

/// Where a budget cut a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before this line.
    BeforeLine(u64),
    /// Inside this line, at this byte of the file.
    InLine(u64, u64),
}

/// What a scan learned of the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// The windows, in the order of the wanted ranges.
    pub windows: Vec<Window>,
    /// Lines of the file and whether the last one is ended, where the scan reached the end.
    pub end: Option<(u64, bool)>,
    /// The line ends that were scanned.
    pub line_ends: LineEnds,
}

/// The scanner.
#[derive(Debug)]
pub struct Scanner<'a> {
    text: Text,
    breaks: Breaks,
    wanted: &'a [Wanted],
    /// Whether to go on to the end of the file when nothing more is wanted.
    to_end: bool,
    /// Bytes of text that one file may give, and what is left of them.
    budget: u64,
    rest: u64,
    windows: Vec<Window>,
    line_ends: LineEnds,
    /// The line that the next byte belongs to, and the offset of that byte.
    line: u64,
    at: u64,
    /// The offset where the line began.
    line_began: u64,
    /// The wanted range in work: its bytes so far, and where they began.
    collected: Vec<u8>,
    began: Option<u64>,
    /// The range in work holds more bytes than the budget can take: they are only counted.
    overflowed: bool,
    held: Vec<u8>,
    /// The last eight bytes, units aligned: eight is a multiple of each.
    last_bytes: [u8; 8],
    /// How many of these there are.
    remembered: usize,
    stopped: bool,
}

impl<'a> Scanner<'a> {
    /// A scanner of a text whose content begins at byte `text.bom` of the file.
    pub fn new(text: Text, mode: LineBreaks, wanted: &'a [Wanted], budget: u64, to_end: bool) -> Self {
        let at = text.bom as u64;
        Self {
            text,
            breaks: Breaks::new(text.encoding, mode),
            wanted,
            to_end,
            budget,
            rest: budget,
            windows: Vec::with_capacity(wanted.len()),
            line_ends: LineEnds::default(),
            line: 1,
            at,
            line_began: at,
            collected: Vec::new(),
            began: None,
            overflowed: false,
            held: Vec::new(),
            last_bytes: [0; 8],
            remembered: 0,
            stopped: wanted.is_empty() && !to_end,
        }
    }

    /// Whether more bytes would tell nothing that was asked.
    pub fn is_done(&self) -> bool {
        self.stopped
    }

    /// Takes the next bytes of the file (without its byte order mark).
    pub fn feed(&mut self, block: &[u8]) {
        if self.stopped || block.is_empty() {
            return;
        }
        if self.held.is_empty() {
            let whole = block.len() - self.breaks.held_back(block);
            self.take(&block[..whole]);
            self.held.extend_from_slice(&block[whole..]);
        } else {
            let mut joined = std::mem::take(&mut self.held);
            joined.extend_from_slice(block);
            let whole = joined.len() - self.breaks.held_back(&joined);
            self.take(&joined[..whole]);
            self.held = joined.split_off(whole);
        }
    }

    /// Ends the scan. `at_end`: the bytes fed are all that the file has.
    pub fn finish(mut self, at_end: bool) -> Scan {
        if at_end && !self.stopped {
            let held = std::mem::take(&mut self.held);
            self.take(&held);
        }
        // A scan that stopped right at the end has reached it.
        let reached = at_end && self.held.is_empty() && !self.stopped;
        if self.began.is_some() {
            // Without the end there is more of it than was fed.
            self.overflowed |= !reached;
            self.close(self.at);
        }
        for wanted in self.windows.len()..self.wanted.len() {
            let range = &self.wanted[wanted];
            let (past_end, cut) =
                if reached { (true, None) } else { (false, Some(Cut::BeforeLine(range.start))) };
            self.windows.push(Window {
                wanted,
                past_end,
                cut,
                bytes: (self.at, self.at),
                ..Window::default()
            });
        }
        let end = reached.then(|| {
            let ended = self.breaks.ends_with_break(&self.last_bytes[8 - self.remembered..]);
            (self.line - 1 + u64::from(self.at > self.line_began), ended)
        });
        Scan { windows: self.windows, end, line_ends: self.line_ends }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            // Decided only when more bytes come: a scan that has all it wants right at the end has seen the end.
            if !self.to_end && self.windows.len() == self.wanted.len() {
                self.stopped = true;
                return;
            }
            let used = self.step(bytes);
            bytes = &bytes[used..];
        }
    }

    /// Takes some of `bytes`, at least one; says how many.
    fn step(&mut self, bytes: &[u8]) -> usize {
        let Some(wanted) = self.wanted.get(self.windows.len()) else { return self.advance(bytes, None) };
        if self.line < wanted.start {
            return self.advance(bytes, Some(wanted.start - self.line));
        }
        let end = wanted.end;
        self.began.get_or_insert(self.at);
        let used = self.advance(bytes, end.map(|end| end - self.line + 1));
        self.collect(&bytes[..used]);
        let complete = end.is_some_and(|end| self.line > end);
        let cut_for_good = self.overflowed && !self.to_end && self.windows.len() + 1 == self.wanted.len();
        if complete || cut_for_good {
            self.close(self.at);
        }
        used
    }

    /// Passes over bytes, up to the `n`th line end in them.
    fn advance(&mut self, bytes: &[u8], n: Option<u64>) -> usize {
        let (used, count) = self.breaks.seek(bytes, n);
        let bytes = &bytes[..used];
        if count > 0 {
            self.line += count;
            self.line_began = self.at + self.breaks.last(bytes) as u64;
        }
        self.at += used as u64;
        self.breaks.tally(&mut self.line_ends, bytes, count);
        self.remember(bytes);
        used
    }

    fn collect(&mut self, bytes: &[u8]) {
        // More bytes than this are more text than the whole budget, whatever they are.
        let most = self.budget.saturating_mul(self.text.encoding.max_shrink()).saturating_add(8);
        let room = usize::try_from(most).unwrap_or(usize::MAX).saturating_sub(self.collected.len());
        self.overflowed |= bytes.len() > room;
        self.collected.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn remember(&mut self, bytes: &[u8]) {
        let tail = &bytes[bytes.len().saturating_sub(8)..];
        self.last_bytes.copy_within(tail.len().., 0);
        self.last_bytes[8 - tail.len()..].copy_from_slice(tail);
        self.remembered = (self.remembered + tail.len()).min(8);
    }

    /// Makes a window of what was collected.
    fn close(&mut self, end: u64) {
        let mut raw = std::mem::take(&mut self.collected);
        let overflowed = std::mem::take(&mut self.overflowed);
        let began = self.began.take().unwrap_or(end);
        if overflowed {
            raw.truncate(raw.len() - self.text.encoding.incomplete_tail(&raw));
        }
        let number = self.windows.len();
        let start = self.wanted[number].start;
        let uncut = Uncut { text: self.text, breaks: self.breaks, raw, began, start, overflowed };
        let mut window = uncut.cut(self.rest, self.budget);
        window.wanted = number;
        self.rest -= window.text.len() as u64;
        self.windows.push(window);
    }
}

/// The bytes of a window before its budget cuts it.
struct Uncut {
    text: Text,
    breaks: Breaks,
    raw: Vec<u8>,
    began: u64,
    start: u64,
    /// There is more than `raw`.
    overflowed: bool,
}

impl Uncut {
    fn cut(self, rest: u64, budget: u64) -> Window {
        let encoding = self.text.encoding;
        let decoded = encoding.decode(&self.raw);
        let whole = !self.overflowed && decoded.text.len() as u64 <= rest;
        if whole {
            let (text, lossy) = (decoded.text.into_owned(), decoded.lossy);
            return self.window(text, lossy, self.raw.len(), None);
        }
        let fits = usize::try_from(rest).unwrap_or(usize::MAX);
        let (end, giant) = cut_text(&decoded.text, fits, budget, self.breaks);
        let text = &decoded.text[..end];
        let used = encoding.raw_len(&self.raw, text);
        let lossy = decoded.lossy && encoding.decode(&self.raw[..used]).lossy;
        let text = text.to_owned();
        let cut = if giant {
            Cut::InLine(self.start, self.began + used as u64)
        } else {
            Cut::BeforeLine(self.start + self.breaks.count(&self.raw[..used]))
        };
        self.window(text, lossy, used, Some(cut))
    }

    fn window(&self, text: String, lossy: bool, used: usize, cut: Option<Cut>) -> Window {
        let raw = &self.raw[..used];
        let lines = (used > 0).then(|| {
            let ended = self.breaks.count(raw);
            (self.start, self.start + ended - u64::from(self.breaks.ends_with_break(raw)))
        });
        let bytes = (self.began, self.began + used as u64);
        Window { wanted: 0, text, lossy, lines, bytes, cut, past_end: false }
    }
}

/// How much of `text` fits into `rest` bytes: whole lines; inside a line only where it is the first and alone exceeds
/// `budget`, what a file may give at all. The second value tells such a cut.
pub fn cut_text(text: &str, rest: usize, budget: u64, breaks: Breaks) -> (usize, bool) {
    let breaks = breaks.decoded();
    let fits = text.floor_char_boundary(rest.min(text.len()));
    let head = &text.as_bytes()[..fits];
    // A CR at the cut may belong to an LF behind it.
    let whole = if fits < text.len() { fits - breaks.held_back(head) } else { fits };
    let lines = breaks.last(&head[..whole]);
    if lines > 0 {
        return (lines, false);
    }
    let first = breaks.nth(text.as_bytes(), 1).unwrap_or(text.len());
    let giant = first as u64 > budget && fits > 0;
    (if giant { fits } else { 0 }, giant)
}

impl Breaks {
    /// The same line ends in decoded text.
    pub(crate) fn decoded(self) -> Self {
        Breaks::new(super::encoding::TextEncoding::Utf8, self.mode())
    }
}

#[cfg(test)]
mod tests;
