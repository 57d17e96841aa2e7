//! Texts with some of their differences taken out, so that a place can be found that differs in nothing else; and the
//! way back from there to the exact place.

use std::ops::Range;

use memchr::memmem::Finder;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_compatible;

use crate::{Cancel, Error};

/// What is taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// All ASCII white space.
    White,
    /// Compatible forms, kinds of blanks, quotes and dashes, and what is invisible.
    Unicode,
}

/// A folded text that knows where it came from.
#[derive(Debug)]
pub(crate) struct Folded<'a> {
    source: &'a str,
    fold: Fold,
    text: String,
    /// Offsets in the folded text and in the source, a step apart.
    marks: Vec<(usize, usize)>,
}

/// How far apart the marks are.
const STEP: usize = 4 << 10;

impl<'a> Folded<'a> {
    pub(crate) fn of(source: &'a str, fold: Fold, cancel: &Cancel) -> Result<Self, Error> {
        let mut folded = Self { source, fold, text: String::with_capacity(source.len()), marks: Vec::new() };
        let mut at = 0;
        while at < source.len() {
            cancel.check()?;
            folded.marks.push((folded.text.len(), at));
            let end = source.floor_char_boundary((at + STEP).min(source.len())).max(at + 1);
            let end = source.ceil_char_boundary(end);
            append(&mut folded.text, &source[at..end], fold);
            at = end;
        }
        Ok(folded)
    }

    /// The places in the source that fold to the same as `wanted` does, up to `most` of them.
    pub(crate) fn find(&self, wanted: &str, most: usize) -> Vec<Range<usize>> {
        let mut needle = String::new();
        append(&mut needle, wanted, self.fold);
        if needle.is_empty() {
            return Vec::new();
        }
        let finder = Finder::new(&needle);
        let (mut found, mut at, mut tries) = (Vec::new(), 0, 0);
        // Hits inside of a character are no places; there are never many in a text.
        while found.len() < most && tries < 64 * most {
            let Some(hit) = finder.find(&self.text.as_bytes()[at..]) else { break };
            let start = at + hit;
            found.extend(self.place(start..start + needle.len()));
            at = start + 1;
            tries += 1;
        }
        found
    }

    /// The part of the source whose fold is exactly this part of the folded text.
    fn place(&self, part: Range<usize>) -> Option<Range<usize>> {
        let mark = self.marks.partition_point(|&(folded, _)| folded <= part.start).checked_sub(1)?;
        let (mut folded, from) = self.marks[mark];
        let (mut start, mut buffer) = (None, String::new());
        for (offset, c) in self.source[from..].char_indices() {
            buffer.clear();
            push(&mut buffer, c, self.fold);
            if buffer.is_empty() {
                continue;
            }
            if folded == part.start {
                start = Some(from + offset);
            }
            folded += buffer.len();
            if folded >= part.end {
                let end = from + offset + c.len_utf8();
                return start.filter(|_| folded == part.end).map(|start| start..end);
            }
            if folded > part.start && start.is_none() {
                return None;
            }
        }
        None
    }
}

/// The fold of a whole text.
pub(crate) fn folded(text: &str, fold: Fold) -> String {
    let mut out = String::with_capacity(text.len());
    append(&mut out, text, fold);
    out
}

/// Equal after NFKC, blank folding, without what is invisible, and with ASCII quotes and dashes.
pub(crate) fn equal_but_for_unicode(one: &str, other: &str) -> bool {
    let plain = |text: &str| -> String {
        let composed: String = text.nfkc().collect();
        // In the order in which marks on one letter belong, whatever was sent.
        folded(&composed, Fold::Unicode).nfkc().collect()
    };
    plain(one) == plain(other)
}

fn append(out: &mut String, text: &str, fold: Fold) {
    match fold {
        Fold::White => {
            for part in text.split(is_white) {
                out.push_str(part);
            }
        }
        Fold::Unicode => {
            let mut rest = text;
            while let Some(at) = rest.bytes().position(|b| !b.is_ascii()) {
                out.push_str(&rest[..at]);
                let mut chars = rest[at..].chars();
                chars.next().into_iter().for_each(|c| push(out, c, fold));
                rest = chars.as_str();
            }
            out.push_str(rest);
        }
    }
}

fn push(out: &mut String, c: char, fold: Fold) {
    match fold {
        Fold::White if is_white(c) => {}
        Fold::Unicode if !c.is_ascii() => decompose_compatible(c, |part| {
            if !is_invisible(part) {
                out.push(plain(part));
            }
        }),
        _ => out.push(c),
    }
}

/// ASCII white space, the vertical tabulator included.
pub(crate) fn is_white(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0b' | '\x0c' | '\r')
}

/// What has no width: joiners, marks of direction, the soft hyphen, a byte order mark inside.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

fn plain(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{2039}' | '\u{203a}' | '\u{2bc}' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}' | '\u{ab}' | '\u{bb}' | '\u{301d}'..='\u{301f}' => {
            '"'
        }
        '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}' => '-',
        c if c.is_whitespace() && !c.is_ascii() => ' ',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn places<'a>(source: &'a str, fold: Fold, wanted: &str) -> Vec<&'a str> {
        let cancel = Cancel::after(Duration::from_secs(60));
        let folded = Folded::of(source, fold, &cancel).unwrap();
        folded.find(wanted, 9).into_iter().map(|place| &source[place]).collect()
    }

    #[test]
    fn the_exact_place_is_found_again() {
        let cases: &[(&str, Fold, &str, &[&str])] = &[
            ("the list in\u{a0}current use", Fold::Unicode, "in current", &["in\u{a0}current"]),
            (
                "said \u{201c}yes\u{201d} \u{2013} twice",
                Fold::Unicode,
                "\"yes\" -",
                &["\u{201c}yes\u{201d} \u{2013}"],
            ),
            ("zero\u{200b}width soft\u{ad}hyphen", Fold::Unicode, "zerowidth", &["zero\u{200b}width"]),
            ("zero\u{200b}width soft\u{ad}hyphen", Fold::Unicode, "softhyphen", &["soft\u{ad}hyphen"]),
            ("cafe\u{301} au lait", Fold::Unicode, "caf\u{e9}", &["cafe\u{301}"]),
            ("\u{fb01}nal", Fold::Unicode, "fi", &["\u{fb01}"]),
            ("\u{fb01}nal", Fold::Unicode, "inal", &[]),
            ("caf\u{e9}", Fold::Unicode, "cafe", &[]),
            ("all:\n\techo hi\n", Fold::White, "        echo hi", &["echo hi"]),
            ("f(a,\n  b)", Fold::White, "f(a, b)", &["f(a,\n  b)"]),
            ("nothing", Fold::White, " \n", &[]),
        ];
        for (source, fold, wanted, expected) in cases {
            assert_eq!(&places(source, *fold, wanted), expected, "{wanted:?} in {source:?}");
        }
    }

    #[test]
    fn far_places_are_found_again() {
        let source = "\u{6c34} ".repeat(5000) + "needle\u{a0}here" + &" \u{e9}".repeat(5000);
        assert_eq!(places(&source, Fold::Unicode, "needle here"), ["needle\u{a0}here"]);
        assert_eq!(places(&source, Fold::White, "nee dle\u{a0}here"), ["needle\u{a0}here"]);
    }

    #[test]
    fn what_counts_as_equal() {
        assert!(equal_but_for_unicode("a\u{a0}b", "a b"));
        assert!(equal_but_for_unicode("\u{201e}x\u{201c} \u{2014}", "\"x\" -"));
        // Marks in another order.
        assert!(equal_but_for_unicode("q\u{307}\u{323}", "q\u{323}\u{307}"));
        assert!(!equal_but_for_unicode("a  b", "a b"));
    }
}
