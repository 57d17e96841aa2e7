//! The commands that change files, as a script meets them, in process and against a service: what arrives in the file
//! is what was sent, and what is refused says why.
#![allow(clippy::panic, reason = "a test fails by a panic")]

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use filectx_client::{Client, Error, Target, Token};
use filectx_openapi::{Code, WriteFileRequest};
use filectx_tests::programs::{Service, program};
use serde_json::json;

struct Place {
    dir: tempfile::TempDir,
    service: Option<Service>,
}

impl Place {
    /// One where the command works in process, and one where it asks a service.
    fn both() -> [Self; 2] {
        [None, Some(Service::start(&["--limit", "max_write_bytes=4000000"]))]
            .map(|service| Self { dir: tempfile::tempdir().expect("a directory"), service })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        std::fs::write(self.path(name), content).expect("a file");
        self.path(name).into_os_string().into_string().expect("a plain name")
    }

    fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).expect("the file")
    }

    fn run(&self, args: &[&str], stdin: &[u8]) -> Output {
        let mut command = Command::new(program("filectx"));
        for name in ["FILECTX_URL", "FILECTX_TOKEN_FILE", "FILECTX_SOCKET"] {
            command.env_remove(name);
        }
        if let Some(service) = &self.service {
            command.env("FILECTX_URL", service.url()).env("FILECTX_TOKEN_FILE", &service.ready.token_file);
        }
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("filectx runs");
        let mut pipe = child.stdin.take().expect("stdin is piped");
        std::thread::scope(|scope| {
            // Whoever is refused early need not read all of it.
            scope.spawn(move || pipe.write_all(stdin));
            child.wait_with_output().expect("it ends")
        })
    }

    /// Runs what has to succeed; what it printed.
    fn done(&self, args: &[&str], stdin: &[u8]) -> String {
        let output = self.run(args, stdin);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs what has to be refused, with this status and code; nothing is left beside what was there.
    fn refused(&self, args: &[&str], stdin: &[u8], (status, code): (i32, &str)) {
        let before = names(self.dir.path());
        let output = self.run(args, stdin);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{args:?}: {said}");
        assert!(said.contains(&format!("({code})")), "{args:?}: {said}");
        assert_eq!(names(self.dir.path()), before, "{args:?}");
    }
}

fn names(dir: &std::path::Path) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(dir).expect("the directory").flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    names
}

/// What shells, templates, formats and markup would make something of.
const LITERAL: &str =
    "$& $1 $$ $` $' ${x} $(date) \\1 \\n \\\\ %s %n {0} {{x}} &lt; &amp; 'q' \"q\" `id` * ~ !! \t";

#[test]
fn a_text_reaches_the_file_as_it_was_sent() {
    for place in Place::both() {
        let file = place.put("f", "a\tSLOT\tb\n\tnext  \n");
        place.done(&["edit", &file, "--old", "SLOT", "--new", LITERAL], b"");
        let expected = format!("a\t{LITERAL}\tb\n\tnext  \n");
        assert_eq!(place.get("f"), expected.as_bytes());
        // Back, by the other ways in: files, and JSON on stdin.
        let (old, new) = (place.put("old", LITERAL), place.put("new", "SLOT"));
        place.done(&["edit", &file, "--old-file", &old, "--new-file", &new], b"");
        assert_eq!(place.get("f"), b"a\tSLOT\tb\n\tnext  \n");
        let edits =
            json!([{"old_text": "SLOT", "new_text": LITERAL}, {"old_text": "next", "new_text": "last"}]);
        place.done(&["edit", &file], edits.to_string().as_bytes());
        assert_eq!(place.get("f"), expected.replace("next", "last").as_bytes());
    }
}

#[test]
fn every_byte_is_written_as_it_comes() {
    let bytes: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    for place in Place::both() {
        let file = place.put("f", "old");
        let new = place.path("new/deep/f").into_os_string().into_string().expect("a plain name");
        for path in [&file, &new] {
            place.done(&["write", path], &bytes);
        }
        assert!(place.get("f") == bytes && place.get("new/deep/f") == bytes);
        place.done(&["write", &file], b"");
        assert_eq!(place.get("f"), b"");
        place.done(&["rm", &file], b"");
        assert!(!place.path("f").exists());
    }
}

#[test]
fn line_ends_of_the_file_stay() {
    for place in Place::both() {
        let file = place.put("f", "int f()\r\n{\r\n\treturn 1;\r\n}\r\n");
        place.done(&["edit", &file, "--old", "{\n\treturn 1;\n}", "--new", "{\n\tg();\n\treturn 2;\n}"], b"");
        assert_eq!(place.get("f"), b"int f()\r\n{\r\n\tg();\r\n\treturn 2;\r\n}\r\n");
        let file = place.put("f", "int f()\n{\n}\n");
        place.done(&["edit", &file, "--old", "f()\r\n{", "--new", "g()\r\n{"], b"");
        assert_eq!(place.get("f"), b"int g()\n{\n}\n");
    }
}

#[test]
fn refusals_say_why_and_leave_everything() {
    for place in Place::both() {
        let file = place.put("f", "\techo hi\nthe list in\u{a0}use\nx\nx\n");
        let before = std::fs::metadata(&file).expect("the file");
        for (old, new, code) in [
            ("        echo hi", "x", "no_match"),
            ("in use", "x", "no_match"),
            ("x", "y", "ambiguous_match"),
            ("echo", "echo", "no_change"),
        ] {
            place.refused(&["edit", &file, "--old", old, "--new", new], b"", (1, code));
        }
        place.refused(&["write", &file, "--create-only"], b"x", (1, "already_exists"));
        place.refused(&["write", &file, "--expected-revision", "hash:00"], b"x", (1, "revision_mismatch"));
        place.refused(&["write", &format!("{file}/below")], b"x", (1, "not_a_directory"));
        place.refused(
            &["write", place.dir.path().to_str().expect("a plain name")],
            b"x",
            (1, "is_directory"),
        );
        let after = std::fs::metadata(&file).expect("the file");
        let of = |meta: &std::fs::Metadata| (meta.ino(), meta.mtime_nsec(), meta.ctime_nsec(), meta.len());
        assert_eq!(of(&before), of(&after));
        // What is no edit is refused as a request, whether the file is there or not.
        for path in [&file, &format!("{file}-gone")] {
            let output = place.run(&["edit", path, "--old", "", "--new", "x"], b"");
            assert_eq!(output.status.code(), Some(2));
            assert!(String::from_utf8_lossy(&output.stderr).contains("write-file"), "{output:?}");
        }
    }
}

#[test]
fn the_difference_of_look_alikes_is_told_by_code_points() {
    for place in Place::both() {
        let file = place.put("f", "the list in\u{a0}use\n");
        let output = place.run(&["edit", &file, "--old", "list in use", "--new", "x"], b"");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("U+00A0") && said.contains("U+0020") && said.contains("column 12"), "{said}");
    }
}

fn client_of(service: &Service) -> Client {
    let token = Token::new(&service.token).expect("a token");
    let client = Client::builder(Target::from_url(service.url()).expect("a URL")).token(token).build();
    client.expect("a client")
}

fn write(path: &std::path::Path, text: &str) -> WriteFileRequest {
    serde_json::from_value(json!({"path": path, "text_content": text})).expect("a request")
}

#[tokio::test]
async fn megabytes_are_taken_and_one_byte_over_the_limit_is_refused() {
    let [_, place] = Place::both();
    let client = client_of(place.service.as_ref().expect("it has one"));
    let (file, text) = (place.path("f"), "\u{1}\"0123456789ab\\\n".repeat(250_000));
    client.write(&write(&file, &text)).await.expect("four million bytes are within the limit");
    assert!(place.get("f") == text.as_bytes());
    let refused = client.write(&write(&file, &(text.clone() + "!"))).await;
    let Err(Error::Refused(problem)) = refused else { panic!("{refused:?}") };
    assert_eq!((problem.code, problem.data.limit), (Code::RequestTooLarge, Some(4_000_000)));
    let path = file.to_str().expect("a plain name");
    place.refused(&["write", path], (text.clone() + "!").as_bytes(), (2, "request_too_large"));
    assert!(place.get("f") == text.as_bytes());
}

#[tokio::test]
async fn a_new_file_follows_the_services_umask() {
    for (umask, mode) in [("002", 0o664), ("077", 0o600), ("022", 0o644)] {
        let dir = tempfile::tempdir().expect("a directory");
        let service = Service::start_by(&["sh", "-c", &format!("umask {umask}; exec \"$0\" \"$@\"")], &[]);
        let client = client_of(&service);
        let (path, other) = (dir.path().join("made/f"), dir.path().join("made/program"));
        client.write(&write(&path, "x")).await.expect("it is written");
        let mut request = write(&other, "x");
        request.mode = Some("0775".into());
        client.write(&request).await.expect("it is written");
        let mode_of = |path| std::fs::metadata(path).expect("the file").permissions().mode() & 0o7777;
        assert_eq!((mode_of(&path), mode_of(&other)), (mode, 0o775), "{umask}");
        let parents = mode_of(&dir.path().join("made"));
        assert_eq!(parents, 0o777 & !u32::from_str_radix(umask, 8).expect("octal"), "{umask}");
    }
}
