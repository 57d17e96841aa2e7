//! Places of a text shown with line numbers, for a reader who has to tell them apart: a line of context on both sides,
//! long lines and long places shortened. Bounded however long the lines are.

use filectx_openapi::Occurrence;

use super::breaks::Breaks;
use super::matching::Body;
use super::needle::Span;
use crate::{Cancel, Error};

/// The most lines of one excerpt.
const LINES: u64 = 12;
/// The most bytes of one line, about.
const WIDTH: usize = 240;
/// How far back and forth the ends of a line are looked for.
const REACH: usize = 4 << 10;
/// The most occurrences that are listed, and bytes of their excerpts.
const LISTED: usize = 1_000;
const LISTED_BYTES: usize = 256 << 10;

/// The occurrences from the first two on, as `next` gives them, and whether there are more than could be listed.
pub(crate) fn occurrences(
    body: Body<'_>,
    first: [Span; 2],
    next: impl Fn(Span) -> Option<Span>,
    cancel: &Cancel,
) -> Result<(Vec<Occurrence>, bool), Error> {
    let mut listed: Vec<Occurrence> = Vec::new();
    let mut bytes = 0;
    let (mut line, mut counted) = (1, 0);
    let mut spans = Some(first[0]);
    while let Some(span) = spans {
        cancel.check()?;
        if listed.len() >= 2 && (listed.len() == LISTED || bytes > LISTED_BYTES) {
            return Ok((listed, true));
        }
        // From one to the next, lest the whole is counted for each.
        let rest = Body { bytes: &body.bytes[counted..], ..body };
        line += rest.ended_lines(span.start - counted);
        counted = span.start;
        let line_end = line + body.inner_breaks(span);
        let excerpt = excerpt(body, span, line);
        bytes += excerpt.len();
        listed.push(Occurrence { line_start: line, line_end, excerpt });
        spans = next(span);
    }
    Ok((listed, false))
}

/// `span`, whose first line is number `line`, with its neighbours.
pub(crate) fn excerpt(body: Body<'_>, span: Span, line: u64) -> String {
    let (bytes, breaks) = (body.bytes, body.breaks);
    let own = line_start(bytes, breaks, span.start, body.text.encoding.unit());
    let last_line = line + body.inner_breaks(span);
    let mut out = String::new();
    // The line before, unless the beginning of this one is too far away.
    if line > 1 && breaks.ends_with_break(&bytes[..own]) {
        let before = line_start(bytes, breaks, own - body.text.encoding.unit(), body.text.encoding.unit());
        show(&mut out, body, line - 1, &bytes[before..own], 0);
    }
    let (mut at, mut number) = (own, line);
    while number <= last_line + 1 && at < bytes.len() {
        let rest = &bytes[at..];
        let end = at + breaks.nth(rest, 1).unwrap_or(rest.len());
        if number - line < LINES - 2 || number >= last_line {
            let skipped = if number == line { span.start - at } else { 0 };
            show(&mut out, body, number, &bytes[at..end], skipped);
        } else if number - line == LINES - 2 {
            out.push_str("   ...\n");
        }
        (at, number) = (end, number + 1);
    }
    out
}

/// Where the line begins in which `at` lies; a little before `at` where that is far.
fn line_start(bytes: &[u8], breaks: Breaks, at: usize, unit: usize) -> usize {
    let mut from = at.saturating_sub(REACH);
    from -= from % unit;
    let window = &bytes[from..at];
    match breaks.last(window) {
        // A CR whose LF comes next ends nothing yet.
        end if end == window.len() && breaks.splits_crlf(window, &bytes[at..]) => {
            from + breaks.last(&window[..window.len() - unit])
        }
        0 if from > 0 => at.saturating_sub(WIDTH / 2 / unit * unit),
        end => from + end,
    }
}

/// One line with its number. `at`: where in it the place of interest begins.
fn show(out: &mut String, body: Body<'_>, number: u64, line: &[u8], at: usize) {
    let encoding = body.text.encoding;
    let from = if at > WIDTH / 2 { encoding.char_start(line, at - WIDTH / 4) } else { 0 };
    let to = encoding.char_start(line, (from + WIDTH).min(line.len()));
    let shown = encoding.decode(&line[from..to]).text;
    let (head, tail) = (if from > 0 { "..." } else { "" }, if to < line.len() { "..." } else { "" });
    let shown = shown.trim_end_matches(['\r', '\n']);
    out.push_str(&format!("{number:>6}\t{head}{shown}{tail}\n"));
}
