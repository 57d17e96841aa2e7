//! The windows of a text that are most like another text: a filter that runs over a large file once, counting which
//! triples of bytes both hold. What it finds is judged more closely by who asks.

use std::ops::Range;

use crate::{Cancel, Error};

/// The most windows that are found.
const MOST: usize = 8;
/// Windows with less in common are nothing like it.
const LEAST: f64 = 0.3;
/// Lines longer than this (and than the text that is searched for) are taken in pieces.
const LONG: usize = 1_000;
/// How often the walk asks whether to go on, in rows.
const ASK: usize = 1 << 10;

/// A set of triples of bytes, by their hash. Each knows the row that held it last, so that it counts once a row.
struct Triples {
    rows: Vec<u32>,
    row: u32,
}

impl Triples {
    const BITS: u32 = 16;
    /// In the set, and in no row yet.
    const FRESH: u32 = 1;

    fn of(text: &[u8]) -> Self {
        let mut rows = vec![0; 1 << Self::BITS];
        for triple in text.windows(3) {
            rows[Self::slot(triple)] = Self::FRESH;
        }
        Self { rows, row: Self::FRESH }
    }

    fn slot(triple: &[u8]) -> usize {
        let value = u32::from(triple[0]) << 16 | u32::from(triple[1]) << 8 | u32::from(triple[2]);
        (value.wrapping_mul(0x9e37_79b1) >> (32 - Self::BITS)) as usize
    }

    /// How many different triples of the set begin in the row `from..to` of `text`.
    fn shared(&mut self, text: &[u8], from: usize, to: usize) -> usize {
        self.row = self.row.checked_add(1).unwrap_or(Self::FRESH + 1);
        let mut shared = 0;
        for triple in text[from..text.len().min(to + 2)].windows(3) {
            let row = &mut self.rows[Self::slot(triple)];
            if *row != 0 && *row != self.row {
                *row = self.row;
                shared += 1;
            }
        }
        shared
    }
}

#[derive(Clone, Copy)]
struct Row {
    start: usize,
    shared: usize,
}

/// The windows of as many lines as `wanted` has that have most in common with it, best first.
pub(crate) fn similar_windows(text: &str, wanted: &str, cancel: &Cancel) -> Result<Vec<Range<usize>>, Error> {
    let mut triples = Triples::of(wanted.as_bytes());
    let lines = wanted.strip_suffix('\n').unwrap_or(wanted).split('\n').count();
    let long = LONG.max(2 * wanted.len());
    let mut total = 0;
    let mut at = 0;
    while at < wanted.len() {
        let end = row_end(wanted, at, long);
        total += triples.shared(wanted.as_bytes(), at, end);
        at = end;
    }
    if total == 0 {
        return Ok(Vec::new());
    }
    let mut window: std::collections::VecDeque<Row> = std::collections::VecDeque::new();
    let (mut shared, mut best) = (0, Best::default());
    let mut at = 0;
    let mut seen = 0_usize;
    while at < text.len() {
        seen += 1;
        if seen.is_multiple_of(ASK) {
            cancel.check()?;
        }
        let end = row_end(text, at, long);
        let row = Row { start: at, shared: triples.shared(text.as_bytes(), at, end) };
        shared += row.shared;
        window.push_back(row);
        if window.len() > lines
            && let Some(old) = window.pop_front()
        {
            shared -= old.shared;
        }
        if let Some(first) = window.front() {
            best.offer(score(shared, end - first.start, total, lines), first.start..end);
        }
        at = end;
    }
    Ok(best.found.into_iter().map(|(_, range)| range).collect())
}

/// A window and those a line up and down from it: the filter may be a line off.
pub(crate) fn with_neighbours(text: &str, window: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let next = |at: usize| memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |lf| at + lf + 1);
    let before = |at: usize| {
        let end = at.checked_sub(1)?;
        Some(memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |lf| lf + 1))
    };
    let up = before(window.start).zip(before(window.end)).map(|(start, end)| start..end);
    let down = (window.end < bytes.len()).then(|| next(window.start)..next(window.end));
    [Some(window), up, down].into_iter().flatten().filter(|range| range.start < range.end)
}

/// The end of the row that begins at `at`: of its line, or of a piece of a long line.
fn row_end(text: &str, at: usize, long: usize) -> usize {
    let rest = &text.as_bytes()[at..];
    let near = &rest[..rest.len().min(long)];
    match memchr::memchr(b'\n', near) {
        Some(lf) => at + lf + 1,
        None => text.ceil_char_boundary(at + near.len()),
    }
}

/// One line may stand inside of a longer one: then it counts how much of it is there. Several are compared as wholes.
fn score(shared: usize, length: usize, total: usize, lines: usize) -> f64 {
    let shared = shared.min(total) as f64;
    let (length, total) = (length.saturating_sub(2).max(1) as f64, total as f64);
    let alike = 2.0 * shared / (length + total);
    if lines == 1 { shared / total + alike / 16.0 } else { alike }
}

/// The best windows so far, none overlapping a better one.
#[derive(Default)]
struct Best {
    found: Vec<(f64, Range<usize>)>,
}

impl Best {
    fn offer(&mut self, score: f64, range: Range<usize>) {
        let worst =
            if self.found.len() == MOST { self.found.last().map_or(0.0, |(score, _)| *score) } else { LEAST };
        if score <= worst {
            return;
        }
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        if self.found.iter().any(|(better, other)| *better >= score && overlaps(other)) {
            return;
        }
        self.found.retain(|(_, other)| !overlaps(other));
        let place = self.found.partition_point(|(better, _)| *better >= score);
        self.found.insert(place, (score, range));
        self.found.truncate(MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn best<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
        let cancel = Cancel::after(Duration::from_secs(60));
        similar_windows(text, wanted, &cancel).unwrap().first().map(|range| &text[range.clone()])
    }

    #[test]
    fn the_nearest_window_is_found() {
        let text = "fn one() {\n    call(1);\n}\n\nfn two() {\n    other(2);\n}\n";
        assert!(best(text, "fn two() {\n    others(2);\n}").unwrap().contains("fn two() {\n    other(2);\n"));
        assert_eq!(best(text, "cal(1);"), Some("    call(1);\n"));
        assert_eq!(best(text, "zzzzzz qqqq"), None);
        assert_eq!(best("", "abc"), None);
        assert_eq!(best(text, "x"), None);
    }

    #[test]
    fn a_line_up_and_a_line_down() {
        let text = "a\nbb\nccc";
        let near = |range| with_neighbours(text, range).map(|range| &text[range]).collect::<Vec<_>>();
        assert_eq!(near(2..5), ["bb\n", "a\n", "ccc"]);
        assert_eq!(near(0..2), ["a\n", "bb\n"]);
        assert_eq!(near(5..8), ["ccc", "bb\n"]);
        assert_eq!(near(0..8), ["a\nbb\nccc"]);
    }

    #[test]
    fn long_lines_are_taken_in_pieces() {
        let text = "x = 1; ".repeat(1000) + "limit = 10; " + &"y = 2; ".repeat(1000);
        let piece = best(&text, "limit = 12;").unwrap();
        assert!(piece.contains("limit = 10") && piece.len() <= LONG + 4, "{piece}");
    }
}
