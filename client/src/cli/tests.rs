//! Commands from their arguments to what they print, in process, on files of a directory of the test's own.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use clap::{CommandFactory as _, Parser as _};
use filectx_client::render::Style;
use serde_json::Value;

use super::connection::Environment;
use super::output::Output;
use super::{Cli, Exit, execute};

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A directory with files, and commands that run in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new(files: &[(&str, &[u8])]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, content) in files {
            let path = place.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Exit, stdout and stderr; the directory's name is `$DIR`.
    fn run(&self, arguments: &[&str]) -> (Exit, String, String) {
        let (out, err) = (Sink::default(), Sink::default());
        let name = self.path().to_str().unwrap();
        let cwd = ["--cwd", name];
        let words = ["filectx"].into_iter().chain(arguments[..1].iter().copied()).chain(cwd);
        let cli = Cli::try_parse_from(words.chain(arguments[1..].iter().copied())).unwrap();
        let output = Output::to(Box::new(out.clone()), Box::new(err.clone()), Style::default());
        let exit = execute(cli, &Environment::default(), output);
        let text =
            |sink: Sink| String::from_utf8(sink.0.lock().unwrap().clone()).unwrap().replace(name, "$DIR");
        (exit, text(out), text(err))
    }

    #[track_caller]
    fn check(&self, arguments: &[&str], exit: Exit, out: &str, err: &str) {
        let got = self.run(arguments);
        assert_eq!(got, (exit, out.to_owned(), err.to_owned()), "{arguments:?}\n{}\n{}", got.1, got.2);
    }
}

#[test]
fn the_arguments_are_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn read_shows_lines_and_says_what_it_could_not_read() {
    let place =
        Place::new(&[("a", b"one\ntwo\nthree\n"), ("b:2", b"colon\n"), ("bin", b"\x7fELF\0\0\x01\0")]);
    place.check(&["read", "a"], Exit::Done, "     1\tone\n     2\ttwo\n     3\tthree\n", "");
    place.check(&["read", "a:2-"], Exit::Done, "     2\ttwo\n     3\tthree\n", "");
    place.check(&["read", "a:2:17"], Exit::Done, "     2\ttwo\n", "");
    place.check(&["read", "b:2"], Exit::Done, "     1\tcolon\n", "");
    place.check(
        &["read", "gone:5", "a:3", "."],
        Exit::Refused,
        "     3\tthree\n",
        "$DIR/gone: there is no such file (not_found)\n\
         $DIR/.: this is a directory; list-directory shows what is in it (is_directory)\n",
    );
    let (exit, out, _) = place.run(&["read", "bin"]);
    assert_eq!(exit, Exit::Done);
    assert!(out.starts_with("[binary: application/"), "{out}");
    let (exit, out, err) = place.run(&["read", "--raw", "gone"]);
    assert_eq!((exit, out.as_str()), (Exit::Refused, ""));
    assert!(err.contains("(not_found)"), "{err}");
    let (exit, _, err) = place.run(&["read", "--raw", "a", "bin"]);
    assert_eq!(exit, Exit::Failed);
    assert!(err.contains("(usage)"), "{err}");
}

#[test]
fn a_stopped_read_goes_on_with_the_command_that_it_names() {
    let text: String = (1..=100).map(|line| format!("line {line}\n")).collect();
    let long = format!("{}\nlast\n", "gr\u{f6}\u{df}er ".repeat(130));
    let legacy: Vec<u8> = long.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let place = Place::new(&[("a b", text.as_bytes()), ("long", long.as_bytes()), ("legacy", &legacy)]);
    for (name, content) in [("a b", text.as_str()), ("long", &long), ("legacy", &long)] {
        let (mut arguments, mut shown) =
            (vec!["read".to_owned(), "--max-chars".into(), "200".into(), name.into()], String::new());
        let mut rounds = 0;
        loop {
            let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let (_, out, _) = place.run(&words);
            let (notes, lines): (Vec<&str>, Vec<&str>) = out.lines().partition(|line| line.starts_with('['));
            for line in lines {
                let line = line.split_once('\t').map_or(line, |(_, line)| line);
                shown.push_str(line);
            }
            let Some(stop) = notes.iter().find(|note| note.contains("stopped by")) else { break };
            let command =
                stop.split_once("filectx read --cwd '$DIR' ").or(stop.split_once("filectx read --cwd $DIR "));
            let command = command.unwrap_or_else(|| panic!("{stop}")).1;
            let command = command.split(['[', ']', ';']).next().unwrap();
            arguments = std::iter::once("read").chain(command.split(' ')).map(Into::into).collect();
            if name == "a b" {
                // The shell would take the quotes away.
                let at = arguments.len() - 2;
                let path = arguments.split_off(at).join(" ");
                arguments.push(path.trim_matches('\'').to_owned());
            }
            rounds += 1;
            assert!(rounds < 50, "{stop}");
        }
        assert!(rounds > 3, "{name}");
        assert_eq!(shown, content.replace('\n', ""), "{name}");
    }
}

#[test]
fn raw_gives_the_bytes_page_by_page() {
    let dir = Place::new(&[]);
    // More than two pages, and nothing that repeats with them.
    let bytes: Vec<u8> = (0..9_000_001_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(dir.path().join("big"), &bytes).unwrap();
    let (out, err) = (Sink::default(), Sink::default());
    let cli =
        Cli::try_parse_from(["filectx", "read", "--raw", dir.path().join("big").to_str().unwrap()]).unwrap();
    let output = Output::to(Box::new(out.clone()), Box::new(err), Style::default());
    assert_eq!(execute(cli, &Environment::default(), output), Exit::Done);
    assert!(*out.0.lock().unwrap() == bytes);
    let place = Place::new(&[("empty", b""), ("crlf", b"\xef\xbb\xbfa\r\n")]);
    place.check(&["read", "--raw", "empty"], Exit::Done, "", "");
    place.check(&["read", "--raw", "crlf"], Exit::Done, "\u{feff}a\r\n", "");
    place.check(&["read", "--raw", "--byte-range", "3:2", "crlf"], Exit::Done, "a\r", "");
    place.check(&["read", "--raw", "--byte-range", "99", "crlf"], Exit::Done, "", "");
}

#[test]
fn json_is_the_contracts_response() {
    let place = Place::new(&[("a", b"one\ntwo\n"), ("bin", b"\0\x01\x02\x03")]);
    let json = |arguments: &[&str]| {
        let (exit, out, _) = place.run(arguments);
        (exit, serde_json::from_str::<Value>(&out).unwrap())
    };
    let (exit, read) = json(&["read", "--json", "x:1", "a:2", "bin"]);
    assert_eq!(exit, Exit::Refused);
    assert_eq!(read["file_contexts"][0]["request_index"], 1);
    assert_eq!(read["file_contexts"][0]["text_content"], "two\n");
    assert_eq!(read["file_contexts"][1]["binary_content"], "AAECAw==");
    assert_eq!(read["failed_files"][0]["error"]["code"], "not_found");
    assert_eq!(json(&["ls", "--json"]).1["total"], 2);
    assert_eq!(json(&["find", "--json", "two"]).1["rows"][0]["line"], 2);
    assert_eq!(json(&["paths", "--json", "bin"]).1["paths"][0]["path"], "bin");
    let (exit, refused) = json(&["edit", "--json", "a", "--old", "gone", "--new", "x"]);
    assert_eq!((exit, &refused["code"]), (Exit::Refused, &Value::from("no_match")));
    assert_eq!(json(&["edit", "--json", "a", "--old", "two", "--new", "2"]).1["line_count"], 2);
    assert_eq!(json(&["rm", "--json", "a"]).1["deleted"], true);
}

#[test]
fn ls_lists_and_says_where_it_was_cut() {
    let place = Place::new(&[("a", b"1"), ("d/x", b""), (".h", b"")]);
    let (exit, out, err) = place.run(&["ls", "--no-hidden"]);
    assert_eq!((exit, err.as_str()), (Exit::Done, ""));
    let names: Vec<_> = out.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
    assert_eq!(names, ["a", "d/"]);
    let (_, out, err) = place.run(&["ls", "--max-entries", "1"]);
    assert!(out.ends_with(".h\n"), "{out}");
    assert!(err.starts_with("cut by max_entries at 1 of 3 entries; go on: filectx "), "{err}");
    let (exit, _, err) = place.run(&["ls", "gone"]);
    assert_eq!(exit, Exit::Refused);
    assert!(err.ends_with("(not_found)\n"), "{err}");
}

#[test]
fn find_looks_like_grep() {
    let place = Place::new(&[("a", b"x\nneedle\ny\n"), ("d/b", b"needle NEEDLE\n"), (".h", b"needle\n")]);
    place.check(
        &["find", "needle"],
        Exit::Done,
        "a:2: needle\nd/b:1: needle NEEDLE\n",
        "skipped: 1 hidden\n",
    );
    place.check(&["find", "-C", "1", "needle", "a"], Exit::Done, "a-1- x\na:2: needle\na-3- y\n", "");
    place.check(&["find", "NEEDLE", "d"], Exit::Done, "d/b:1: needle NEEDLE\n", "");
    place.check(&["find", "nowhere", "d"], Exit::Refused, "", "");
    for dash in [&["-F", "--", "->", "d"][..], &["-F", "-e", "->", "d"], &["-F", "-e->", "d"]] {
        place.check(&[&["find"], dash].concat(), Exit::Refused, "", "");
    }
    place.check(&["find", "-e", "needle", "a", "d"], Exit::Done, "a:2: needle\nd/b:1: needle NEEDLE\n", "");
    let (exit, out, err) = place.run(&["find", "-m1", "needle", "--hidden"]);
    assert_eq!((exit, out.as_str()), (Exit::Done, ".h:1: needle\n"));
    assert!(err.starts_with("cut by max_results, more was found; go on: filectx "), "{err}");
    // A search that failed never looks like one that found nothing.
    for (arguments, code) in [(["find", "a(", "d"], "invalid_pattern"), (["find", "x", "gone"], "not_found")]
    {
        let (exit, _, err) = place.run(&arguments);
        assert_eq!(exit, Exit::Failed, "{arguments:?}");
        assert!(err.ends_with(&format!("({code})\n")), "{err}");
    }
    let (exit, out, err) = place.run(&["find", "needle", "gone", "d"]);
    assert_eq!((exit, out.as_str()), (Exit::Done, "d/b:1: needle NEEDLE\n"));
    assert!(err.contains("(not_found)"), "{err}");
}

#[test]
fn paths_are_one_a_line() {
    let place = Place::new(&[("a.rs", b""), ("d/b.rs", b""), ("d/c", b"")]);
    place.check(&["paths", "*.rs"], Exit::Done, "a.rs\nd/b.rs\n", "");
    place.check(&["paths", "-0", "*.rs"], Exit::Done, "a.rs\0d/b.rs\0", "");
    place.check(&["paths", "-t", "d"], Exit::Done, "d\n", "");
    place.check(&["paths", "gone"], Exit::Refused, "", "");
}

#[test]
fn edit_prints_its_diff() {
    let place = Place::new(&[("a", b"one\ntwo\none\n")]);
    let diff = "--- a$DIR/a\n+++ b$DIR/a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n one\n";
    place.check(
        &["edit", "a", "--old", "two", "--new", "2", "--dry-run"],
        Exit::Done,
        diff,
        "a dry run: nothing was changed\n",
    );
    place.check(&["edit", "a", "--old", "two", "--new", "2"], Exit::Done, diff, "");
    assert_eq!(std::fs::read(place.path().join("a")).unwrap(), b"one\n2\none\n");
    let (exit, out, err) = place.run(&["edit", "a", "--old", "one", "--new", "1"]);
    assert_eq!((exit, out.as_str()), (Exit::Refused, ""));
    assert!(err.contains("(ambiguous_match)\nline 1:\n") && err.contains("\nline 3:\n"), "{err}");
    let (exit, ..) = place.run(&["edit", "a", "--old", "one", "--new", "1", "--line-hint", "3"]);
    assert_eq!(exit, Exit::Done);
    assert_eq!(std::fs::read(place.path().join("a")).unwrap(), b"one\n2\n1\n");
    let (exit, _, err) = place.run(&["edit", "a", "--old", "", "--new", "1"]);
    assert_eq!(exit, Exit::Failed);
    assert!(err.ends_with("(invalid_request)\n"), "{err}");
}

#[test]
fn rm_refuses_what_it_cannot_delete_and_goes_on() {
    let place = Place::new(&[("a", b""), ("d/b", b"")]);
    place.check(
        &["rm", "gone", "d", "a"],
        Exit::Refused,
        "",
        "$DIR/gone: there is no such file (not_found)\n\
         $DIR/d: this is a directory; list-directory shows what is in it (is_directory)\n",
    );
    assert!(!place.path().join("a").exists());
}

#[test]
fn who_answers_is_said() {
    let (out, err) = (Sink::default(), Sink::default());
    let cli = Cli::try_parse_from(["filectx", "info"]).unwrap();
    let output = Output::to(Box::new(out.clone()), Box::new(err), Style::default());
    assert_eq!(execute(cli, &Environment::default(), output), Exit::Done);
    let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("files of this machine are read in process"), "{text}");
    assert!(text.contains("max_file_bytes           1,000,000 bytes\n"), "{text}");
}

#[test]
fn a_reader_who_has_enough_ends_the_command_quietly() {
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let place = Place::new(&[("a", b"one\n")]);
    let err = Sink::default();
    let path = place.path().join("a");
    let cli = Cli::try_parse_from(["filectx", "read", path.to_str().unwrap()]).unwrap();
    let output = Output::to(Box::new(Closed), Box::new(err.clone()), Style::default());
    assert_eq!(execute(cli, &Environment::default(), output), Exit::Done);
    assert!(err.0.lock().unwrap().is_empty());
}
