//! `find-text` beside ripgrep: on random trees, for the options that both have, the rows are the same. ripgrep has rules
//! of its own for repositories, user-wide ignore files and names let in by `!`: the trees hold none of these.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use filectx_files::{Cancel, FenceConfig, Files};
use filectx_openapi::{FindTextRequest, Limits};
use filectx_tests::require;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A row: path, line, whether it is context, its text, and the matches in it.
type Line = (String, u64, bool, String, Vec<(u64, u64)>);

#[derive(Clone, Debug)]
struct Options {
    pattern: &'static str,
    literal: bool,
    case: Option<bool>,
    context: u64,
    hidden: bool,
    ignore_files: bool,
    multiline: bool,
    globs: Vec<&'static str>,
    root: &'static str,
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&["a", "b.x", "B", "a-b", "c.y", ".h", "d", "e.x", "\u{e9}", "sub"][..])
}

fn file() -> impl Strategy<Value = String> {
    let line =
        prop::sample::select(&["HIT", "hit", "x HIT hit", "", "other", "\u{e9}HIT", "}", "{", "HITHIT"][..]);
    (prop::collection::vec(line, 0..9), any::<bool>())
        .prop_map(|(lines, ends)| lines.join("\n") + if ends && !lines.is_empty() { "\n" } else { "" })
}

fn rules() -> impl Strategy<Value = String> {
    let rule = prop::sample::select(
        &["*.x", "/a", "d/", "!b.x", "c.y", "a/d", "**/B", "!/d/e.x", "# no", "\\!x"][..],
    );
    prop::collection::vec(rule, 0..4).prop_map(|rules| rules.join("\n") + "\n")
}

/// Files and ignore files by their path.
fn tree() -> impl Strategy<Value = BTreeMap<String, String>> {
    let dir = || prop::collection::vec(name(), 0..3).prop_map(|names| names.join("/"));
    let path =
        |dir: String, name: &str| if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    let files = prop::collection::vec((dir(), name(), file()), 1..14);
    let ignores =
        prop::collection::vec((dir(), prop::sample::select(&[".gitignore", ".ignore"][..]), rules()), 0..3);
    (files, ignores).prop_map(move |(files, ignores)| {
        let files = files.into_iter().map(|(dir, name, text)| (path(dir, name), text));
        let ignores = ignores.into_iter().map(|(dir, name, text)| (path(dir, name), text));
        ignores.chain(files).collect()
    })
}

fn options() -> impl Strategy<Value = Options> {
    let pattern = prop::sample::select(
        &["HIT", "hit", "^HIT$", "\\bhit", "x? ", "HIT|other", ".HIT", "[{}]", "^$", "T$"][..],
    );
    let over_lines =
        prop::sample::select(&["HIT\\nx", "\\{\\n\\}", "(?s)hit.*other", "HIT\\n\\n", "^HIT$", "\\nhit"][..]);
    let glob = prop::sample::select(&["*.x", "d/*", "**/a", "a*", "d/**", "B"][..]);
    let excluded = prop::sample::select(&["!*.y", "!d", "!a-b", "!d/"][..]);
    let globs = (prop::collection::vec(glob, 0..3), prop::collection::vec(excluded, 0..2));
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
    let root = prop::sample::select(&[".", ".", "sub"][..]);
    (pattern, over_lines, any::<Option<bool>>(), 0u64..3, flags, globs, root).prop_map(
        |(
            pattern,
            over_lines,
            case,
            context,
            (literal, hidden, ignore_files, multiline),
            (globs, excluded),
            root,
        )| {
            let pattern = if multiline { over_lines } else { pattern };
            // To ripgrep a glob that asks for files is consent to hidden and ignored ones, to us its plain names alone.
            let (hidden, ignore_files) = (hidden || !globs.is_empty(), ignore_files && globs.is_empty());
            let globs = [globs, excluded].concat();
            let literal = literal && !multiline;
            // ripgrep's globs are relative to where it runs, ours to the root.
            let root = if globs.is_empty() { root } else { "." };
            Options { pattern, literal, case, context, hidden, ignore_files, multiline, globs, root }
        },
    )
}

fn ours(dir: &Path, options: &Options, max_results: u64) -> Vec<Line> {
    let files = Files::new(&FenceConfig::default(), Limits::default()).expect("an engine");
    let (mut lines, mut after) = (Vec::new(), Value::Null);
    loop {
        let request = json!({
            "pattern": options.pattern, "cwd": dir, "paths": [options.root], "literal": options.literal,
            "case_sensitive": options.case, "context": options.context, "hidden": options.hidden,
            "ignore_files": options.ignore_files, "multiline": options.multiline, "globs": options.globs,
            "max_results": max_results, "after": after,
        });
        let request: FindTextRequest = serde_json::from_value(request).expect("a request");
        let found = files.find_text(&request, &Cancel::after(Duration::from_secs(60)));
        let found = match found {
            Ok(found) => found,
            Err(error) if error.code == filectx_openapi::Code::NotFound => return lines,
            Err(error) => panic!("{options:?}: {}", error.message),
        };
        lines.extend(found.rows.into_iter().map(|row| {
            let matches = row.submatches.iter().map(|m| (m.start, m.end)).collect();
            (row.path, row.line, row.is_context, row.text, matches)
        }));
        match found.truncation {
            Some(truncation) => after = truncation.next.into(),
            None => return lines,
        }
    }
}

fn ripgrep(dir: &Path, options: &Options) -> Vec<Line> {
    let mut rg = Command::new("rg");
    rg.current_dir(dir).args([
        "--no-config",
        "--sort=path",
        "--json",
        "--no-require-git",
        "--no-ignore-global",
    ]);
    rg.arg(format!("--context={}", options.context));
    rg.arg(match options.case {
        Some(true) => "--case-sensitive",
        Some(false) => "--ignore-case",
        None => "--smart-case",
    });
    let flags = [
        (options.literal, "--fixed-strings"),
        (options.hidden, "--hidden"),
        (!options.ignore_files, "--no-ignore"),
        (options.multiline, "--multiline"),
    ];
    rg.args(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag));
    rg.args(options.globs.iter().map(|glob| format!("--glob={glob}")));
    let output =
        rg.arg("--regexp").arg(options.pattern).arg("--").arg(options.root).output().expect("rg runs");
    let text = String::from_utf8(output.stdout).expect("rg prints UTF-8");
    let mut lines = Vec::new();
    for event in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("rg prints JSON")) {
        let (kind, data) = (event["type"].as_str().unwrap_or_default(), &event["data"]);
        if kind != "match" && kind != "context" {
            continue;
        }
        let path = data["path"]["text"].as_str().expect("a path");
        let path = path.strip_prefix("./").unwrap_or(path).to_owned();
        let text = data["lines"]["text"].as_str().expect("a text");
        let first = data["line_number"].as_u64().expect("a number");
        let matches: Vec<(u64, u64)> = data["submatches"]
            .as_array()
            .expect("matches")
            .iter()
            .map(|m| (m["start"].as_u64().expect("a start"), m["end"].as_u64().expect("an end")))
            .collect();
        // One event may hold several lines: a row for each of them.
        let mut from = 0;
        for (number, line) in (first..).zip(text.split_inclusive('\n')) {
            let plain = line.strip_suffix('\n').unwrap_or(line);
            let to = from + plain.len() as u64;
            let touching = matches
                .iter()
                .filter(|&&(start, end)| start <= to && (end > from || (end == from && start == end)))
                .map(|&(start, end)| (start.max(from) - from, end.min(to) - from));
            lines.push((path.clone(), number, kind == "context", plain.to_owned(), touching.collect()));
            from += line.len() as u64;
        }
    }
    lines
}

#[test]
fn rows_are_those_of_ripgrep() {
    if !require::program("rg") {
        return;
    }
    let check = |(tree, options, max_results): (BTreeMap<String, String>, Options, u64)| {
        let dir = tempfile::tempdir().expect("a directory");
        // Ignore files above a root hold in a repository; no rule ignores the root.
        std::fs::create_dir(dir.path().join(".git")).expect("a directory");
        for (path, text) in &tree {
            let path = dir.path().join(path);
            // A name may be a file's already, where another path needs a directory.
            let _ = std::fs::create_dir_all(path.parent().expect("a parent"))
                .and_then(|()| std::fs::write(path, text));
        }
        let expected = ripgrep(dir.path(), &options);
        prop_assert_eq!(&ours(dir.path(), &options, 5_000), &expected, "{:?}", options);
        prop_assert_eq!(ours(dir.path(), &options, max_results), expected, "pages of {:?}", options);
        Ok(())
    };
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    runner.run(&(tree(), options(), 1u64..4), check).unwrap_or_else(|error| panic!("{error}"));
}
