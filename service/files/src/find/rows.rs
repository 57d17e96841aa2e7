//! Rows of `find-text`: what the searcher meets in one file, as lines with their matches. A long line becomes a window
//! around its first match. How many rows an answer takes is decided in `text.rs`.

use std::io;

use filectx_openapi::{Row, Submatch};
use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::content::LONGEST_LINE;

/// A match that ends a line can depend on what follows it, so far.
const LOOK_AHEAD: usize = 128;
/// What a match beyond a row's first one counts in bytes of the answer.
const SUBMATCH_BYTES: usize = 32;

/// How rows are shaped, and how many of them a file can have in an answer at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Most bytes of a row's text.
    pub(crate) line_bytes: usize,
    /// A file is left after so many matching lines: the answer needs one more than it returns.
    pub(crate) matches: u64,
    /// A file is left after so many rows.
    pub(crate) rows: usize,
    /// A file is left after so many bytes of rows.
    pub(crate) bytes: usize,
}

/// What a row counts in bytes of the answer.
pub(crate) fn cost(row: &Row) -> usize {
    row.text.len() + SUBMATCH_BYTES * row.submatches.len().saturating_sub(1)
}

/// The rows of one file so far.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) rows: Vec<Row>,
    pub(crate) matches: u64,
    pub(crate) bytes: usize,
    shape: Shape,
    /// Lines up to this one were in the page before.
    after: u64,
    matcher: &'a RegexMatcher,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(shape: Shape, after: u64, matcher: &'a RegexMatcher) -> Self {
        Self { rows: Vec::new(), matches: 0, bytes: 0, shape, after, matcher }
    }

    /// Adds the row of a line; false when the file has given all that an answer can take.
    fn add(&mut self, row: impl FnOnce(Shape) -> Row, line: &[u8], number: u64) -> bool {
        if number <= self.after || line.len() > LONGEST_LINE {
            return true;
        }
        let row = Row { line: number, ..row(self.shape) };
        self.matches += u64::from(!row.is_context);
        self.bytes += cost(&row);
        self.rows.push(row);
        self.matches < self.shape.matches
            && self.rows.len() < self.shape.rows
            && self.bytes < self.shape.bytes
    }
}

impl Sink for Rows<'_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = found.line_number().unwrap_or(1);
        if !searcher.multi_line() {
            let line = without_end(found.bytes());
            let matcher = self.matcher;
            return Ok(self.add(
                |shape| matching(shape, line, spans(matcher, line, 0, line.len())),
                line,
                first,
            ));
        }
        let range = found.bytes_range_in_buffer();
        let ahead = &found.buffer()[..found.buffer().len().min(range.end + LOOK_AHEAD)];
        let matches: Vec<(usize, usize)> = spans(self.matcher, ahead, range.start, range.end).collect();
        let mut start = range.start;
        for (number, line) in (first..).zip(found.lines()) {
            let text = without_end(line);
            let (from, to) = (start, start + text.len());
            start += line.len();
            let touching = matches
                .iter()
                .filter(|&&(begins, ends)| begins <= to && (ends > from || (ends == from && begins == ends)));
            let inside = touching.map(|&(begins, ends)| (begins.max(from) - from, ends.min(to) - from));
            if !self.add(|shape| matching(shape, text, inside), text, number) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let line = without_end(context.bytes());
        Ok(self.add(|shape| around(shape, line), line, context.line_number().unwrap_or(1)))
    }
}

fn without_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// The matches in `text` that begin from `from` to `to`.
fn spans<'a>(
    matcher: &'a RegexMatcher,
    text: &'a [u8],
    from: usize,
    to: usize,
) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut at = from;
    let mut last_end = None;
    std::iter::from_fn(move || {
        loop {
            if at > to {
                return None;
            }
            // The engine itself cannot fail; its error has no values.
            let found = matcher.find_at(text, at).ok().flatten()?;
            let (start, end) = (found.start(), found.end());
            at = if start == end { end + 1 } else { end };
            // An empty match right behind another one is none.
            if start == end && last_end == Some(end) {
                continue;
            }
            last_end = Some(end);
            return (start < to || (start == to && (start == end || from == to))).then_some((start, end));
        }
    })
}

/// The row of a matching line.
fn matching(shape: Shape, line: &[u8], mut spans: impl Iterator<Item = (usize, usize)>) -> Row {
    let first = spans.next().unwrap_or((0, 0));
    let text = window(line, first, shape.line_bytes);
    let room = (shape.bytes.saturating_sub(text.text.len()) / SUBMATCH_BYTES).max(1);
    let submatches: Vec<Submatch> = std::iter::once(first)
        .chain(spans)
        .take_while(|&(start, _)| start <= text.end)
        .take(room)
        .map(|(start, end)| Submatch { start: text.place(start, false), end: text.place(end, true) })
        .collect();
    Row { column: characters(&line[..first.0.min(line.len())]) + 1, submatches, ..plain(text, false) }
}

/// The row of a line around a match.
fn around(shape: Shape, line: &[u8]) -> Row {
    plain(window(line, (0, 0), shape.line_bytes), true)
}

fn plain(window: Window, is_context: bool) -> Row {
    Row {
        path: String::new(),
        path_base64: None,
        line: 0,
        text: window.text,
        is_context,
        column: 0,
        submatches: Vec::new(),
        clipped: window.clipped,
    }
}

/// How many characters the text of `bytes` has.
fn characters(bytes: &[u8]) -> u64 {
    match simdutf8::basic::from_utf8(bytes) {
        Ok(text) => bytecount::num_chars(text.as_bytes()) as u64,
        Err(_) => String::from_utf8_lossy(bytes).chars().count() as u64,
    }
}

/// A part of a line as text.
struct Window {
    text: String,
    /// Where in the line it begins and ends.
    start: usize,
    end: usize,
    clipped: bool,
    /// Where bytes became U+FFFD: the offset in the line behind them, and how much longer the text is from there on.
    longer: Vec<(usize, usize)>,
}

impl Window {
    /// Where the line's byte `at` is in the text. `up`: the end of a match, else its start; inside a character it is the
    /// end or start of that.
    fn place(&self, at: usize, up: bool) -> u64 {
        let at = at.clamp(self.start, self.end);
        let longer = self.longer.iter().rev().find(|&&(behind, _)| behind <= at).map_or(0, |&(_, more)| more);
        let place = (at - self.start + longer).min(self.text.len());
        let place =
            if up { self.text.ceil_char_boundary(place) } else { self.text.floor_char_boundary(place) };
        place as u64
    }
}

/// At most `most` bytes of `line` around the match at `first`.
fn window(line: &[u8], first: (usize, usize), most: usize) -> Window {
    let (start, end) = cut(line, first, most);
    let clipped = (start, end) != (0, line.len());
    if let Ok(text) = simdutf8::basic::from_utf8(&line[start..end]) {
        return Window { text: text.to_owned(), start, end, clipped, longer: Vec::new() };
    }
    let lossy = lossy(line, start, end);
    if lossy.text.len() <= most {
        return lossy;
    }
    // A byte that is no UTF-8 became three.
    let (start, end) = cut(line, first, most / 3);
    self::lossy(line, start, end)
}

fn lossy(line: &[u8], start: usize, end: usize) -> Window {
    let (mut text, mut longer, mut at) = (String::new(), Vec::new(), start);
    for chunk in line[start..end].utf8_chunks() {
        text.push_str(chunk.valid());
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            at += chunk.invalid().len();
            longer.push((at, text.len() + start - at));
        }
    }
    Window { text, start, end, clipped: (start, end) != (0, line.len()), longer }
}

/// Where a window of at most `most` bytes begins and ends, between characters.
fn cut(line: &[u8], (start, end): (usize, usize), most: usize) -> (usize, usize) {
    if line.len() <= most {
        return (0, line.len());
    }
    let spare = most.saturating_sub(end.saturating_sub(start));
    let from = start.saturating_sub(spare / 2).min(line.len() - most);
    let inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    let from = (from..=start.min(line.len())).find(|at| !inside(at)).unwrap_or(from);
    let to = (from + most).min(line.len());
    let to = (to.saturating_sub(3).max(from)..=to).rev().find(|at| !inside(at)).unwrap_or(to);
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(line: &[u8], span: (usize, usize), most: usize) -> Row {
        let shape = Shape { line_bytes: most, matches: 9, rows: 9, bytes: 1 << 20 };
        matching(shape, line, std::iter::once(span))
    }

    fn found(row: &Row) -> &str {
        &row.text[row.submatches[0].start as usize..row.submatches[0].end as usize]
    }

    #[test]
    fn windows_hold_their_match() {
        let line = format!("{}needle{}", "a".repeat(900), "b".repeat(900));
        for (most, text, clipped) in [
            (2_000, line.as_str(), false),
            (10, "aaneedlebb", true),
            (6, "needle", true),
            (3, "nee", true),
            (1, "n", true),
        ] {
            let row = row(line.as_bytes(), (900, 906), most);
            assert_eq!((row.text.as_str(), row.clipped, row.column), (text, clipped, 901), "{most}");
        }
        assert_eq!(row(line.as_bytes(), (0, 2), 4).text, "aaaa");
        assert_eq!(row(line.as_bytes(), (1_805, 1_806), 4).text, "bbbb");
    }

    #[test]
    fn windows_begin_and_end_between_characters() {
        let line = "\u{6c34}".repeat(100);
        let row = row(line.as_bytes(), (150, 153), 20);
        assert_eq!((row.text.chars().count(), found(&row), row.column), (6, "\u{6c34}", 51));
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_such() {
        let row = row(b"a\xff\xfe needle \xff", (4, 10), 500);
        assert_eq!(row.text, "a\u{fffd}\u{fffd} needle \u{fffd}");
        assert_eq!((found(&row), row.column, row.clipped), ("needle", 5, false));
        let bad = [b"\xff".repeat(400), b"needle".to_vec(), b"\xff".repeat(400)].concat();
        let row = self::row(&bad, (400, 406), 60);
        assert!(row.text.len() <= 60 && row.clipped);
        assert_eq!((found(&row), row.column), ("needle", 401));
    }

    #[test]
    fn submatches_cost_their_place() {
        let shape = Shape { line_bytes: 100, matches: 9, rows: 9, bytes: 420 };
        let row = matching(shape, &[b'a'; 100], (0..100).map(|at| (at, at + 1)));
        assert_eq!(row.submatches.len(), 10);
        assert!(cost(&row) <= 420);
    }

    proptest! {
        #[test]
        fn windows_are_parts_of_their_line(
            line in "[a\u{e9}\u{6c34}\u{1f9ca}]{1,60}",
            from in 0usize..60,
            len in 0usize..8,
            most in 4usize..80,
        ) {
            let from = line.floor_char_boundary(from.min(line.len()));
            let to = line.floor_char_boundary((from + len).min(line.len())).max(from);
            let row = row(line.as_bytes(), (from, to), most);
            prop_assert!(row.text.len() <= most && line.contains(&row.text));
            prop_assert_eq!(row.clipped, row.text.len() < line.len());
            prop_assert!(line[from..to].starts_with(found(&row)));
            prop_assert!(to - from > most || found(&row) == &line[from..to]);
            prop_assert_eq!(row.column, line[..from].chars().count() as u64 + 1);
        }
    }
}
