//! Windows against the definition: whatever the blocks, the budget and the encoding.

use super::*;
use crate::bytes::encoding::TextEncoding;
use proptest::prelude::*;

fn range(start: u64, end: impl Into<Option<u64>>) -> LineRange {
    LineRange { start, end: end.into() }
}

fn scan(
    text: &str,
    encoding: TextEncoding,
    wanted: &[Wanted],
    budget: u64,
    to_end: bool,
    block: usize,
) -> Scan {
    let raw = encoding.encode(text).unwrap();
    let kind = Text { encoding, bom: 0, guessed: false };
    let mut scanner = Scanner::new(kind, LineBreaks::Newline, wanted, budget, to_end);
    let mut fed = 0;
    for block in raw.chunks(block.max(1)) {
        if scanner.is_done() {
            break;
        }
        scanner.feed(block);
        fed += block.len();
    }
    scanner.finish(fed == raw.len())
}

#[test]
fn ranges_merge_when_they_overlap() {
    let wanted = merge(&[range(10, 12), range(1, 3), range(2, 5), range(12, 14), range(6, 6)]).unwrap();
    let expected = [(1, Some(5), vec![1, 2]), (6, Some(6), vec![4]), (10, Some(14), vec![0, 3])];
    assert_eq!(wanted.len(), expected.len());
    for (wanted, (start, end, indexes)) in wanted.iter().zip(expected) {
        assert_eq!((wanted.start, wanted.end, &wanted.indexes), (start, end, &indexes));
    }
    assert_eq!(merge(&[range(1, 2), range(5, 1)]), Err(1));
    assert_eq!(merge(&[range(0, None)]), Err(0));
    assert_eq!(merge(&[range(3, None), range(9, 9)]).unwrap().len(), 1);
}

#[test]
fn a_giant_line_is_cut_inside_only_as_the_first() {
    let wanted = merge(&[range(1, 1), range(3, 3)]).unwrap();
    let text = format!("before\nskip\n{}\nafter\n", "x".repeat(3000));
    let scan = scan(&text, TextEncoding::Utf8, &wanted, 1000, true, 100);
    assert_eq!(scan.windows[0].text, "before\n");
    assert_eq!(scan.windows[1].text, "x".repeat(993));
    assert_eq!(scan.windows[1].cut, Some(Cut::InLine(3, 12 + 993)));
    assert_eq!(scan.end, Some((4, true)));
}

#[test]
fn a_scan_stops_where_the_last_range_ends() {
    let wanted = merge(&[range(1, 2)]).unwrap();
    let stopped = scan("a\nb\nc\r\n", TextEncoding::Utf8, &wanted, 100, false, 100);
    assert_eq!((stopped.end, stopped.line_ends.kind()), (None, filectx_openapi::LineEnding::Lf));
    let reached = scan("a\nb\n", TextEncoding::Utf8, &wanted, 100, false, 100);
    assert_eq!(reached.end, Some((2, true)));
}

#[test]
fn a_source_that_was_given_up_is_cut_not_lost() {
    let wanted = merge(&[range(1, None)]).unwrap();
    let kind = Text { encoding: TextEncoding::Utf8, bom: 0, guessed: false };
    let mut scanner = Scanner::new(kind, LineBreaks::Newline, &wanted, 100, true);
    scanner.feed(b"one\ntwo\nthr");
    let scan = scanner.finish(false);
    assert_eq!(
        (scan.windows[0].text.as_str(), scan.windows[0].cut),
        ("one\ntwo\n", Some(Cut::BeforeLine(3)))
    );
    assert_eq!(scan.end, None);
}

proptest! {
    /// Whatever the blocks: consecutive windows joined are the text, within the budget, cut on characters and
    /// lines, and what was cut goes on where it says.
    #[test]
    fn windows_are_the_file(
        text in "[a-c\\r\\n\u{e9}\u{6c34}]{0,60}", split in 1u64..8, budget in 0u64..80, block in 1usize..20, to_end: bool,
    ) {
        for encoding in [TextEncoding::Utf8, TextEncoding::Utf16Le, TextEncoding::Legacy(encoding_rs::GB18030)] {
            let lines: Vec<&str> = text.split_inclusive('\n').collect();
            let wanted = merge(&[range(1, split), range(split + 1, None)]).unwrap();
            let scan = scan(&text, encoding, &wanted, budget, to_end, block);
            let total: usize = scan.windows.iter().map(|window| window.text.len()).sum();
            prop_assert!(total as u64 <= budget);
            for (window, wanted) in scan.windows.iter().zip(&wanted) {
                let from = (wanted.start as usize - 1).min(lines.len());
                let to = wanted.end.map_or(lines.len(), |end| (end as usize).min(lines.len()));
                let whole = lines[from..to].concat();
                prop_assert!(whole.starts_with(&window.text));
                match window.cut {
                    None => prop_assert_eq!(&window.text, &whole),
                    Some(Cut::BeforeLine(next)) => {
                        let next = next as usize - 1;
                        prop_assert_eq!(&window.text, &lines[from..next].concat());
                        let first = lines.get(from).map_or(0, |line| line.len());
                        prop_assert!(total as u64 + lines[next].len() as u64 > budget || first as u64 > budget);
                    }
                    Some(Cut::InLine(line, byte)) => {
                        prop_assert_eq!(line, wanted.start);
                        prop_assert!(lines[from].len() as u64 > budget);
                        let before = lines[..from].concat() + &window.text;
                        prop_assert_eq!(encoding.encode(&before).unwrap().len() as u64, byte);
                    }
                }
                prop_assert_eq!(window.past_end, from >= lines.len());
            }
            if let Some((count, ended)) = scan.end {
                prop_assert_eq!((count as usize, ended), (lines.len(), text.ends_with('\n')));
            }
            prop_assert!(scan.end.is_some() || !to_end);
        }
    }
}
