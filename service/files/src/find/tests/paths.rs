//! Searches of names, beside a model that lists everything and asks each path.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{files, files_with, names, soon, tree};
use crate::Files;
use filectx_openapi::{Base64, Code, FindPathsRequest, FoundPath, LimitName, Limits};

fn bytes(found: &FoundPath) -> Vec<u8> {
    found
        .path_base64
        .as_deref()
        .map_or_else(|| found.path.clone().into_bytes(), |text| Base64::decode(text).unwrap())
}

/// All pages of a request.
fn pages(files: &Files, request: &FindPathsRequest) -> Vec<Vec<u8>> {
    let (mut request, mut found) = (request.clone(), Vec::new());
    loop {
        let page = files.find_paths(&request, &soon()).unwrap();
        assert!(page.complete && found.len() < 10_000);
        found.extend(page.paths.iter().map(bytes));
        match page.truncation {
            Some(truncation) => request.after = Some(truncation.next),
            None => return found,
        }
    }
}

fn find(cwd: &Path, request: &Value) -> Vec<String> {
    let found = pages(&files(), &names(cwd, request));
    found.into_iter().map(|path| String::from_utf8_lossy(&path).into_owned()).collect()
}

#[test]
fn what_patterns_match() {
    let dir = tree(&[
        ("src/main.rs", ""),
        ("src/ui/list.rs", ""),
        ("src/ui/Main_helper.rs", ""),
        ("docs/ui/list.md", ""),
        ("app/[id]/page", ""),
        ("app/i/page", ""),
        ("!bang", ""),
        ("back\\slash", ""),
        ("Gru\u{308}n", ""),
        ("Gr\u{fc}\u{df}e", ""),
        ("STRASSE", ""),
    ]);
    std::fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"r\xe9sum")), "").unwrap();
    let here = dir.path().display();
    for (pattern, found) in [
        ("main".to_owned(), &["src/main.rs", "src/ui/Main_helper.rs"][..]),
        ("Main".into(), &["src/ui/Main_helper.rs"]),
        ("*.rs".into(), &["src/main.rs", "src/ui/Main_helper.rs", "src/ui/list.rs"]),
        ("./src/*.rs".into(), &["src/main.rs"]),
        ("ui/li".into(), &["docs/ui/list.md", "src/ui/list.rs"]),
        ("./src/ui/li".into(), &["src/ui/list.rs"]),
        ("UI/".into(), &[]),
        ("*/ui".into(), &["docs/ui", "src/ui"]),
        ("u?/".into(), &["docs/ui", "src/ui"]),
        ("src/**".into(), &["src/main.rs", "src/ui", "src/ui/Main_helper.rs", "src/ui/list.rs"]),
        (format!("{here}/src/*.rs"), &["src/main.rs"]),
        (format!("{here}/src/ui/li"), &["src/ui/list.rs"]),
        (format!("{here}/*/ui"), &["docs/ui", "src/ui"]),
        ("app/[id]/page".into(), &["app/i/page"]),
        ("app/\\[id\\]/page".into(), &["app/[id]/page"]),
        ("!bang".into(), &["!bang"]),
        ("back\\".into(), &["back\\slash"]),
        ("gr\u{fc}".into(), &["Gru\u{308}n", "Gr\u{fc}\u{df}e"]),
        ("gru\u{308}".into(), &["Gru\u{308}n", "Gr\u{fc}\u{df}e"]),
        ("Gr\u{fc}?".into(), &["Gru\u{308}n"]),
        ("strasse".into(), &["STRASSE"]),
        ("r\u{fffd}sum".into(), &["r\u{fffd}sum"]),
        ("r?sum".into(), &["r\u{fffd}sum"]),
    ] {
        assert_eq!(find(dir.path(), &json!({"pattern": pattern})), found, "{pattern}");
    }
    let found = find(dir.path(), &json!({"pattern": "i", "globs": ["!docs", "*.rs"], "type": "file"}));
    assert_eq!(found, ["src/main.rs", "src/ui/Main_helper.rs", "src/ui/list.rs"]);
    assert_eq!(
        find(dir.path(), &json!({"paths": ["src/main.rs", "docs"], "pattern": "m*"})),
        ["src/main.rs"]
    );
}

#[test]
fn spelling_a_name_out_is_consent() {
    let dir = tree(&[
        (".gitignore", "dist/\n"),
        (".env", ""),
        (".env.example", ""),
        ("a/.env", ""),
        (".github/ci.yml", ""),
        ("dist/x.yml", ""),
        (".git/HEAD", ""),
    ]);
    for (pattern, found) in [
        (".env", &[".env", "a/.env"][..]),
        (".github/ci", &[".github/ci.yml"]),
        (".github/*", &[".github/ci.yml"]),
        ("dist/x.yml", &["dist/x.yml"]),
        ("dist", &["dist"]),
        ("*.yml", &[]),
        (".git", &[]),
        (".git/HEAD", &[]),
    ] {
        assert_eq!(find(dir.path(), &json!({"pattern": pattern})), found, "{pattern}");
    }
}

#[test]
fn limits_are_named() {
    let dir = tree(&[("a", ""), ("b", ""), ("c", "")]);
    let cut = |limits: Limits, most: u64| {
        let page = files_with(limits).find_paths(&names(dir.path(), &json!({"max_results": most})), &soon());
        page.unwrap().truncation.map(|truncation| truncation.limit)
    };
    assert_eq!(cut(Limits::default(), 3), None);
    assert_eq!(cut(Limits::default(), 2), Some(LimitName::MaxResults));
    assert_eq!(cut(Limits { max_find_rows: 2, ..Limits::default() }, 9), Some(LimitName::MaxFindRows));
    assert_eq!(cut(Limits { max_find_bytes: 2, ..Limits::default() }, 9), Some(LimitName::MaxFindBytes));
    for (request, code) in [
        (json!({"pattern": ""}), Code::InvalidPattern),
        (json!({"pattern": "a["}), Code::InvalidPattern),
        (json!({"max_results": 0}), Code::InvalidRequest),
        (json!({"paths": ["gone"]}), Code::NotFound),
    ] {
        let error = files().find_paths(&names(dir.path(), &request), &soon()).unwrap_err();
        assert_eq!(error.code, code, "{request}");
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[ab.]{1,2}", "[aA]b", Just("\u{e9}".to_owned())]
        .prop_filter("a name", |name| name != "." && name != "..")
}

fn part() -> impl Strategy<Value = String> {
    prop_oneof![name(), Just("*".to_owned()), Just("**".to_owned()), "[ab?*]{1,3}", Just("[!a]*".to_owned())]
}

/// The paths below `dir`, each as its components, in order.
fn all(dir: &Path, above: &[String], found: &mut Vec<Vec<String>>) {
    let mut entries: Vec<_> = std::fs::read_dir(dir).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = [above, &[entry.file_name().into_string().unwrap()]].concat();
        found.push(path.clone());
        if entry.file_type().unwrap().is_dir() {
            all(&entry.path(), &path, found);
        }
    }
}

/// Whether a glob matches, by the definition of each of its parts.
fn model(glob: &[&str], path: &[String]) -> bool {
    match (glob, path) {
        ([], []) => true,
        (["**"], path) => !path.is_empty(),
        (["**", rest @ ..], path) => (0..=path.len()).any(|skip| model(rest, &path[skip..])),
        ([part, rest @ ..], [name, below @ ..]) => {
            let (part, name): (Vec<char>, Vec<char>) = (part.chars().collect(), name.chars().collect());
            model_name(&part, &name) && model(rest, below)
        }
        _ => false,
    }
}

fn model_name(part: &[char], name: &[char]) -> bool {
    match (part, name) {
        ([], []) => true,
        (['*', rest @ ..], name) => (0..=name.len()).any(|skip| model_name(rest, &name[skip..])),
        (['?', rest @ ..], [_, name @ ..]) => model_name(rest, name),
        (['[', '!', not, ']', rest @ ..], [c, name @ ..]) => c != not && model_name(rest, name),
        ([own, rest @ ..], [c, name @ ..]) => own == c && model_name(rest, name),
        _ => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn paths_are_those_of_the_model(
        files in proptest::collection::vec(proptest::collection::vec(name(), 1..4), 1..12),
        glob in proptest::collection::vec(part(), 1..4),
        most in 1u64..5,
    ) {
        let dir = tempfile::tempdir().unwrap();
        for file in &files {
            let path = dir.path().join(file.join("/"));
            // A name may be a file's already, where another path needs a directory.
            let _ = std::fs::create_dir_all(path.parent().unwrap()).and_then(|()| std::fs::write(&path, ""));
        }
        let mut paths = Vec::new();
        all(dir.path(), &[], &mut paths);
        let pattern = format!("./{}", glob.join("/"));
        prop_assume!(pattern.contains(['*', '?', '[']));
        let parts: Vec<&str> = glob.iter().map(String::as_str).collect();
        let expected: Vec<String> =
            paths.iter().filter(|path| model(&parts, path)).map(|path| path.join("/")).collect();
        let request = json!({"pattern": pattern, "hidden": true, "max_results": most});
        prop_assert_eq!(find(dir.path(), &request), expected);
    }
}
