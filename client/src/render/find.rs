//! What a search found, in grep's manner: `path:line: text` for a match, `path-line- text` for context, `--` between
//! groups; and what it passed over.

use filectx_openapi::{FindTextResponse, Row, Skipped};

use super::{Paint, Style, counted, grouped};

/// The rows as text. `context`: whether lines around the matches were asked for, and groups are to be set apart.
pub fn find_text(response: &FindTextResponse, context: bool, style: Style) -> String {
    let mut out = String::new();
    let mut last: Option<&Row> = None;
    for row in &response.rows {
        let joins = last.is_some_and(|last| last.path == row.path && last.line + 1 == row.line);
        if context && last.is_some() && !joins {
            out.push_str(&style.paint(Paint::Dim, "--"));
            out.push('\n');
        }
        out.push_str(&line(row, style));
        last = Some(row);
    }
    out
}

fn line(row: &Row, style: Style) -> String {
    let mark = style.paint(Paint::Dim, if row.is_context { "-" } else { ":" });
    let path = style.paint(Paint::Path, &style.name(&row.path));
    let number = style.paint(Paint::Number, &row.line.to_string());
    let text = matched(row, style);
    let clipped = match (row.clipped, row.column) {
        (false, _) => String::new(),
        (true, 0) => style.paint(Paint::Dim, " [clipped]"),
        (true, column) => style.paint(Paint::Dim, &format!(" [clipped, at column {}]", grouped(column))),
    };
    format!("{path}{mark}{number}{mark} {text}{clipped}\n")
}

/// The text with its matches in their colour.
fn matched(row: &Row, style: Style) -> String {
    if !style.color {
        return style.line(&row.text).into_owned();
    }
    let (mut out, mut at) = (String::new(), 0);
    for submatch in &row.submatches {
        let ends = (usize::try_from(submatch.start), usize::try_from(submatch.end));
        let (Ok(start), Ok(end)) = ends else { continue };
        let (Some(before), Some(found)) = (row.text.get(at..start), row.text.get(start..end)) else {
            continue;
        };
        out.push_str(&style.line(before));
        out.push_str(&style.paint(Paint::Match, &style.line(found)));
        at = end;
    }
    out.push_str(&style.line(row.text.get(at..).unwrap_or_default()));
    out
}

/// What a search passed over on purpose, in a sentence; `None` when that is nothing.
pub fn skipped(skipped: &Skipped) -> Option<String> {
    let Skipped { hidden, ignored, binary, unreadable, special, linked_files, linked_directories } = *skipped;
    let kinds = [
        (hidden, "hidden"),
        (ignored, "ignored"),
        (binary, "binary"),
        (unreadable, "unreadable"),
        (special, "special"),
    ];
    let mut parts: Vec<_> = kinds
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, kind)| format!("{} {kind}", grouped(count)))
        .collect();
    let links = [
        (linked_files, "link to a file", "links to files"),
        (linked_directories, "link to a directory", "links to directories"),
    ];
    for (count, one, many) in links.into_iter().filter(|(count, ..)| *count > 0) {
        parts.push(format!("{} {}", grouped(count), if count == 1 { one } else { many }));
    }
    (!parts.is_empty()).then(|| format!("skipped: {}", parts.join(", ")))
}

/// How many things could not be searched beyond those that are named.
pub fn more_errors(named: usize, count: u64) -> Option<String> {
    let more = count.saturating_sub(named as u64);
    (more > 0).then(|| format!("{} more could not be searched", counted(more, "place")))
}

#[cfg(test)]
mod tests {
    use filectx_openapi::Submatch;

    use super::*;

    fn row(path: &str, line: u64, text: &str, is_context: bool) -> Row {
        Row {
            path: path.into(),
            path_base64: None,
            line,
            text: text.into(),
            is_context,
            column: u64::from(!is_context),
            submatches: Vec::new(),
            clipped: false,
        }
    }

    fn response(rows: Vec<Row>) -> FindTextResponse {
        FindTextResponse {
            rows,
            truncation: None,
            complete: true,
            deadline_exceeded: false,
            case_sensitive: false,
            files_searched: 1,
            skipped: Skipped::default(),
            errors: Vec::new(),
            error_count: 0,
        }
    }

    #[test]
    fn rows_look_like_greps() {
        let rows = vec![
            row("a", 1, "before", true),
            row("a", 2, "hit", false),
            row("a", 3, "after", true),
            row("a", 9, "hit", false),
            row("b", 10, "hit", false),
        ];
        let response = response(rows);
        let expected = "a-1- before\na:2: hit\na-3- after\n--\na:9: hit\n--\nb:10: hit\n";
        assert_eq!(find_text(&response, true, Style::default()), expected);
        assert_eq!(find_text(&response, false, Style::default()), expected.replace("--\n", ""));
    }

    #[test]
    fn matches_are_coloured_where_they_are() {
        let mut hit = row("a", 2, "ax\x1bx\u{e9}x", false);
        let ends = [(1, 2), (3, 4), (100, 200)];
        hit.submatches = ends.map(|(start, end)| Submatch { start, end }).into();
        let text = find_text(&response(vec![hit]), false, Style { terminal: true, color: true });
        assert!(text.contains("a\x1b[1;31mx\x1b[0m\\u001b\x1b[1;31mx\x1b[0m\u{e9}x\n"), "{text:?}");
    }

    #[test]
    fn a_clipped_row_says_so() {
        let clipped = Row { clipped: true, column: 12_345, ..row("a", 1, "part", false) };
        let context = Row { clipped: true, ..row("a", 2, "part", true) };
        let text = find_text(&response(vec![clipped, context]), true, Style::default());
        assert_eq!(text, "a:1: part [clipped, at column 12,345]\na-2- part [clipped]\n");
    }

    #[test]
    fn what_was_skipped_is_counted() {
        assert_eq!(skipped(&Skipped::default()), None);
        let some =
            Skipped { hidden: 3, binary: 1200, linked_files: 1, linked_directories: 2, ..Skipped::default() };
        let expected = "skipped: 3 hidden, 1,200 binary, 1 link to a file, 2 links to directories";
        assert_eq!(skipped(&some).as_deref(), Some(expected));
        assert_eq!(more_errors(20, 20), None);
        assert_eq!(more_errors(20, 21).as_deref(), Some("1 place more could not be searched"));
    }
}
