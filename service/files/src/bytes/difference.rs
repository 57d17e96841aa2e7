//! In what a place of a file differs from a text that was searched for: the most specific kind that explains all of
//! it, and the words for a reader who cannot see it.

use std::borrow::Cow;
use std::ops::Range;

use filectx_openapi::Difference;
use unicode_normalization::char::is_combining_mark;

use super::folding::{Fold, equal_but_for_unicode, folded, is_invisible};
use super::matching::Body;
use super::needle::Span;

/// How much of the texts is quoted where they differ.
const QUOTED: usize = 24;

/// The most specific kind of difference between `wanted` and the `place` of `source` that explains all of it.
pub(crate) fn classify(wanted: &str, source: &str, place: &Range<usize>, adapts: bool) -> Difference {
    let there = &source[place.clone()];
    let lf = |text: &str| text.replace("\r\n", "\n");
    if !adapts && lf(wanted) == lf(there) {
        return Difference::LineEndings;
    }
    let (wanted, there): (Cow<'_, str>, Cow<'_, str>) =
        if adapts { (lf(wanted).into(), lf(there).into()) } else { (wanted.into(), there.into()) };
    let at_line_start = source[..place.start].is_empty() || source[..place.start].ends_with('\n');
    let rest = &source[place.end..];
    let at_line_end =
        rest.is_empty() || rest.starts_with('\n') || rest.starts_with("\r\n") || there.ends_with('\n');
    let (one, other) = (wanted.as_ref(), there.as_ref());
    let same = |first, last, strip: fn(&str) -> &str| {
        lines_without(one, first, last, strip) == lines_without(other, first, last, strip)
    };
    if same(at_line_start, true, |line| line.trim_start_matches(BLANKS)) {
        Difference::Indentation
    } else if same(true, at_line_end, |line| line.trim_end_matches(BLANKS)) {
        Difference::TrailingSpace
    } else if folded(&wanted, Fold::White) == folded(&there, Fold::White) {
        Difference::Whitespace
    } else if equal_but_for_unicode(&wanted, &there) {
        Difference::Unicode
    } else {
        Difference::Content
    }
}

const BLANKS: [char; 4] = [' ', '\t', '\x0b', '\x0c'];

/// The lines with `strip` applied before their ends; the first and the last only where they are whole at that edge.
fn lines_without(text: &str, first: bool, last: bool, strip: fn(&str) -> &str) -> Vec<(&str, &str)> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let count = lines.len();
    let parts = lines.into_iter().enumerate().map(|(i, line)| {
        let content = line.strip_suffix('\n').map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
        let kept = (i > 0 || first) && (i + 1 < count || last);
        (if kept { strip(content) } else { content }, &line[content.len()..])
    });
    parts.collect()
}

/// The difference in words: its kind, and where it begins, by line, column and code points.
pub(crate) fn detail(wanted: &str, source: Body<'_>, place: &Range<usize>, difference: Difference) -> String {
    // The body of a report is UTF-8.
    let text = source.text.encoding.decode(source.bytes).text;
    let there = &text[place.clone()];
    let (in_there, in_wanted) = first_difference(there, wanted, difference);
    let at = place.start + in_there;
    let (line, _) = source.lines(Span { start: at, end: at });
    let begin = source.breaks.last(&source.bytes[..at]);
    let column = text[begin..at].chars().count() + 1;
    let (has, sent) = (&there[in_there..], &wanted[in_wanted..]);
    let kind = match difference {
        Difference::LineEndings => "only line ends differ",
        Difference::Indentation => "only indentation differs",
        Difference::TrailingSpace => "only blanks at the end of lines differ",
        Difference::Whitespace => "only white space differs",
        Difference::Unicode => "only characters that look alike or are invisible differ",
        Difference::Content => {
            return format!(
                "the text differs from line {line} column {column} on: the file has {}, you sent {}",
                quoted(has),
                quoted(sent)
            );
        }
    };
    format!("{kind}: line {line} column {column}: the file has {}, you sent {}", points(has), points(sent))
}

/// Where the two begin to differ. Of line ends and blanks: where the run begins that differs.
fn first_difference(there: &str, wanted: &str, difference: Difference) -> (usize, usize) {
    let (mut one, mut other) = (there.char_indices().peekable(), wanted.char_indices().peekable());
    let ends = (there.len(), wanted.len());
    loop {
        match (one.peek().copied(), other.peek().copied()) {
            (Some((_, a)), Some((_, b))) if a == b => {
                one.next();
                other.next();
            }
            (Some((_, '\r')), Some((_, '\n'))) if difference != Difference::LineEndings => {
                one.next();
            }
            (Some((_, '\n')), Some((_, '\r'))) if difference != Difference::LineEndings => {
                other.next();
            }
            (a, b) => return (a.map_or(ends.0, |(at, _)| at), b.map_or(ends.1, |(at, _)| at)),
        }
    }
}

/// The code points of the first character, with the marks on it and what is invisible behind it.
fn points(text: &str) -> String {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return "nothing more".into() };
    let on_it = chars.take_while(|&c| is_combining_mark(c) || is_invisible(c)).take(3);
    let all: Vec<String> =
        std::iter::once(first).chain(on_it).map(|c| format!("U+{:04X}", u32::from(c))).collect();
    let name = match first {
        ' ' => " (blank)",
        '\t' => " (tab)",
        '\n' => " (line end)",
        '\r' => " (carriage return)",
        '\u{a0}' => " (no-break space)",
        '\u{200b}' => " (zero width space)",
        '\u{ad}' => " (soft hyphen)",
        '\u{feff}' => " (byte order mark)",
        _ => "",
    };
    all.join(" ") + name
}

fn quoted(text: &str) -> String {
    if text.is_empty() {
        return "nothing more".into();
    }
    let shown: String = text.chars().take(QUOTED).collect();
    let more = if shown.len() < text.len() { "..." } else { "" };
    format!("{shown:?}{more}")
}
