//! Tests of the searches as wholes, on trees of their own.

mod paths;
mod text;
mod walk;

use std::path::Path;
use std::time::Duration;

use filectx_openapi::{Code, FindPathsRequest, FindTextRequest, LimitName, Limits, Row};
use serde_json::{Value, json};

use crate::{Cancel, FenceConfig, Files};

fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    dir
}

fn files_with(limits: Limits) -> Files {
    Files::new(&FenceConfig::default(), limits).unwrap()
}

fn files() -> Files {
    files_with(Limits::default())
}

fn soon() -> Cancel {
    Cancel::after(Duration::from_secs(60))
}

fn text(cwd: &Path, extra: &Value) -> FindTextRequest {
    let mut request = json!({"cwd": cwd, "pattern": "HIT"});
    request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(request).unwrap()
}

fn names(cwd: &Path, extra: &Value) -> FindPathsRequest {
    let mut request = json!({"cwd": cwd});
    request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(request).unwrap()
}

/// Rows as grep prints them.
fn lines(rows: &[Row]) -> Vec<String> {
    let mark = |row: &Row| if row.is_context { '-' } else { ':' };
    rows.iter().map(|row| format!("{}{}{}", row.path, mark(row), row.line)).collect()
}

/// All pages of a request, and how many there were.
fn pages(files: &Files, request: &FindTextRequest) -> (Vec<Row>, usize) {
    let (mut request, mut rows, mut count) = (request.clone(), Vec::new(), 0);
    loop {
        let page = files.find_text(&request, &soon()).unwrap();
        assert!(page.complete && page.rows.len() < 10_000);
        count += 1;
        rows.extend(page.rows);
        match page.truncation {
            Some(truncation) => request.after = Some(truncation.next),
            None => return (rows, count),
        }
    }
}

#[test]
fn pages_joined_are_the_rows_without_limits() {
    let dir = tree(&[
        ("a", "x\nHIT\ny\nz\nHIT\nHIT\nq\n"),
        ("b/c", "HIT\n1\n2\n3\n4\n5\nHIT"),
        ("b.t", "no\n"),
        ("c", "1\nHIT\n"),
    ]);
    for context in 0..4 {
        let request = |max: u64| text(dir.path(), &json!({"context": context, "max_results": max}));
        let (all, one) = pages(&files(), &request(100));
        assert_eq!(one, 1);
        for max in 1..7 {
            let (rows, count) = pages(&files(), &request(max));
            assert_eq!(lines(&rows), lines(&all), "context {context}, max_results {max}");
            assert_eq!(count, 6usize.div_ceil(max as usize), "context {context}, max_results {max}");
        }
        for rows in 1..6 {
            let few = files_with(Limits { max_find_rows: rows, ..Limits::default() });
            assert_eq!(lines(&pages(&few, &request(100)).0), lines(&all), "context {context}, rows {rows}");
            let few = files_with(Limits { max_find_bytes: rows, ..Limits::default() });
            assert_eq!(lines(&pages(&few, &request(100)).0), lines(&all), "context {context}, bytes {rows}");
        }
    }
}

#[test]
fn the_limit_that_cut_is_named() {
    let dir = tree(&[("a", &"HIT HIT\n".repeat(10))]);
    let cut = |limits: Limits, max: u64| {
        let request = text(dir.path(), &json!({"max_results": max}));
        files_with(limits).find_text(&request, &soon()).unwrap().truncation.map(|truncation| truncation.limit)
    };
    assert_eq!(cut(Limits::default(), 10), None);
    assert_eq!(cut(Limits::default(), 9), Some(LimitName::MaxResults));
    assert_eq!(cut(Limits { max_find_rows: 9, ..Limits::default() }, 10), Some(LimitName::MaxFindRows));
    assert_eq!(cut(Limits { max_find_rows: 10, ..Limits::default() }, 10), None);
    assert_eq!(cut(Limits { max_find_bytes: 99, ..Limits::default() }, 10), Some(LimitName::MaxFindBytes));
}

#[test]
fn what_lies_under_two_roots_stands_once_on_every_page() {
    let dir = tree(&[("a/x", "HIT\n"), ("a/y/z", "HIT\nHIT\n"), ("b", "HIT\n"), ("a/.h", "HIT\n")]);
    let paths = json!(["a/y", "b", "a", ".", "a/.h", "./b"]);
    let request = |max: u64| text(dir.path(), &json!({"paths": paths, "max_results": max}));
    let expected = ["a/y/z:1", "a/y/z:2", "b:1", "a/x:1", "a/.h:1"];
    for max in 1..7 {
        assert_eq!(lines(&pages(&files(), &request(max)).0), expected, "{max}");
    }
    let request = names(dir.path(), &json!({"paths": paths, "type": "file"}));
    let found = files().find_paths(&request, &soon()).unwrap();
    let paths: Vec<_> = found.paths.iter().map(|path| path.path.as_str()).collect();
    assert_eq!(paths, ["a/y/z", "b", "a/x", "a/.h"]);
}

#[test]
fn a_deadline_returns_what_is_there() {
    let dir = tree(&[("a", "HIT\n")]);
    let late = Cancel::after(Duration::ZERO);
    let found = files().find_text(&text(dir.path(), &json!({})), &late).unwrap();
    assert!(found.deadline_exceeded && !found.complete && found.truncation.is_none());
    let found = files().find_paths(&names(dir.path(), &json!({})), &late).unwrap();
    assert!(found.deadline_exceeded && !found.complete);
    let gone = soon();
    gone.cancel();
    let error = files().find_text(&text(dir.path(), &json!({})), &gone).unwrap_err();
    assert_eq!(error.code, Code::DeadlineExceeded);
}

#[test]
fn the_same_request_gives_the_same_rows() {
    let names: Vec<String> = (0..60).map(|i| format!("f{i:02}")).collect();
    let dir = tree(&names.iter().map(|name| (name.as_str(), "HIT\nno\nHIT\nHIT\nHIT\n")).collect::<Vec<_>>());
    for max in [10, 70] {
        let request = text(dir.path(), &json!({"max_results": max}));
        let first = lines(&files().find_text(&request, &soon()).unwrap().rows);
        assert_eq!((first.len(), first[5].as_str()), (max, "f01:3"));
        // Searchers race: whichever is first, the rows are these.
        for _ in 0..200 {
            assert_eq!(lines(&files().find_text(&request, &soon()).unwrap().rows), first);
        }
    }
}
