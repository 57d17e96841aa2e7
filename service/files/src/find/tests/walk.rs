//! What a search enters, passes over and counts.

use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use super::{files, lines, names, soon, text, tree};
use crate::{FenceConfig, Files};
use filectx_openapi::{Code, Limits};

/// A repository with hidden and ignored parts.
fn repository() -> tempfile::TempDir {
    tree(&[
        (".git/HEAD", "ref: x\n"),
        (".git/info/exclude", "*.mine\n"),
        (".gitignore", "node_modules/\n/dist\n*.log\n!keep.log\n.env\n"),
        (".env", "HIT\n"),
        (".github/ci.yml", "HIT\n"),
        ("node_modules/left/x.js", "HIT\n"),
        ("dist/out.js", "HIT\n"),
        ("src/dist/a", "HIT\n"),
        ("src/a.log", "HIT\n"),
        ("src/keep.log", "HIT\n"),
        ("src/b.mine", "HIT\n"),
        ("src/.ignore", "/gen\n!a.log\n"),
        ("src/gen/g", "HIT\n"),
        ("src/sub/gen/g", "HIT\n"),
        ("env/.gitignore", "*\n"),
        ("env/lib/a.py", "HIT\n"),
        ("z/.gitignore", "*\n!*.rs\n!*/\n"),
        ("z/a.rs", "HIT\n"),
        ("z/a.txt", "HIT\n"),
    ])
}

fn check(cwd: &Path, request: &Value, expected: &[&str], skipped: &Value) {
    let found = files().find_text(&text(cwd, request), &soon()).unwrap();
    let rows: Vec<_> = found.rows.iter().map(|row| row.path.as_str()).collect();
    assert_eq!(rows, expected, "{request}");
    let counted = serde_json::to_value(found.skipped).unwrap();
    for (kind, count) in skipped.as_object().unwrap() {
        assert_eq!(&counted[kind], count, "{kind} of {request}");
    }
    assert!(found.complete && found.errors.is_empty(), "{request}: {:?}", found.errors);
}

#[test]
fn ignore_files_hold() {
    let dir = repository();
    let found = ["src/a.log", "src/dist/a", "src/keep.log", "src/sub/gen/g", "z/a.rs"];
    // Hidden: .git, .gitignore, .env, .github, src/.ignore, env/.gitignore, z/.gitignore.
    check(dir.path(), &json!({}), &found, &json!({"hidden": 7, "ignored": 6}));
    let all = json!({"hidden": true, "ignore_files": false});
    let found = files().find_text(&text(dir.path(), &all), &soon()).unwrap();
    assert_eq!((found.rows.len(), found.skipped.ignored, found.skipped.hidden), (13, 0, 1));
}

#[test]
fn ignore_files_above_a_root_hold_below_it() {
    let dir = repository();
    let found = ["src/sub/gen/g"];
    check(dir.path(), &json!({"paths": ["src/sub"]}), &found, &json!({"ignored": 0}));
    std::fs::write(dir.path().join("src/sub/x.log"), "HIT\n").unwrap();
    std::fs::write(dir.path().join("src/sub/y.mine"), "HIT\n").unwrap();
    // `.ignore` lets a.log in, and nothing else.
    check(dir.path(), &json!({"paths": ["src/sub"]}), &found, &json!({"ignored": 2}));
}

#[test]
fn naming_is_consent() {
    let dir = repository();
    for (request, found) in [
        (json!({"paths": ["node_modules"]}), &["node_modules/left/x.js"][..]),
        (json!({"paths": ["node_modules/left"]}), &["node_modules/left/x.js"]),
        (json!({"paths": ["dist/out.js"]}), &["dist/out.js"]),
        (json!({"paths": [".env"]}), &[".env"]),
        (json!({"paths": [".github"]}), &[".github/ci.yml"]),
        (json!({"paths": ["env"]}), &["env/lib/a.py"]),
        (json!({"paths": ["env/lib"]}), &["env/lib/a.py"]),
        // Of files by which a directory chooses what is in it the rules hold.
        (json!({"paths": ["z"]}), &["z/a.rs"]),
        (json!({"globs": [".github/*"]}), &[".github/ci.yml"]),
        (json!({"globs": ["./.github/*.yml"]}), &[".github/ci.yml"]),
        (json!({"globs": ["{.github,dist}/*"]}), &[".github/ci.yml", "dist/out.js"]),
        (json!({"globs": ["dist/*.js"]}), &["dist/out.js"]),
        (json!({"globs": ["**/node_modules/left/x.js"]}), &["node_modules/left/x.js"]),
        (json!({"globs": ["env/lib/*"]}), &["env/lib/a.py"]),
        (json!({"globs": ["b.mine"]}), &["src/b.mine"]),
        (json!({"globs": ["*.mine"]}), &[]),
        (json!({"globs": [".*/*"]}), &[]),
        (json!({"globs": ["dis*/*"]}), &[]),
    ] {
        check(dir.path(), &request, found, &json!({}));
    }
}

#[test]
fn globs_choose() {
    let dir = tree(&[("a.rs", "HIT\n"), ("d/b.rs", "HIT\n"), ("d/c.txt", "HIT\n"), ("gen/x/y.rs", "HIT\n")]);
    for (globs, found) in [
        (json!(["*.rs"]), &["a.rs", "d/b.rs", "gen/x/y.rs"][..]),
        (json!(["!gen", "*.rs"]), &["a.rs", "d/b.rs"]),
        (json!(["*.rs", "!gen/**"]), &["a.rs", "d/b.rs"]),
        (json!(["!gen/", "!*.txt"]), &["a.rs", "d/b.rs"]),
        (json!(["d/"]), &["d/b.rs", "d/c.txt"]),
        (json!(["/*.rs"]), &["a.rs"]),
        (json!([format!("{}/d/*.rs", dir.path().display())]), &["d/b.rs"]),
        (json!(["d/*", "**/y.*"]), &["d/b.rs", "d/c.txt", "gen/x/y.rs"]),
    ] {
        check(dir.path(), &json!({"globs": globs}), found, &json!({}));
    }
    check(
        dir.path(),
        &json!({"globs": ["*.rs"], "paths": ["gen", "d"]}),
        &["gen/x/y.rs", "d/b.rs"],
        &json!({}),
    );
}

#[test]
fn links_are_counted_or_followed_once() {
    let dir = tree(&[("proj/x", "no\n"), ("store/items/a.sql", "HIT\n")]);
    let link = |target: &str, at: &str| symlink(target, dir.path().join(at)).unwrap();
    link("../store/items", "proj/items");
    link("../../proj", "store/items/back");
    link("../store/items/a.sql", "proj/one.sql");
    link("gone", "proj/dangling");
    link("loop", "proj/loop");
    let proj = |extra: Value| {
        let mut request = json!({"paths": ["proj"]});
        request.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        request
    };
    let counted = json!({"linked_files": 3, "linked_directories": 1});
    check(dir.path(), &proj(json!({})), &[], &counted);
    // The way back leads to where the walk began.
    let counted = json!({"linked_files": 2, "linked_directories": 1});
    let found = ["proj/items/a.sql", "proj/one.sql"];
    check(dir.path(), &proj(json!({"follow_links": true})), &found, &counted);
    // A link that is spelled out is entered.
    check(dir.path(), &json!({"globs": ["proj/items/*.sql"]}), &["proj/items/a.sql"], &json!({}));
    check(dir.path(), &json!({"globs": ["proj/one.sql"]}), &["proj/one.sql"], &json!({}));
    check(dir.path(), &json!({"paths": ["proj/items"]}), &["proj/items/a.sql"], &json!({}));
}

#[test]
fn roots_and_deny_rules_hold_in_a_walk() {
    let dir = tree(&[
        ("jail/a", "HIT\n"),
        ("jail/key.pem", "HIT\n"),
        ("jail/private/x", "HIT\n"),
        ("jail/.gitignore", "a\n"),
        ("out/b", "HIT\n"),
        ("out/d/c", "HIT\n"),
    ]);
    let link = |target: &str, at: &str| symlink(target, dir.path().join(at)).unwrap();
    link("../out/b", "jail/file_link");
    link("../out/d", "jail/dir_link");
    link("private", "jail/way");
    let jail = dir.path().canonicalize().unwrap().join("jail");
    for by_steps in [false, true] {
        let (roots, deny) = (vec![jail.clone()], vec!["*.pem".into(), "private".into()]);
        let config = FenceConfig { roots, deny, by_steps, ..FenceConfig::default() };
        check_jail(&Files::new(&config, Limits::default()).unwrap(), &jail);
    }
}

fn check_jail(files: &Files, jail: &Path) {
    for follow in [false, true] {
        let request = json!({"follow_links": follow, "hidden": true, "ignore_files": false});
        let found = files.find_text(&text(jail, &request), &soon()).unwrap();
        assert_eq!(lines(&found.rows), ["a:1"]);
        assert!(found.complete, "{:?}", found.errors);
    }
    let found = files.find_paths(&names(jail, &json!({"type": "any"})), &soon()).unwrap();
    let paths: Vec<_> = found.paths.iter().map(|path| path.path.as_str()).collect();
    assert_eq!(paths, ["dir_link", "file_link", "way"]);
    let error = files.find_text(&text(jail, &json!({"paths": ["../out"]})), &soon()).unwrap_err();
    assert_eq!(error.code, Code::OutsideRoots);
    let error = files.find_text(&text(jail, &json!({"paths": ["way"]})), &soon()).unwrap_err();
    assert_eq!(error.code, Code::DeniedByPolicy);
}

#[test]
fn rows_begin_with_the_root_as_given() {
    let dir = tree(&[("src/d/b", "HIT\n")]);
    for (root, row) in [
        ("src", "src/d/b"),
        ("./src", "src/d/b"),
        (".//./src//", "src/d/b"),
        (".", "src/d/b"),
        ("./", "src/d/b"),
        ("src/./d", "src/./d/b"),
        ("src/../src", "src/../src/d/b"),
        ("./src/d/b", "src/d/b"),
    ] {
        check(dir.path(), &json!({"paths": [root]}), &[row], &json!({}));
    }
}

#[test]
fn deep_trees_neither_overflow_nor_run_out_of_descriptors() {
    let dir = tempfile::tempdir().unwrap();
    // Deeper than a process may have open files, by names of one letter; the last levels pass what a path can hold.
    let mut at = rustix::fs::open(dir.path(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
    for depth in 0..2_100 {
        if depth == 1_500 {
            let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
            let file = rustix::fs::openat(&at, "f", flags, rustix::fs::Mode::from_raw_mode(0o644)).unwrap();
            rustix::io::write(&file, b"HIT\n").unwrap();
        }
        rustix::fs::mkdirat(&at, "d", rustix::fs::Mode::from_raw_mode(0o755)).unwrap();
        let below =
            rustix::fs::openat(&at, "d", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty()).unwrap();
        at = below;
    }
    let found = files().find_text(&text(dir.path(), &json!({})), &soon()).unwrap();
    assert_eq!(found.rows.len(), 1);
    assert_eq!((found.error_count, &found.errors[0].code, found.complete), (1, &Code::InvalidPath, false));
    // `TempDir` keeps a descriptor for each level.
    assert!(std::process::Command::new("rm").arg("-rf").arg(dir.path()).status().unwrap().success());
}

#[test]
fn what_is_no_file_is_counted() {
    let dir = tree(&[("a", "HIT\n"), ("elf", "\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0\0\0\0\0\0\0HIT")]);
    let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
    check(dir.path(), &json!({}), &["a"], &json!({"binary": 1, "special": 1}));
    let error = files().find_text(&text(dir.path(), &json!({"paths": ["s"]})), &soon()).unwrap_err();
    assert_eq!(error.code, Code::NotRegularFile);
    let found = files().find_text(&text(dir.path(), &json!({"paths": ["s", "a"]})), &soon()).unwrap();
    assert_eq!((found.rows.len(), found.error_count, found.complete), (1, 1, false));
}
