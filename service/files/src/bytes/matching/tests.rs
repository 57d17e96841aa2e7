//! Golden edits: a table of texts, edits and what comes of them.

use std::time::Duration;

use encoding_rs::{SHIFT_JIS, WINDOWS_1252};
use filectx_openapi::{AppliedEdit, Difference, Edit, LineBreaks, LineEndings};
use proptest::prelude::*;

use super::super::encoding::TextEncoding::{self, Legacy, Utf8, Utf16Be, Utf16Le, Utf32Le};
use super::super::kind::{Kind, Text, classify};
use super::*;

fn told(encoding: TextEncoding) -> Text {
    Text { encoding, bom: 0, guessed: false }
}

fn options() -> Options {
    Options { line_endings: LineEndings::Adapt, line_breaks: LineBreaks::Newline, limit: 1 << 20 }
}

fn edit(old: &str, new: &str) -> Edit {
    Edit { old_text: old.into(), new_text: new.into(), line_hint: None, replace_all: false }
}

fn all(old: &str, new: &str) -> Edit {
    Edit { replace_all: true, ..edit(old, new) }
}

fn hinted(old: &str, new: &str, line: u64) -> Edit {
    Edit { line_hint: Some(line), ..edit(old, new) }
}

fn run(content: &[u8], text: Text, edits: &[Edit], options: Options) -> Result<Applied, Error> {
    apply(content, text, edits, &options, &Cancel::after(Duration::from_secs(60)))
}

fn edited(content: &str, edits: &[Edit]) -> String {
    let applied = run(content.as_bytes(), told(Utf8), edits, options()).unwrap();
    String::from_utf8(applied.content).unwrap()
}

fn lines(content: &str, edits: &[Edit]) -> Vec<(u64, u64, u64, bool)> {
    let applied = run(content.as_bytes(), told(Utf8), edits, options()).unwrap();
    let line =
        |edit: AppliedEdit| (edit.line_start, edit.line_end, edit.replacements, edit.line_endings_adapted);
    applied.edits.into_iter().map(line).collect()
}

fn refused(content: &str, edits: &[Edit]) -> Error {
    run(content.as_bytes(), told(Utf8), edits, options()).unwrap_err()
}

#[test]
fn what_stands_there_afterwards() {
    let cases: &[(&str, &[Edit], &str)] = &[
        ("one\ntwo\n", &[edit("two", "2")], "one\n2\n"),
        ("a\nb\nc\n", &[edit("a\n", "A\n"), edit("A\nb", "A\nB")], "A\nB\nc\n"),
        ("SLOT", &[edit("SLOT", "$& $1 $$ ${x} \\1 \\n %s {0} &lt;")], "$& $1 $$ ${x} \\1 \\n %s {0} &lt;"),
        ("a-a-b\na\n", &[all("a", "aa")], "aa-aa-b\naa\n"),
        ("aaaa", &[all("aa", "b")], "bb"),
        ("aaa", &[all("aa", "b")], "ba"),
        ("x\n", &[edit("x\n", "")], ""),
        ("only", &[edit("only", "a\r\nb\nc")], "a\r\nb\nc"),
        // Line ends of the request take those of the file.
        ("k\r\nv\r\n", &[edit("k\nv", "k\nw")], "k\r\nw\r\n"),
        ("k\nv\n", &[edit("k\r\nv", "k\r\nw")], "k\nw\n"),
        ("one\r\ntwo\r\nthree\r\n", &[edit("two", "two\n2a\n2b")], "one\r\ntwo\r\n2a\r\n2b\r\nthree\r\n"),
        ("one\r\ntwo", &[edit("two", "2\n3")], "one\r\n2\r\n3"),
        ("a\r\nb\nc\nd\r\ne\n", &[edit("b\nc", "B\r\nC\r\nC2")], "a\r\nB\nC\nC2\nd\r\ne\n"),
        ("a\r\nb\nc\nd\r\ne\n", &[edit("d", "d\nD2")], "a\r\nb\nc\nd\r\nD2\r\ne\n"),
        // A line end that is matched is matched whole.
        ("a\r\nb\r\n", &[edit("\nb", "\nc")], "a\r\nc\r\n"),
        ("a\r\nb\r\n", &[edit("\nb", "")], "a\r\n"),
        ("a\r\nb\r\nc\r\n", &[all("\n", " ")], "a b c "),
        ("a\r\nb\nc\r\n", &[all("b\n", "B\n")], "a\r\nB\nc\r\n"),
        ("p\nq\nr\n", &[hinted("q", "Q", 999), hinted("r", "R", 1)], "p\nQ\nR\n"),
        ("x = 1\ny\nx = 1\n", &[hinted("x = 1", "x = 2", 3)], "x = 1\ny\nx = 2\n"),
        ("k\r\nv\r\n-\r\nk\r\nv\r\n", &[hinted("k\nv", "k\nw", 5)], "k\r\nv\r\n-\r\nk\r\nw\r\n"),
        // Hints count the lines that the request found.
        ("h\nx\ny\nx\n", &[edit("h\n", "h1\nh2\nh3\n"), hinted("x", "z", 4)], "h1\nh2\nh3\nx\ny\nz\n"),
        ("a\nb\nc\nx\n-\nx\n", &[edit("a\nb\n", ""), hinted("x", "z", 4)], "c\nz\n-\nx\n"),
        ("a\nb\nb\n", &[hinted("b", "x\nb", 3), hinted("b", "y", 3)], "a\nb\nx\ny\n"),
    ];
    for (content, edits, expected) in cases {
        assert_eq!(edited(content, edits), *expected, "{content:?} {edits:?}");
    }
}

#[test]
fn which_lines_were_replaced() {
    assert_eq!(lines("one\ntwo\nthree\n", &[edit("two", "2")]), [(2, 2, 1, false)]);
    assert_eq!(
        lines("a\nb\nc\nx\ny\nx\ny\n", &[edit("a\n", "a1\na2\na3\n"), edit("b\nc", "B"), all("x\ny", "z")]),
        [(1, 1, 1, false), (4, 5, 1, false), (5, 6, 2, false)]
    );
    assert_eq!(lines("k\r\nv\r\n", &[edit("k\nv", "x")]), [(1, 2, 1, true)]);
    assert_eq!(lines("one\r\ntwo\r\n", &[edit("one\r\ntwo", "1\r\n2")]), [(1, 2, 1, false)]);
    assert_eq!(lines("one\ntwo\n", &[edit("two", "2\r\n3")]), [(2, 2, 1, true)]);
    assert_eq!(lines("a\r\nb\r\n", &[edit("\nb", "\nc")]), [(1, 2, 1, true)]);
}

#[test]
fn wide_line_breaks_number_lines() {
    let wide = Options { line_breaks: LineBreaks::Unicode, ..options() };
    let content = "a\u{2028}b\x0cN\r\nN\n";
    let applied = run(content.as_bytes(), told(Utf8), &[hinted("N", "M", 3)], wide).unwrap();
    assert_eq!((applied.edits[0].line_start, applied.edits[0].line_end, applied.line_count), (3, 3, 4));
    assert_eq!(applied.content, "a\u{2028}b\x0cM\r\nN\n".as_bytes());
    let applied = run(b"a\r\nb", told(Utf8), &[edit("\nb", "\nc")], wide).unwrap();
    assert_eq!((applied.edits[0].line_start, applied.edits[0].line_end, applied.line_count), (1, 2, 2));
}

#[test]
fn exact_line_endings_are_exact() {
    let exact = Options { line_endings: LineEndings::Exact, ..options() };
    let run = |content: &str, edits: &[Edit]| run(content.as_bytes(), told(Utf8), edits, exact);
    assert_eq!(run("a\r\nb\r\n", &[edit("b", "b\nc")]).unwrap().content, b"a\r\nb\nc\r\n");
    assert_eq!(run("a\r\nb", &[edit("\nb", "\nc")]).unwrap().content, b"a\r\nc");
    let Error::NoMatch { candidates, .. } = run("a\r\nb\r\nc\r\n", &[edit("a\nb", "x")]).unwrap_err() else {
        panic!("it must not match")
    };
    assert_eq!(candidates[0].difference, Difference::LineEndings);
    assert_eq!((candidates[0].line_start, candidates[0].line_end), (1, 2));
    assert_eq!(candidates[0].text, "a\r\nb");
}

#[test]
fn several_occurrences_are_told() {
    let Error::AmbiguousMatch { edit_index, occurrences, more } =
        refused("x = 1\ny\nx = 1\n", &[edit("y", "z"), edit("x = 1", "x = 2")])
    else {
        panic!("it must be ambiguous")
    };
    assert_eq!((edit_index, more), (1, false));
    let lines: Vec<_> = occurrences.iter().map(|o| (o.line_start, o.line_end)).collect();
    assert_eq!(lines, [(1, 1), (3, 3)]);
    assert_eq!(occurrences[0].excerpt, "     1\tx = 1\n     2\tz\n");
    assert_eq!(occurrences[1].excerpt, "     2\tz\n     3\tx = 1\n");
    for (content, edit) in [
        ("k k\n", hinted("k", "q", 1)),
        ("x = 1\ny\nx = 1\n", hinted("x = 1", "q", 2)),
        ("x\nx\n", hinted("x", "q", 0)),
        ("aaa", edit("aa", "b")),
        ("aaa", hinted("aa", "b", 1)),
        ("y\ny\n", edit("y", "y")),
    ] {
        assert!(matches!(refused(content, &[edit]), Error::AmbiguousMatch { .. }), "{content:?}");
    }
}

#[test]
fn a_flood_of_occurrences_is_bounded() {
    let content = "a".repeat(1 << 20);
    let Error::AmbiguousMatch { occurrences, more, .. } = refused(&content, &[edit("aa", "b")]) else {
        panic!("it must be ambiguous")
    };
    assert!(more && occurrences.len() <= 1000);
    let bytes: usize = occurrences.iter().map(|occurrence| occurrence.excerpt.len()).sum();
    assert!(bytes < 300 << 10, "{bytes}");
}

#[test]
fn no_change_comes_after_the_match() {
    assert!(matches!(refused("x\n", &[edit("gone", "gone")]), Error::NoMatch { edit_index: 0, .. }));
    assert_eq!(refused("x\n", &[edit("x", "x")]), Error::NoChange { edit_index: Some(0) });
    assert_eq!(refused("x\ny\n", &[edit("y", "z"), edit("x", "x")]), Error::NoChange { edit_index: Some(1) });
    assert_eq!(refused("x\n", &[edit("x", "z"), edit("z", "x")]), Error::NoChange { edit_index: None });
    assert_eq!(refused("y\ny\n", &[all("y", "y")]), Error::NoChange { edit_index: Some(0) });
    assert_eq!(refused("a\nb\n", &[edit("a\r\nb", "a\nb")]), Error::NoChange { edit_index: Some(0) });
}

#[test]
fn a_result_has_a_limit() {
    let tight = Options { limit: 30, ..options() };
    let error = run(&[b'a'; 20], told(Utf8), &[all("a", "bb")], tight).unwrap_err();
    assert!(matches!(error, Error::TooLargeToWrite { limit: 30, .. }), "{error:?}");
}

#[test]
fn encodings_are_kept() {
    for encoding in [Utf8, Utf16Le, Utf16Be, Utf32Le] {
        let encode = |text: &str| [encoding.bom(), &encoding.encode(text).unwrap()].concat();
        let content = encode("name = value\r\nlast \u{6c34}\r\n");
        let Kind::Text(text) = classify(&content, true, b"x") else { panic!("no text") };
        let edits = [edit("value\nlast", "wert \u{6c34}\nend"), edit("name", "n")];
        let applied = run(&content, text, &edits, options()).unwrap();
        assert_eq!(applied.content, encode("n = wert \u{6c34}\r\nend \u{6c34}\r\n"), "{encoding:?}");
        assert_eq!((applied.line_count, applied.edits[0].line_end), (2, 2));
    }
}

#[test]
fn other_bytes_are_kept() {
    let cases: &[&[u8]] = &[
        b"limit = 1\n// caf\xe9 no\xebl\n",
        b"limit = 1\r\n// \xa9 Example Ltd \x96 all rights\r\n",
        b"limit = 1\n# \xd6\xd0\xce\xc4\n",
        b"limit = 1\n# \x83\\\x95\\\n",
        b"limit = 1\nbad \xff\xfe\x80 tail\n",
        b"limit = 1\ncesu \xed\xa0\xbd\xed\xb8\x80\n",
        b"limit = 1\nreal \xef\xbf\xbd sign\n",
    ];
    for content in cases {
        let Kind::Text(text) = classify(content, true, b"x") else { panic!("no text: {content:?}") };
        let applied = run(content, text, &[edit("limit = 1", "limit = 2")], options()).unwrap();
        let mut expected = content.to_vec();
        expected[8] = b'2';
        assert_eq!(applied.content, expected);
    }
}

#[test]
fn a_guessed_encoding_takes_no_new_letters() {
    let guessed = Text { encoding: Legacy(WINDOWS_1252), bom: 0, guessed: true };
    let content = b"int limit = 1; // caf\xe9 no\xebl, d\xe9j\xe0 vu\n";
    let run = |edit: Edit| run(content, guessed, &[edit], options());
    let error = run(edit("limit = 1", "limit = \u{e9}")).unwrap_err();
    let expected =
        Error::UnencodableText { edit_index: Some(0), encoding: "windows-1252".into(), character: '\u{e9}' };
    assert_eq!(error, expected);
    let applied = run(edit("caf\u{e9} no\u{eb}l, ", "")).unwrap();
    assert_eq!(applied.content, b"int limit = 1; // d\xe9j\xe0 vu\n");
    let error = run(edit("\u{6c34}", "x")).unwrap_err();
    assert!(matches!(error, Error::NoMatch { .. }), "{error:?}");
}

#[test]
fn half_a_character_is_no_match() {
    let sjis = Text { encoding: Legacy(SHIFT_JIS), bom: 0, guessed: true };
    let applied = run(b"# \x83\\ a\\b\n", sjis, &[edit("\\", "/")], options()).unwrap();
    assert_eq!(applied.content, b"# \x83\\ a/b\n");
}

fn report(content: &str, old: &str) -> Vec<filectx_openapi::Candidate> {
    match refused(content, &[edit(old, "x")]) {
        Error::NoMatch { candidates, .. } => candidates,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_most_like_it() {
    use Difference::{Content, Indentation, TrailingSpace, Unicode, Whitespace};
    let cases: &[(&str, &str, Difference, u64, &str, &str)] = &[
        ("all:\n\techo hi\nend:\n", "        echo hi", Indentation, 2, "\techo hi", "line 2 column 1"),
        ("a\n  b\n  c\n", "a\n    b\n    c\n", Indentation, 1, "a\n  b\n  c\n", "line 2 column 3"),
        ("alpha beta  \ngamma\n", "alpha beta\ngamma", TrailingSpace, 1, "alpha beta  \ngamma", "column 11"),
        ("end\nx", "end  \nx", TrailingSpace, 1, "end\nx", "column 4"),
        ("f(a,  b)\n", "f(a, b)", Whitespace, 1, "f(a,  b)", "column 6"),
        ("f(a,\n  b)\n", "f(a, b)", Whitespace, 1, "f(a,\n  b)", "U+000A"),
        (
            "the list in\u{a0}current use\n",
            "in current",
            Unicode,
            1,
            "in\u{a0}current",
            "column 12: the file has U+00A0",
        ),
        ("said \u{201c}yes\u{201d}\n", "said \"yes\"", Unicode, 1, "said \u{201c}yes\u{201d}", "U+201C"),
        ("zero\u{200b}width\n", "zerowidth", Unicode, 1, "zero\u{200b}width", "U+200B"),
        ("soft\u{ad}hyphen\n", "softhyphen", Unicode, 1, "soft\u{ad}hyphen", "U+00AD"),
        ("cafe\u{301}\n", "caf\u{e9}", Unicode, 1, "cafe\u{301}", "U+0065 U+0301"),
        ("caf\u{e9}\r\nx\r\n", "cafe\u{301}\nx", Unicode, 1, "caf\u{e9}\r\nx", "U+00E9"),
        (
            "q\u{307}\u{323} end of it\n",
            "q\u{323}\u{307} end of it",
            Unicode,
            1,
            "q\u{307}\u{323} end of it",
            "U+0307",
        ),
        (
            "fn a() {}\nfn two() {\n    other(2);\n}\n",
            "fn two() {\n    others(2);\n}",
            Content,
            2,
            "fn two() {\n    other(2);\n}",
            "line 3 column 10",
        ),
        ("    let limit = 11;\n", "let limit = 10;", Content, 1, "let limit = 11;", "line 1 column 18"),
    ];
    for (content, old, difference, line, text, detail) in cases {
        let found = report(content, old);
        let first = found.first().unwrap_or_else(|| panic!("nothing like {old:?}"));
        assert_eq!(
            (first.difference, first.line_start, first.text.as_str()),
            (*difference, *line, *text),
            "{old:?}"
        );
        assert!(first.detail.contains(detail), "{old:?}: {}", first.detail);
        assert!(first.similarity > 0.3 && first.similarity < 1.0, "{old:?}: {}", first.similarity);
        // Sent again, it matches.
        assert!(run(content.as_bytes(), told(Utf8), &[edit(&first.text, "")], options()).is_ok(), "{old:?}");
    }
    assert!(report("nothing alike\n", "zzz qqq vvv").is_empty());
    assert!(report("", "abc").is_empty());
    assert!(report("\n\n\n", " \n").is_empty());
}

#[test]
fn at_most_three_and_each_once() {
    let content = "\techo hi\n".repeat(20);
    let found = report(&content, "  echo hi");
    assert_eq!(found.iter().map(|candidate| candidate.line_start).collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn what_is_there_already_is_told() {
    let applied = |content: &str, old, new| match refused(content, &[edit(old, new)]) {
        Error::NoMatch { already_applied, .. } => already_applied,
        other => panic!("{other:?}"),
    };
    assert!(applied("one\n2\nthree\n", "two\n", "2\n"));
    assert!(applied("a\r\nb\r\n", "x", "a\nb"));
    assert!(!applied("one\n2\n", "two\n", "zwei\n"));
    assert!(!applied("one\n", "two\n", ""));
}

#[test]
fn undecodable_candidates_are_not_offered() {
    let content = b"bad \xff line here\ngood line there\n";
    let Error::NoMatch { candidates, .. } =
        run(content, told(Utf8), &[edit("bad line here", "x")], options()).unwrap_err()
    else {
        panic!("it must not match")
    };
    assert!(candidates.iter().all(|candidate| !candidate.text.contains('\u{fffd}')), "{candidates:?}");
}

proptest! {
    /// Bytes that no edit named are as they were, whatever the file holds.
    #[test]
    fn what_is_not_named_does_not_change(
        head in proptest::collection::vec(any::<u8>(), 0..40),
        middle in "[a-c\\r\\n]{1,6}",
        tail in proptest::collection::vec(any::<u8>(), 0..40),
        new in "([x-z]|\\n|\\r\\n){0,6}",
        exact in any::<bool>(),
    ) {
        let line_endings = if exact { LineEndings::Exact } else { LineEndings::Adapt };
        let options = Options { line_endings, ..options() };
        let content = [head.as_slice(), middle.as_bytes(), &tail].concat();
        if let Ok(applied) = run(&content, told(Utf8), &[edit(&middle, &new)], options) {
            let [change] = applied.trace.changes() else { panic!("one change") };
            prop_assert_eq!(&applied.content[..change.new.start], &content[..change.old.start]);
            prop_assert_eq!(&applied.content[change.new.end..], &content[change.old.end..]);
            let replaced = &content[change.old.clone()];
            let lf = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace("\r\n", "\n");
            prop_assert!(replaced == middle.as_bytes() || lf(replaced) == lf(middle.as_bytes()));
            prop_assert_eq!(lf(&applied.content[change.new.clone()]), lf(new.as_bytes()));
        }
    }

    /// Several edits, each of all occurrences, are what replacing bytes one after the other makes.
    #[test]
    fn edits_are_replacements_one_after_the_other(
        content in proptest::collection::vec(any::<u8>(), 0..80),
        texts in proptest::collection::vec(("[a-c\\r\\n]{1,3}", "[a-d\\r\\n]{0,3}"), 1..4),
        near in "[a-c\\r\\n]{0,60}",
    ) {
        let content = [near.as_bytes(), &content, near.as_bytes()].concat();
        let edits: Vec<Edit> = texts.iter().map(|(old, new)| all(old, new)).collect();
        let options = Options { line_endings: LineEndings::Exact, ..options() };
        if let Ok(applied) = run(&content, told(Utf8), &edits, options) {
            let expected = texts.iter().fold(content, |body, (old, new)| {
                let mut made = Vec::new();
                let mut at = 0;
                for hit in memchr::memmem::find_iter(&body, old) {
                    made.extend_from_slice(&body[at..hit]);
                    made.extend_from_slice(new.as_bytes());
                    at = hit + old.len();
                }
                made.extend_from_slice(&body[at..]);
                made
            });
            prop_assert_eq!(applied.content, expected);
        }
    }

    /// A report never fails, and what it offers matches.
    #[test]
    fn candidates_match(content in "[ab \\t\\r\\n\u{a0}\u{301}]{0,60}", old in "[ab \\t\\r\\n]{1,8}") {
        if let Err(Error::NoMatch { candidates, .. }) = run(content.as_bytes(), told(Utf8), &[edit(&old, "\u{1f9ca}")], options()) {
            for candidate in candidates {
                prop_assert!(content.contains(&candidate.text));
                prop_assert!(candidate.line_start <= candidate.line_end);
            }
        }
    }
}
