//! Edits of files: what they do, tell and refuse; the diff against `patch`.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use filectx_openapi::{Code, EditFileResponse, WarningCode};
use proptest::prelude::*;

use crate::FenceConfig;
use crate::bytes::diff::LONGEST;
use crate::disk::identity::hash_revision;
use crate::tests::{World, patient, required};

fn code(answer: Result<EditFileResponse, filectx_openapi::ItemError>) -> Code {
    answer.unwrap_err().code
}

#[test]
fn an_edit_tells_what_it_did() {
    let world = World::new();
    world.put("a.txt", "one\ntwo\nthree\n");
    let answer = world.edit("a.txt", "two", "2").unwrap();
    assert_eq!(world.get("a.txt"), b"one\n2\nthree\n");
    assert_eq!(answer.path, world.path("a.txt").to_str().unwrap());
    assert_eq!(answer.previous_revision, hash_revision(b"one\ntwo\nthree\n"));
    assert_eq!(answer.revision, hash_revision(b"one\n2\nthree\n"));
    assert_eq!((answer.line_count, answer.atomic, answer.warnings.len()), (3, true, 0));
    let name = &answer.path[1..];
    let expected = format!("--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    assert_eq!(answer.diff, expected);
    assert_eq!(world.names("."), ["a.txt"]);
}

#[test]
fn a_dry_run_tells_the_same_and_does_nothing() {
    let world = World::new();
    world.put("a.txt", "one\ntwo\n");
    let before = std::fs::metadata(world.path("a.txt")).unwrap();
    let mut request = world.edit_request("a.txt", &[("two", "2")]);
    request.dry_run = true;
    let dry = world.files.edit(&request, &patient()).unwrap();
    let after = std::fs::metadata(world.path("a.txt")).unwrap();
    assert_eq!(
        (before.ino(), before.mtime_nsec(), before.ctime_nsec()),
        (after.ino(), after.mtime_nsec(), after.ctime_nsec())
    );
    request.dry_run = false;
    assert_eq!(world.files.edit(&request, &patient()).unwrap(), dry);
}

#[test]
fn revisions_guard() {
    let world = World::new();
    world.put("a.txt", "v1\n");
    let mut request = world.edit_request("a.txt", &[("v1", "v2")]);
    request.expected_revision = Some(hash_revision(b"v1\n"));
    let answer = world.files.edit(&request, &patient()).unwrap();
    let error = world.files.edit(&request, &patient()).unwrap_err();
    assert_eq!((error.code, error.data.revision), (Code::RevisionMismatch, Some(answer.revision)));
    // A change of the same length that kept the time.
    let mut request = world.edit_request("a.txt", &[("v", "V")]);
    request.expected_revision = Some(hash_revision(b"v2\n"));
    let before = std::fs::metadata(world.path("a.txt")).unwrap().modified().unwrap();
    world.put("a.txt", "v3\n");
    std::fs::File::options().write(true).open(world.path("a.txt")).unwrap().set_modified(before).unwrap();
    assert_eq!(code(world.files.edit(&request, &patient())), Code::RevisionMismatch);
}

#[test]
fn revisions_of_large_files_are_those_of_the_disk() {
    let world = World::new();
    world.put("big", "x".repeat(9 << 20) + "\nend\n");
    let mut request = world.edit_request("big", &[("end", "END")]);
    request.dry_run = true;
    let foreseen = world.files.edit(&request, &patient()).unwrap().revision;
    request.dry_run = false;
    let answer = world.files.edit(&request, &patient()).unwrap();
    assert_ne!(answer.revision, foreseen);
    let mut again = world.edit_request("big", &[("END", "fin")]);
    again.expected_revision = Some(answer.revision.clone());
    assert_eq!(world.files.edit(&again, &patient()).unwrap().previous_revision, answer.revision);
}

#[test]
fn refusals() {
    let world = World::new();
    world.put("d/x", "x").put("a", "a\nb\n").put("bin", b"\x01\x02\x03\x04\xff\0\0").put("ro", "a\n");
    world.put("p.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    std::fs::set_permissions(world.path("ro"), std::fs::Permissions::from_mode(0o444)).unwrap();
    symlink("loop", world.path("loop")).unwrap();
    Command::new("mkfifo").arg(world.path("pipe")).status().unwrap();
    for (path, expected) in [
        ("gone", Code::NotFound),
        ("gone/x", Code::NotFound),
        ("d", Code::IsDirectory),
        ("d/", Code::IsDirectory),
        ("a/", Code::NotADirectory),
        ("a/x", Code::NotADirectory),
        ("loop", Code::LinkLoop),
        ("pipe", Code::NotRegularFile),
        ("bin", Code::NotText),
        ("p.png", Code::NotText),
        ("ro", Code::PermissionDenied),
        ("", Code::InvalidPath),
        ("/", Code::IsDirectory),
    ] {
        assert_eq!(code(world.edit(path, "a", "b")), expected, "{path}");
    }
    let error = world.edit("a/x", "a", "b").unwrap_err();
    assert!(error.data.component.unwrap().ends_with("/a"));
    let error = world.edit("gone", "", "b").unwrap_err();
    assert_eq!(
        (error.code, error.data.pointer.as_deref()),
        (Code::InvalidRequest, Some("/edits/0/old_text"))
    );
    let error = world.files.edit(&world.edit_request("a", &[]), &patient()).unwrap_err();
    assert_eq!((error.code, error.data.pointer.as_deref()), (Code::InvalidRequest, Some("/edits")));
    assert_eq!(world.get("ro"), b"a\n");
}

#[test]
fn fences_come_before_existence() {
    [false, true].into_iter().for_each(check_fences);
}

fn check_fences(by_steps: bool) {
    let world = World::fenced(|root| {
        std::fs::create_dir_all(root.join("jail/private")).unwrap();
        let (roots, deny) = (vec![root.join("jail")], vec!["private".into()]);
        FenceConfig { roots, deny, by_steps, ..FenceConfig::default() }
    });
    world.put("out.txt", "a\n").put("jail/in.txt", "a\n").put("jail/private/x", "a\n");
    symlink("../out.txt", world.path("jail/leaves")).unwrap();
    symlink("private/x", world.path("jail/way")).unwrap();
    symlink("in.txt", world.path("jail/stays")).unwrap();
    for (path, expected) in [
        ("out.txt", Code::OutsideRoots),
        ("none.txt", Code::OutsideRoots),
        ("jail/../out.txt", Code::OutsideRoots),
        ("jail/leaves", Code::OutsideRoots),
        ("jail/private/x", Code::DeniedByPolicy),
        ("jail/private/none", Code::DeniedByPolicy),
        ("jail/way", Code::DeniedByPolicy),
        ("jail", Code::IsDirectory),
    ] {
        assert_eq!(code(world.edit(path, "a", "b")), expected, "{path}");
    }
    world.edit("jail/stays", "a", "b").unwrap();
    assert_eq!(world.get("jail/in.txt"), b"b\n");
    let closed = World::fenced(|_| FenceConfig { read_only: true, ..FenceConfig::default() });
    closed.put("a", "a\n");
    assert_eq!(code(closed.edit("a", "a", "b")), Code::ReadOnly);
    assert_eq!(code(closed.edit("none", "a", "b")), Code::ReadOnly);
}

#[test]
fn a_file_over_the_limit_is_refused() {
    let limits = filectx_openapi::Limits { max_write_bytes: 100, ..Default::default() };
    let world = World::with(|_| FenceConfig::default(), limits);
    world.put("big", "x".repeat(101)).put("grows", "x");
    let error = world.edit("big", "y", "z").unwrap_err();
    assert_eq!((error.code, error.data.size_bytes, error.data.limit), (Code::TooLarge, Some(101), Some(100)));
    assert_eq!(code(world.edit("grows", "x", &"y".repeat(101))), Code::TooLarge);
    assert_eq!(world.get("grows"), b"x");
}

#[test]
fn a_hundred_edits_at_once_all_survive() {
    let world = World::new();
    let slots: String = (1..=100).map(|n| format!("slot {n:03}\n")).collect();
    world.put("d/slots.txt", slots);
    symlink("d/slots.txt", world.path("alias")).unwrap();
    symlink("d", world.path("ld")).unwrap();
    std::thread::scope(|scope| {
        for n in 1..=100 {
            let world = &world;
            scope.spawn(move || {
                let path = ["d/slots.txt", "alias", "ld/slots.txt", "d/../ld/slots.txt"][n % 4];
                world.edit(path, &format!("slot {n:03}"), &format!("done {n:03}")).unwrap();
            });
        }
    });
    let done: String = (1..=100).map(|n| format!("done {n:03}\n")).collect();
    assert_eq!(String::from_utf8(world.get("d/slots.txt")).unwrap(), done);
    assert_eq!(world.names("d"), ["slots.txt"]);
    assert!(std::fs::symlink_metadata(world.path("alias")).unwrap().is_symlink());
}

#[test]
fn the_report_on_a_large_file_is_bounded_in_time() {
    const LARGE: usize = 64 << 20;
    let world = World::new();
    let wanted = "let limit = compute(\"input\", 30001);";
    for (what, line) in [
        ("lines of a source", "    let limit = compute(\"input\", 30000);\n"),
        ("one long line", "let limit = compute(1); "),
        ("blanks", " "),
        ("other letters", "l\u{e9}t \u{201c}limit\u{201d} = c\u{f6}mpute(\u{a0}1);\n"),
    ] {
        world.put("large", line.repeat(LARGE / line.len()));
        let started = Instant::now();
        let error = world.edit("large", wanted, "x").unwrap_err();
        assert_eq!(error.code, Code::NoMatch, "{what}: {error:?}");
        // Without optimisation; with it, it is a fraction of a second.
        assert!(started.elapsed() < Duration::from_secs(30), "{what}: {:?}", started.elapsed());
        for deadline in [20, 200, 600] {
            let deadline = Duration::from_millis(deadline);
            let (hurried, started) = (crate::Cancel::after(deadline), Instant::now());
            let answer = world.files.edit(&world.edit_request("large", &[(wanted, "x")]), &hurried);
            assert_eq!(answer.unwrap_err().code, Code::DeadlineExceeded, "{what}");
            let late = started.elapsed().saturating_sub(deadline);
            assert!(late < Duration::from_secs(3), "{what}: {late:?} after {deadline:?}");
        }
    }
}

#[test]
fn a_caller_who_is_gone_changes_nothing() {
    let world = World::new();
    world.put("a", "one\n");
    let gone = patient();
    gone.cancel();
    assert_eq!(
        code(world.files.edit(&world.edit_request("a", &[("one", "two")]), &gone)),
        Code::DeadlineExceeded
    );
    assert_eq!(world.get("a"), b"one\n");
}

#[test]
fn a_long_diff_is_cut_before_a_hunk() {
    let world = World::new();
    let rows: String = (0..900).map(|n| format!("key\nrow {n} of a table that stays\n2\n3\n4\n5\n6\n7 another row\n8 and one more that is there\n")).collect();
    world.put("a", &rows);
    let mut request = world.edit_request("a", &[("key", "KEY")]);
    request.edits[0].replace_all = true;
    let answer = world.files.edit(&request, &patient()).unwrap();
    assert_eq!(answer.edits[0].replacements, 900);
    assert_eq!(answer.warnings.len(), 1);
    assert_eq!(answer.warnings[0].code, WarningCode::DiffCut);
    assert!(answer.diff.len() <= LONGEST && answer.diff.len() > LONGEST - 1000, "{}", answer.diff.len());
    assert!(answer.diff.ends_with('\n'));
}

#[test]
fn a_hunk_that_is_too_long_alone_is_cut_at_a_line() {
    let world = World::new();
    let old = "line of the old text\n".repeat(5000);
    world.put("a", &old);
    let answer = world.edit("a", &old, "short\n").unwrap();
    assert_eq!(answer.warnings[0].code, WarningCode::DiffCut);
    assert!(answer.diff.len() <= LONGEST && answer.diff.len() > LONGEST - 100, "{}", answer.diff.len());
    assert!(answer.diff.ends_with("-line of the old text\n"));
    // One line that is too long: there is nothing to cut at.
    world.put("b", "x".repeat(100_000) + "y");
    let answer = world.edit("b", "y", "z").unwrap();
    assert_eq!((answer.warnings[0].code.clone(), answer.diff.lines().count()), (WarningCode::DiffCut, 2));
}

/// What `patch` makes of `old` with `diff`.
fn patched(old: &[u8], diff: &str) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let (file, rejected) = (directory.path().join("file"), directory.path().join("rejected"));
    std::fs::write(&file, old).unwrap();
    let mut patch = Command::new("patch")
        .args(["--binary", "--force", "--quiet", "--no-backup-if-mismatch", "--reject-file"])
        .args([&rejected, &file])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    std::io::Write::write_all(&mut patch.stdin.take().unwrap(), diff.as_bytes()).unwrap();
    assert!(
        patch.wait().unwrap().success(),
        "patch refuses {diff:?} on {:?}",
        old.escape_ascii().to_string()
    );
    // It removes what it made empty.
    Some(std::fs::read(file).unwrap_or_default())
}

fn check_diff(content: &str, edits: &[(&str, &str)]) {
    let world = World::new();
    world.put("a file", content);
    let mut request = world.edit_request("a file", edits);
    request.edits.iter_mut().for_each(|edit| edit.replace_all = true);
    let Ok(answer) = world.files.edit(&request, &patient()) else { return };
    if let Some(patched) = patched(content.as_bytes(), &answer.diff) {
        assert_eq!(patched, world.get("a file"), "{}", answer.diff);
    } else if required("patch") {
        panic!("there is no patch");
    }
}

#[test]
fn patch_takes_the_diff() {
    let many: String = (1..60).map(|n| format!("line {n}\r\n")).collect();
    for (content, edits) in [
        ("one\ntwo\nthree\n", &[("two", "2")][..]),
        ("one\ntwo", &[("two", "2\n")]),
        ("one\ntwo\n", &[("two\n", "")]),
        ("only", &[("only", "")]),
        ("a\nb", &[("a\n", "")]),
        ("\u{feff}one\ntwo\n", &[("one", "1")]),
        (&many, &[("line 5\r", "LINE 5\r"), ("line 30", "x\r\ny"), ("line 33\r\nline 34\r\n", "")]),
        ("a\rb\nc\u{2028}d\n", &[("d", "e")]),
        ("x\ny\nz\n", &[("x\n", "x\ny\n"), ("z\n", "z")]),
    ] {
        check_diff(content, edits);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn patch_makes_the_new_file_of_the_old(
        content in "([a-d]|[a-d]\\n|\\n|\\r\\n){0,80}",
        old in "[a-d]\\n?[a-d]?",
        new in "([x-z]|\\n){0,4}",
        second in "[a-dx-z]",
    ) {
        check_diff(&content, &[(&old, &new), (&second, "Q\n")]);
        check_diff(&content, &[(&old, &new)]);
    }
}
