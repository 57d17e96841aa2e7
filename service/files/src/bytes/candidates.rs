//! What is most like a text that is not there, and in what it differs: white space first, then characters that look
//! alike, then the nearest lines. Every candidate's text is the file's own: sent again it matches.

use std::borrow::Cow;
use std::ops::Range;

use filectx_openapi::{Candidate, Difference, LineBreaks, LineEndings};
use similar::{Algorithm, capture_diff_slices, diff_ratio};

use super::breaks::Breaks;
use super::difference::{classify, detail};
use super::encoding::TextEncoding;
use super::excerpt::excerpt;
use super::folding::{Fold, Folded, is_white};
use super::kind::Text;
use super::matching::Body;
use super::needle::Span;
use super::windows::{similar_windows, with_neighbours};
use crate::{Cancel, Error};

/// The most candidates of a report.
const MOST: usize = 3;
/// How many places that differ in white space alone are looked at.
const PLACES: usize = 16;
/// The most characters of both texts that are compared one by one.
const COMPARED: usize = 4_000;
/// Lines that are less alike are no help.
const LEAST: f64 = 0.5;
/// The most bytes of one candidate's text: a text that is longer is no help either.
const LONGEST: usize = 64 << 10;

/// The places of `body` most like `wanted`, best first.
pub(crate) fn candidates(
    body: Body<'_>,
    wanted: &str,
    line_endings: LineEndings,
    cancel: &Cancel,
) -> Result<Vec<Candidate>, Error> {
    let decoded = body.text.encoding.decode(body.bytes);
    let report = Report {
        source: decoded.text,
        lossy: decoded.lossy,
        wanted,
        adapts: line_endings == LineEndings::Adapt,
        line_breaks: body.breaks.mode(),
    };
    if wanted.len() > 2 * LONGEST {
        return Ok(Vec::new());
    }
    let mut found = report.white(cancel)?;
    if found.len() < MOST {
        found.extend(report.look_alikes(cancel)?);
    }
    if found.len() < MOST {
        found.extend(report.nearest(cancel)?);
    }
    let mut kept: Vec<Found> = Vec::new();
    for found in found {
        let overlaps =
            |kept: &Found| kept.place.start < found.place.end && found.place.start < kept.place.end;
        if kept.len() < MOST && !kept.iter().any(overlaps) {
            kept.push(found);
        }
    }
    Ok(kept.into_iter().map(|found| report.candidate(found)).collect())
}

struct Report<'a> {
    source: Cow<'a, str>,
    lossy: bool,
    wanted: &'a str,
    adapts: bool,
    line_breaks: LineBreaks,
}

struct Found {
    place: Range<usize>,
    difference: Difference,
    similarity: f64,
}

impl Report<'_> {
    /// The places that differ in white space alone.
    fn white(&self, cancel: &Cancel) -> Result<Vec<Found>, Error> {
        let folded = Folded::of(&self.source, Fold::White, cancel)?;
        let places = folded.find(self.wanted, PLACES).into_iter().map(|place| self.with_edges(place));
        let mut found: Vec<Found> = places.filter_map(|place| self.found(place)).collect();
        found.sort_by_key(|found| rank(found.difference));
        Ok(found)
    }

    /// The places whose characters only look alike.
    fn look_alikes(&self, cancel: &Cancel) -> Result<Vec<Found>, Error> {
        if self.source.is_ascii() && self.wanted.is_ascii() {
            return Ok(Vec::new());
        }
        let folded = Folded::of(&self.source, Fold::Unicode, cancel)?;
        let wanted =
            if self.adapts { Cow::Owned(self.wanted.replace("\r\n", "\n")) } else { self.wanted.into() };
        let mut places = folded.find(&wanted, MOST);
        if places.is_empty() && self.adapts && wanted.contains('\n') {
            places = folded.find(&wanted.replace('\n', "\r\n"), MOST);
        }
        Ok(places.into_iter().filter_map(|place| self.found(place)).collect())
    }

    /// The lines most like it.
    fn nearest(&self, cancel: &Cancel) -> Result<Vec<Found>, Error> {
        let windows = similar_windows(&self.source, self.wanted, cancel)?;
        let best = |window| {
            let near = with_neighbours(&self.source, window);
            let found = near.filter_map(|window| self.found(self.trimmed(window)));
            found.max_by(|one, other| one.similarity.total_cmp(&other.similarity))
        };
        let mut found: Vec<Found> = windows.into_iter().filter_map(best).collect();
        found.retain(|found| found.similarity >= LEAST || found.difference != Difference::Content);
        found.sort_by(|one, other| {
            rank(one.difference)
                .cmp(&rank(other.difference))
                .then(other.similarity.total_cmp(&one.similarity))
        });
        Ok(found)
    }

    fn found(&self, place: Range<usize>) -> Option<Found> {
        let text = &self.source[place.clone()];
        let unsendable = self.lossy && text.contains(char::REPLACEMENT_CHARACTER);
        if text == self.wanted || unsendable || text.len() > LONGEST || text.trim_matches(is_white).is_empty()
        {
            return None;
        }
        let difference = classify(self.wanted, &self.source, &place, self.adapts);
        Some(Found { similarity: similarity(self.wanted, text), place, difference })
    }

    /// With the white space around it that stands for the one around the wanted text.
    fn with_edges(&self, place: Range<usize>) -> Range<usize> {
        let lead = &self.wanted[..self.wanted.len() - self.wanted.trim_start_matches(is_white).len()];
        let trail = &self.wanted[self.wanted.trim_end_matches(is_white).len()..];
        let before = white_run(self.source[..place.start].chars().rev(), lead);
        let after = white_run(self.source[place.end..].chars(), trail);
        place.start - before..place.end + after
    }

    /// A window of whole lines, without the white space at its edges that the wanted text does not have.
    fn trimmed(&self, window: Range<usize>) -> Range<usize> {
        let mut text = &self.source[window.clone()];
        if !self.wanted.ends_with('\n') {
            text = text.strip_suffix('\n').unwrap_or(text);
            text = text.strip_suffix('\r').unwrap_or(text);
        }
        let blank = |c: char| is_white(c) && c != '\n' && c != '\r';
        if !self.wanted.ends_with(is_white) {
            text = text.trim_end_matches(blank);
        }
        let mut start = window.start;
        if !self.wanted.starts_with(blank) {
            let trimmed = text.trim_start_matches(blank);
            start += text.len() - trimmed.len();
            text = trimmed;
        }
        start..start + text.len()
    }

    fn candidate(&self, found: Found) -> Candidate {
        let Found { place, difference, similarity } = found;
        // The decoded text is UTF-8, whatever the file is.
        let body = Body {
            bytes: self.source.as_bytes(),
            text: Text { encoding: TextEncoding::Utf8, bom: 0, guessed: false },
            breaks: Breaks::new(TextEncoding::Utf8, self.line_breaks),
        };
        let span = Span { start: place.start, end: place.end };
        let (line_start, line_end) = body.lines(span);
        Candidate {
            line_start,
            line_end,
            similarity: (similarity * 1000.0).round() / 1000.0,
            difference,
            detail: detail(self.wanted, body, &place, difference),
            excerpt: excerpt(body, span, line_start),
            text: self.source[place].to_owned(),
        }
    }
}

/// How many bytes of white space at the start of `chars` stand for `wanted`: no more line ends than it has.
fn white_run(chars: impl Iterator<Item = char>, wanted: &str) -> usize {
    if wanted.is_empty() {
        return 0;
    }
    let mut lines_left = wanted.matches('\n').count();
    let taken = chars.take_while(|&c| {
        if c == '\n' {
            lines_left = match lines_left.checked_sub(1) {
                Some(left) => left,
                None => return false,
            };
        }
        is_white(c)
    });
    taken.map(char::len_utf8).sum()
}

/// The order in which kinds are told, the most specific first.
fn rank(difference: Difference) -> u8 {
    match difference {
        Difference::LineEndings => 0,
        Difference::Indentation => 1,
        Difference::TrailingSpace => 2,
        Difference::Whitespace => 3,
        Difference::Unicode => 4,
        Difference::Content => 5,
    }
}

/// How alike two texts are, from 0 to 1: by characters, or by lines where they are long.
fn similarity(one: &str, other: &str) -> f64 {
    let (one_chars, other_chars): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    if one_chars.len() + other_chars.len() <= COMPARED {
        return ratio(&one_chars, &other_chars);
    }
    let lines = |text: &'_ str| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    ratio(&lines(one), &lines(other))
}

fn ratio<T: Eq + std::hash::Hash + Ord + Clone>(one: &[T], other: &[T]) -> f64 {
    let ops = capture_diff_slices(Algorithm::Myers, one, other);
    f64::from(diff_ratio(&ops, one.len(), other.len()))
}
