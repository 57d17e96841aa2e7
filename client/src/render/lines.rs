//! Splits text into lines by the contract's rule, so that the numbers shown are those of the file.

use filectx_openapi::LineBreaks;

/// The lines of `text`, each without its line end, with the byte at which it begins.
pub(super) fn lines(text: &str, breaks: LineBreaks) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = &text[at..];
        if rest.is_empty() {
            return None;
        }
        let (line, end) = match breaks {
            LineBreaks::Newline => newline(rest),
            LineBreaks::Unicode => unicode(rest),
        };
        let start = at;
        at += line + end;
        Some((start, &rest[..line]))
    })
}

/// The length of the first line, and of its line end.
fn newline(text: &str) -> (usize, usize) {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => (at - 1, 2),
        Some(at) => (at, 1),
        None => (text.len(), 0),
    }
}

fn unicode(text: &str) -> (usize, usize) {
    let ends = |c: char| {
        matches!(
            c,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let Some(at) = text.find(ends) else { return (text.len(), 0) };
    if text[at..].starts_with("\r\n") {
        return (at, 2);
    }
    (at, text[at..].chars().next().map_or(0, char::len_utf8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, breaks: LineBreaks, expected: &[(usize, &str)]) {
        assert_eq!(lines(text, breaks).collect::<Vec<_>>(), expected, "{text:?} {breaks:?}");
    }

    #[test]
    fn a_line_ends_at_lf_alone() {
        check("", LineBreaks::Newline, &[]);
        check("\n", LineBreaks::Newline, &[(0, "")]);
        check("a\nb", LineBreaks::Newline, &[(0, "a"), (2, "b")]);
        check("a\r\nb\r\n", LineBreaks::Newline, &[(0, "a"), (3, "b")]);
        check("a\rb\x0cc\u{2028}d\n\n", LineBreaks::Newline, &[(0, "a\rb\x0cc\u{2028}d"), (10, "")]);
        check("a\r", LineBreaks::Newline, &[(0, "a\r")]);
    }

    #[test]
    fn the_wider_set_is_opt_in() {
        check("a\rb\r\nc\x0cd", LineBreaks::Unicode, &[(0, "a"), (2, "b"), (5, "c"), (7, "d")]);
        check("a\u{2028}b\u{85}c", LineBreaks::Unicode, &[(0, "a"), (4, "b"), (7, "c")]);
        check("a\n\r", LineBreaks::Unicode, &[(0, "a"), (2, "")]);
    }
}
