//! Golden views: what a reader sees of a batch, word for word.

use filectx_openapi::{
    FileContext, FileRequest, ImageFormat, ImageInfo, LimitName, LineBreaks, LineEnding, LineRange,
    ReadFileContextRequest, ReadFileContextResponse, Truncation,
};

use super::{Budget, GoOn, ReadView, Style, Wanted, read_text};

fn budget(file: u64, call: u64) -> Budget {
    Budget { file, call }
}

fn wide() -> Budget {
    Budget::default()
}

/// The context that a service gives for these lines of a file with `count` lines.
fn context(index: u64, text: &str, first: u64, count: u64) -> FileContext {
    let lines = text.lines().count() as u64;
    FileContext {
        request_index: index,
        file_name: format!("/f{index}"),
        text_content: Some(text.into()),
        line_range_start: (lines > 0).then_some(first),
        line_range_end: (lines > 0).then(|| first + lines - 1),
        line_count: Some(count),
        ends_with_newline: Some(true),
        file_size_bytes: 1000,
        revision: "hash:0f".into(),
        mime_type: Some("text/plain".into()),
        encoding: Some("utf-8".into()),
        line_ending: Some(LineEnding::Lf),
        ..FileContext::default()
    }
}

fn range(start: u64, end: u64) -> LineRange {
    LineRange { start, end: (end > 0).then_some(end) }
}

/// How a skin might name the call that goes on.
fn go_on(index: u64, next: &GoOn<'_>) -> String {
    match next {
        GoOn::Lines(ranges) => {
            let end = |range: &LineRange| range.end.map_or(String::new(), |end| end.to_string());
            let ranges: Vec<_> =
                ranges.iter().map(|range| format!("{}-{}", range.start, end(range))).collect();
            format!("more f{index}:{}", ranges.join(","))
        }
        GoOn::Bytes(range) => format!("more f{index}@{}", range.offset),
    }
}

fn view(contexts: Vec<FileContext>, wanted: &[Wanted], budget: Budget) -> ReadView {
    let response = ReadFileContextResponse { file_contexts: contexts, failed_files: Vec::new() };
    ReadView::new(response, wanted, LineBreaks::Newline, budget)
}

#[track_caller]
fn check(contexts: Vec<FileContext>, wanted: &[Wanted], budget: Budget, expected: &str) {
    let text = read_text(&view(contexts, wanted, budget), Style::default(), &go_on);
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn lines_are_numbered_as_in_the_file() {
    check(vec![context(0, "a\n\nc\n", 1, 3)], &[], wide(), "     1\ta\n     2\t\n     3\tc\n");
    let far = context(0, "x\r\ny\n", 1_234_567, 1_234_568);
    check(vec![far], &[Wanted::new(&[range(1_234_567, 0)], None)], wide(), "1234567\tx\n1234568\ty\n");
}

#[test]
fn several_ranges_and_files_are_set_apart() {
    let wanted = [Wanted::new(&[range(1, 1), range(5, 6)], None), Wanted::default()];
    let contexts = vec![context(0, "a\n", 1, 9), context(0, "e\nf\n", 5, 9), context(2, "z\n", 1, 1)];
    let expected = "==> /f0 <==\n     1\ta\n--\n     5\te\n     6\tf\n\n==> /f2 <==\n     1\tz\n";
    check(contexts, &wanted, wide(), expected);
}

#[test]
fn a_window_says_which_limit_stopped_it_and_how_it_goes_on() {
    let five = "l1\nl2\nl3\nl4\nl5\n";
    // Each line costs its number (6), a tab, two characters and a line end: 10.
    for (chars, shown, remain, next) in [(49, 4, "1 line remains", 5), (20, 2, "3 lines remain", 3)] {
        let lines: String = (1..=shown).map(|n| format!("     {n}\tl{n}\n")).collect();
        let note =
            format!("[stopped by max_chars ({chars} characters a file); {remain}; go on: more f0:{next}-]\n");
        check(vec![context(0, five, 1, 5)], &[], budget(chars, 1000), &format!("{lines}{note}"));
    }
    check(
        vec![context(0, five, 1, 5)],
        &[],
        budget(50, 50),
        "     1\tl1\n     2\tl2\n     3\tl3\n     4\tl4\n     5\tl5\n",
    );
    let wanted = Wanted::new(&[range(2, 0)], Some(2));
    check(
        vec![context(0, "l2\nl3\n", 2, 5)],
        &[wanted],
        wide(),
        "     2\tl2\n     3\tl3\n[stopped by limit (2 lines); 2 lines remain; go on: more f0:4-]\n",
    );
    let unknown = FileContext { line_count: None, ..context(0, "l1\n", 1, 0) };
    check(
        vec![unknown],
        &[Wanted::new(&[], Some(1))],
        wide(),
        "     1\tl1\n[stopped by limit (1 line); more lines may follow; go on: more f0:2-]\n",
    );
    let truncation = Some(Truncation { limit: LimitName::MaxFileBytes, next_line: Some(3), next_byte: None });
    check(
        vec![FileContext { truncation, ..context(0, "l1\nl2\n", 1, 5) }],
        &[Wanted::new(&[range(1, 4)], None)],
        wide(),
        "     1\tl1\n     2\tl2\n[stopped by max_file_bytes of the read; 2 lines remain; go on: more f0:3-4]\n",
    );
}

#[test]
fn what_is_complete_says_nothing() {
    check(vec![context(0, "a\n", 1, 1)], &[Wanted::new(&[], Some(1))], wide(), "     1\ta\n");
    check(vec![context(0, "a\n", 1, 1)], &[Wanted::new(&[range(1, 99)], None)], wide(), "     1\ta\n");
    check(vec![context(0, "a\n", 1, 9)], &[Wanted::new(&[range(1, 1)], None)], wide(), "     1\ta\n");
}

#[test]
fn the_ranges_that_were_not_reached_go_on_too() {
    let wanted = Wanted::new(&[range(1, 3), range(10, 12), range(20, 0)], None);
    let contexts =
        vec![context(0, "a\nb\nc\n", 1, 25), context(0, "j\nk\nl\n", 10, 25), context(0, "t\n", 20, 25)];
    check(
        contexts,
        &[wanted],
        budget(36, 1000),
        "     1\ta\n     2\tb\n     3\tc\n--\n    10\tj\n\
         [stopped by max_chars (36 characters a file); 8 lines remain; go on: more f0:11-12,20-]\n",
    );
}

#[test]
fn the_call_has_a_budget_of_its_own() {
    let contexts = vec![context(0, "a\nb\n", 1, 2), context(1, "c\nd\n", 1, 2), context(2, "e\n", 1, 1)];
    let by_call = "[stopped by max_chars (30 characters a call)";
    check(
        contexts,
        &[],
        budget(25, 30),
        &format!(
            "==> /f0 <==\n     1\ta\n     2\tb\n\n==> /f1 <==\n     1\tc\n{by_call}; 1 line remains; go on: more f1:2-]\n\
             \n==> /f2 <==\n{by_call}; 1 line remains; go on: more f2:1-]\n"
        ),
    );
}

#[test]
fn only_a_line_that_no_window_holds_is_cut() {
    let long = "\u{e9}".repeat(40);
    let text = format!("a\n{long}\nz\n");
    // Not the first line of the window: the window ends before it.
    check(
        vec![context(0, &text, 1, 3)],
        &[],
        budget(30, 1000),
        "     1\ta\n[stopped by max_chars (30 characters a file); 2 lines remain; go on: more f0:2-]\n",
    );
    // The first line of its window: cut on a character, and the service is asked where that is.
    let wanted = [Wanted::new(&[range(2, 0)], None)];
    let mut cut = view(vec![context(0, &text[2..], 2, 3)], &wanted, budget(30, 1000));
    let file = FileRequest {
        path: Some("f0".into()),
        line_ranges: vec![range(2, 0)],
        if_none_match: Some("hash:0f".into()),
        ..FileRequest::default()
    };
    let request = ReadFileContextRequest {
        files: vec![file],
        cwd: Some("/".into()),
        ..ReadFileContextRequest::default()
    };
    let questions = cut.questions(&request);
    assert_eq!(questions.len(), 1);
    let (at, question) = &questions[0];
    assert_eq!((*at, question.max_file_bytes, question.cwd.as_deref()), (0, Some(44), Some("/")));
    assert_eq!(question.files[0].line_ranges, [range(2, 2)]);
    assert_eq!(question.files[0].if_none_match, None);

    let line = format!("     2\t{}\n", "\u{e9}".repeat(22));
    let by = "[stopped by max_chars (30 characters a file) inside line 2";
    let behind = "behind it 1 line remains: more f0:3-]\n";
    let unknown = format!("{line}{by}; raise it to see more of the line; {behind}");
    assert_eq!(read_text(&cut, Style::default(), &go_on), unknown);
    let truncation =
        Some(Truncation { limit: LimitName::MaxFileBytes, next_line: Some(2), next_byte: Some(46) });
    let answer = ReadFileContextResponse {
        file_contexts: vec![FileContext { truncation, ..context(0, "x", 2, 3) }],
        failed_files: Vec::new(),
    };
    cut.learn(0, &answer);
    let known = format!("{line}{by}; go on inside the line: more f0@46; {behind}");
    assert_eq!(read_text(&cut, Style::default(), &go_on), known);
    assert!(cut.questions(&request).is_empty());
}

#[test]
fn a_line_that_fits_a_window_of_its_own_is_not_cut_by_the_call() {
    let contexts = vec![context(0, "aaaaaaaa\n", 1, 1), context(1, "bbbbbbbb\n", 1, 1)];
    check(
        contexts,
        &[],
        budget(20, 24),
        "==> /f0 <==\n     1\taaaaaaaa\n\n==> /f1 <==\n\
         [stopped by max_chars (24 characters a call); 1 line remains; go on: more f1:1-]\n",
    );
}

#[test]
fn a_line_that_the_service_cut_goes_on_where_it_says() {
    let truncation =
        Some(Truncation { limit: LimitName::MaxFileBytes, next_line: Some(1), next_byte: Some(13) });
    let cut = FileContext {
        truncation,
        bom: Some(true),
        byte_range_start: Some(3),
        byte_range_end: Some(13),
        line_count: None,
        ..context(0, "0123456789", 1, 0)
    };
    check(
        vec![cut.clone()],
        &[],
        wide(),
        "     1\t0123456789\n[stopped by max_file_bytes of the read inside line 1; go on inside the line: more f0@13; \
         behind it more lines may follow: more f0:2-]\n",
    );
    // Shown less than came: the byte is told from the end of what came, so a BOM does not matter.
    let cut = view(vec![cut], &[], budget(12, 1000));
    assert!(cut.questions(&ReadFileContextRequest::default()).is_empty());
    let text = read_text(&cut, Style::default(), &go_on);
    assert!(
        text.starts_with("     1\t0123\n[stopped by max_chars (12 characters a file) inside line 1; "),
        "{text}"
    );
    assert!(text.contains("more f0@7;"), "{text}");
}

#[test]
fn byte_ranges_have_no_numbers() {
    let piece = |start: u64, text: &str| FileContext {
        byte_range_start: Some(start),
        byte_range_end: Some(start + text.len() as u64),
        line_range_start: None,
        line_range_end: None,
        line_count: None,
        ends_with_newline: None,
        ..context(0, text, 1, 0)
    };
    check(vec![piece(100, "ab\ncd")], &[], wide(), "ab\ncd\n");
    let by = "[stopped by max_chars (6 characters a file) at byte";
    check(
        vec![piece(100, "ab\ncdef")],
        &[],
        budget(6, 9),
        &format!("ab\ncd\n{by} 105 of 1,000; go on: more f0@105]\n"),
    );
    check(
        vec![piece(100, "ab\ncd\nef")],
        &[],
        budget(6, 9),
        &format!("ab\ncd\n{by} 106 of 1,000; go on: more f0@106]\n"),
    );
    let truncation =
        Some(Truncation { limit: LimitName::MaxBatchBytes, next_line: None, next_byte: Some(102) });
    check(
        vec![FileContext { truncation, ..piece(100, "ab") }],
        &[],
        wide(),
        "ab\n[stopped by max_batch_bytes of the read at byte 102 of 1,000; go on: more f0@102]\n",
    );
    let legacy = FileContext { encoding: Some("windows-1252".into()), ..piece(100, "ab\ncdef") };
    let cut = view(vec![legacy], &[], budget(6, 9));
    let request = ReadFileContextRequest { files: vec![FileRequest::default()], ..Default::default() };
    assert_eq!(cut.questions(&request)[0].1.max_file_bytes, Some(5));
}

#[test]
fn what_is_no_text_is_summed_up() {
    let binary = FileContext {
        file_size_bytes: 1234,
        revision: "hash:0f".into(),
        mime_type: Some("application/x-elf".into()),
        binary_omitted: Some(true),
        ..FileContext::default()
    };
    check(vec![binary.clone()], &[], wide(), "[binary: application/x-elf, 1,234 bytes, revision hash:0f]\n");
    let limited = [Wanted::new(&[], Some(5))];
    check(
        vec![binary.clone()],
        &limited,
        wide(),
        "[binary: application/x-elf, 1,234 bytes, revision hash:0f]\n",
    );
    let info = ImageInfo {
        format: None,
        width: None,
        height: None,
        source_format: ImageFormat::Gif,
        source_width: Some(640),
        source_height: Some(480),
        source_bytes: 1234,
        resized: None,
        re_encoded: None,
        frames: Some(12),
        scale: None,
    };
    let image = FileContext { image: Some(info), mime_type: Some("image/gif".into()), ..binary.clone() };
    let line = "[image: image/gif, 640x480 pixels, 12 frames, 1,234 bytes, revision hash:0f]\n";
    check(vec![image], &[], wide(), line);
    let unmodified = FileContext { not_modified: Some(true), binary_omitted: None, ..binary };
    check(vec![unmodified], &[], wide(), "[not modified, still at revision hash:0f]\n");
}

#[test]
fn what_a_reader_has_to_know_is_noted() {
    let empty = FileContext { file_size_bytes: 0, past_end: Some(true), ..context(0, "", 1, 0) };
    check(vec![empty], &[Wanted::new(&[range(5, 9)], None)], wide(), "[an empty file]\n");
    let beyond = FileContext { past_end: Some(true), ..context(0, "", 1, 3) };
    check(
        vec![beyond],
        &[Wanted::new(&[range(5, 9)], None)],
        wide(),
        "[past the end: the file has 3 lines]\n",
    );
    let odd = FileContext {
        encoding: Some("utf-16le".into()),
        lossy: Some(true),
        lone_cr: Some(true),
        line_ending: Some(LineEnding::Mixed),
        ends_with_newline: Some(false),
        changed_during_read: Some(true),
        real_path: Some("/real".into()),
        ..context(0, "a", 1, 1)
    };
    check(
        vec![odd],
        &[],
        wide(),
        "     1\ta\n[a link to /real]\n[encoding utf-16le]\n\
         [lossy: bytes that are no text are shown as U+FFFD, and do not match in an edit]\n\
         [mixed line ends: LF and CRLF]\n[lone CRs, which end no line]\n[no line end at the end of the file]\n\
         [the file changed while it was read]\n",
    );
    // The end is not among the lines shown.
    let open = FileContext { ends_with_newline: Some(false), ..context(0, "a\n", 1, 2) };
    check(vec![open], &[Wanted::new(&[range(1, 1)], None)], wide(), "     1\ta\n");
}

#[test]
fn on_a_terminal_nothing_steers_it() {
    let mut steering = context(0, "a\x1b[2Jb\tc\n", 1, 1);
    steering.file_name = "/x\x1b[31m".into();
    let contexts = vec![steering, context(1, "b\n", 1, 1)];
    let view = view(contexts, &[], wide());
    let terminal = Style { terminal: true, color: true };
    let text = read_text(&view, terminal, &go_on);
    assert!(text.contains("a\\u001b[2Jb\tc\n"), "{text:?}");
    assert!(text.contains("==> /x\\u001b[31m <=="), "{text:?}");
    assert!(text.contains("\x1b[2m     1\x1b[0m\t"), "{text:?}");
    // Elsewhere the text is the file's.
    assert!(read_text(&view, Style::default(), &go_on).contains("a\x1b[2Jb\tc\n"));
}
