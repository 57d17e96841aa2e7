//! What is matched, and how rows show it.

use serde_json::{Value, json};

use super::super::content::LONGEST_LINE;
use super::{files, lines, soon, text, tree};
use filectx_openapi::{Code, FindTextResponse};

fn find(content: &str, request: &Value) -> FindTextResponse {
    let dir = tree(&[("f", content)]);
    files().find_text(&text(dir.path(), request), &soon()).unwrap()
}

/// Lines, columns and texts of the matches.
fn matches(content: &str, request: &Value) -> Vec<(u64, u64, Vec<String>)> {
    let of = |row: filectx_openapi::Row| {
        let part = |m: &filectx_openapi::Submatch| row.text[m.start as usize..m.end as usize].to_owned();
        (row.line, row.column, row.submatches.iter().map(part).collect())
    };
    find(content, request).rows.into_iter().map(of).collect()
}

#[test]
fn line_ends_are_no_part_of_a_line() {
    for (content, pattern, found) in [
        ("a\r\nab\r\n", "a$", &[1][..]),
        ("a\r\nab\r\n", "^a.?$", &[1, 2]),
        ("x\r\n\r\n", "^$", &[2]),
        ("a\r\nb\rc\r\n", "\\r", &[2]),
        ("a\rb\n", "a.b", &[1]),
        ("a\rb\n", "^b", &[]),
        ("\u{feff}a\n", "^a", &[1]),
        ("a\u{2028}b\u{c}c\n", "^b|^c", &[]),
        ("a\nb", "b\\z", &[2]),
        ("", "^", &[]),
        ("a\n", "^", &[1]),
        ("a\n\n", "^", &[1, 2]),
    ] {
        let lines: Vec<_> = matches(content, &json!({"pattern": pattern})).iter().map(|m| m.0).collect();
        assert_eq!(lines, found, "{content:?} {pattern}");
    }
}

#[test]
fn matches_of_a_line() {
    for (content, pattern, found) in [
        ("aXbXc\n", "x", (1, 2, &["X", "X"][..])),
        ("\u{6c34}\u{e9}a a\n", "a", (1, 3, &["a", "a"])),
        ("abc\n", "", (1, 1, &[])),
        ("abc\n", "b*", (1, 1, &["", "b", ""])),
        ("foo bar\n", "\\bb\\w+", (1, 5, &["bar"])),
        ("aaa\n", "aa", (1, 1, &["aa"])),
    ] {
        if pattern.is_empty() {
            continue;
        }
        let (line, column, texts) = found;
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(matches(content, &json!({"pattern": pattern})), [(line, column, texts)], "{pattern}");
    }
}

#[test]
fn matches_over_lines_are_a_row_for_each_line() {
    let row = |line, column, text: &str| (line, column, vec![text.to_owned()]);
    for (content, pattern, found) in [
        ("ab\nbc\nx\n", "b\\nb", vec![row(1, 2, "b"), row(2, 1, "b")]),
        ("ab\r\nbc\r\n", "b\\nb", vec![row(1, 2, "b"), row(2, 1, "b")]),
        ("ab\r\nbc\r\n", "b\\r\\nb", vec![row(1, 2, "b"), row(2, 1, "b")]),
        ("a\n\nb\n", "a\\n\\nb", vec![row(1, 1, "a"), row(2, 1, ""), row(3, 1, "b")]),
        ("a\nb\n", "a\\n", vec![row(1, 1, "a")]),
        ("a\nb\n", "\\nb", vec![row(1, 2, ""), row(2, 1, "b")]),
        ("a\nb\n", "(?s)a.*b", vec![row(1, 1, "a"), row(2, 1, "b")]),
        ("a\nb\n", "a.*b", vec![]),
        ("ab\nab\n", "b$", vec![row(1, 2, "b"), row(2, 2, "b")]),
    ] {
        let request = json!({"pattern": pattern, "multiline": true});
        assert_eq!(matches(content, &request), found, "{content:?} {pattern}");
    }
    let request = json!({"pattern": "a\r\nb", "multiline": true, "literal": true});
    assert_eq!(matches("a\r\nb\r\n", &request).len(), 2);
}

#[test]
fn context_stands_once_and_only_for_itself() {
    let content = "1\n2\nHIT\n4\nHIT\n6\n7\n8\nHIT\n";
    for (context, rows) in [
        (1, "f-2 f:3 f-4 f:5 f-6 f-8 f:9"),
        (2, "f-1 f-2 f:3 f-4 f:5 f-6 f-7 f-8 f:9"),
        (u64::MAX, "f-1 f-2 f:3 f-4 f:5 f-6 f-7 f-8 f:9"),
    ] {
        let found = find(content, &json!({"context": context}));
        assert_eq!(lines(&found.rows).join(" "), rows, "{context}");
        assert!(found.rows.iter().all(|row| row.is_context == (row.column == 0)));
    }
}

#[test]
fn large_files_are_streamed_alike() {
    let line = "0123456789abcdef\r\n";
    let content = format!("{}HIT\r\n{}x HIT", line.repeat(20_000), line.repeat(20_000));
    let found = find(&content, &json!({"context": 1, "pattern": "hit$"}));
    assert_eq!(lines(&found.rows), ["f-20000", "f:20001", "f-20002", "f-40001", "f:40002"]);
    assert_eq!(found.rows[4].text, "x HIT");
    let found = find(&content, &json!({"pattern": "hit\\n0", "multiline": true}));
    assert_eq!(lines(&found.rows), ["f:20001", "f:20002"]);
}

#[test]
fn a_line_that_is_too_long_is_told_and_the_others_are_searched() {
    let content = format!("HIT 1\nHIT {}\nHIT 3\n", "x".repeat(LONGEST_LINE));
    let found = find(&content, &json!({}));
    assert_eq!(lines(&found.rows), ["f:1", "f:3"]);
    assert_eq!((found.error_count, found.complete, &found.errors[0].code), (1, false, &Code::TooLarge));
    let found = find(&content, &json!({"multiline": true}));
    assert_eq!((found.error_count, &found.errors[0].code), (1, &Code::TooLarge));
}

#[test]
fn a_search_that_cannot_be_is_refused() {
    let dir = tree(&[("f", "x\n")]);
    for (request, code, pointer) in [
        (json!({"max_results": 0}), Code::InvalidRequest, Some("/max_results")),
        (json!({"max_line_bytes": 0}), Code::InvalidRequest, Some("/max_line_bytes")),
        (json!({"after": "nonsense"}), Code::InvalidRequest, Some("/after")),
        (json!({"paths": []}), Code::InvalidRequest, Some("/paths")),
        (json!({"cwd": "."}), Code::InvalidRequest, Some("/cwd")),
        (json!({"globs": ["a["]}), Code::InvalidPattern, None),
        (json!({"globs": ["!"]}), Code::InvalidPattern, None),
        (json!({"globs": ["x".repeat(300_000)]}), Code::InvalidRequest, Some("/globs")),
        (json!({"paths": [""]}), Code::InvalidPath, None),
        (json!({"paths": ["gone", ""]}), Code::NotFound, None),
        (json!({"paths": ["f/"]}), Code::NotADirectory, None),
    ] {
        let error = files().find_text(&text(dir.path(), &request), &soon()).unwrap_err();
        assert_eq!(
            (&error.code, error.data.pointer.as_deref()),
            (&code, pointer),
            "{request}: {}",
            error.message
        );
    }
}
