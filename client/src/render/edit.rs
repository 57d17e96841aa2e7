//! What a change did, or why it did not: the diff, and the places in the file that a refusal names.

use filectx_openapi::{ProblemData, WriteFileResponse};

use super::{Paint, Style, counted};

/// A unified diff, its lines in the colours of what came and went.
pub fn diff(diff: &str, style: Style) -> String {
    let mut out = String::with_capacity(diff.len());
    for line in diff.split_inclusive('\n') {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        let shown = style.line(text);
        let paint = match text.as_bytes() {
            [b'-', b'-', b'-', b' ', ..] | [b'+', b'+', b'+', b' ', ..] => Some(Paint::Bold),
            [b'@', ..] | [b'\\', ..] => Some(Paint::Dim),
            [b'+', ..] => Some(Paint::Added),
            [b'-', ..] => Some(Paint::Removed),
            _ => None,
        };
        match paint {
            Some(paint) => out.push_str(&style.paint(paint, &shown)),
            None => out.push_str(&shown),
        }
        out.push_str(end);
    }
    out
}

/// What a write did, in a line.
pub fn write(response: &WriteFileResponse, style: Style) -> String {
    let done = if response.created { "created" } else { "wrote" };
    let size = counted(response.bytes_written, "byte");
    format!("{done} {} ({size}, revision {})\n", style.name(&response.path), response.revision)
}

/// The places that a refused edit names: what is most like the text that was not found, or all the places where it is.
pub fn places(data: &ProblemData, style: Style) -> String {
    let mut out = String::new();
    let mut place = |title: String, excerpt: &str| {
        out.push_str(&format!("{title}\n"));
        for line in excerpt.lines() {
            out.push_str(&format!("  {}\n", style.line(line)));
        }
    };
    for candidate in data.candidates.iter().flatten() {
        let percent = (candidate.similarity * 100.0).round();
        place(
            format!(
                "{}, {percent} % alike: {}:",
                span(candidate.line_start, candidate.line_end),
                candidate.detail
            ),
            &candidate.excerpt,
        );
    }
    for occurrence in data.occurrences.iter().flatten() {
        place(format!("{}:", span(occurrence.line_start, occurrence.line_end)), &occurrence.excerpt);
    }
    out
}

fn span(start: u64, end: u64) -> String {
    if start == end { format!("line {start}") } else { format!("lines {start}-{end}") }
}

#[cfg(test)]
mod tests {
    use filectx_openapi::{Candidate, Difference, Occurrence};

    use super::*;

    const DIFF: &str =
        "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-old\x1b[2J\n+new\n same\n\\ No newline at end of file\n";

    #[test]
    fn a_diff_keeps_its_text_and_gets_colours() {
        assert_eq!(diff(DIFF, Style::default()), DIFF);
        let shown = diff(DIFF, Style { terminal: true, color: true });
        for part in
            ["\x1b[31m-old\\u001b[2J\x1b[0m\n", "\x1b[32m+new\x1b[0m\n", "\n same\n", "\x1b[1m--- a\x1b[0m"]
        {
            assert!(shown.contains(part), "{shown:?}");
        }
    }

    #[test]
    fn a_refusal_shows_its_places() {
        let candidate = Candidate {
            line_start: 3,
            line_end: 4,
            text: "x".into(),
            similarity: 0.987,
            difference: Difference::Indentation,
            detail: "only the indentation differs".into(),
            excerpt: "3\ta\n4\tb\n".into(),
        };
        let occurrence = Occurrence { line_start: 7, line_end: 7, excerpt: "7\tx".into() };
        let data = ProblemData { candidates: Some(vec![candidate]), ..ProblemData::default() };
        let expected = "lines 3-4, 99 % alike: only the indentation differs:\n  3\ta\n  4\tb\n";
        assert_eq!(places(&data, Style::default()), expected);
        let data = ProblemData { occurrences: Some(vec![occurrence]), ..ProblemData::default() };
        assert_eq!(places(&data, Style::default()), "line 7:\n  7\tx\n");
        assert_eq!(places(&ProblemData::default(), Style::default()), "");
    }
}
