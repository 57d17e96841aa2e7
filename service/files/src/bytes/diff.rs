//! The unified diff of an edit, on the real bytes of both contents: what `patch` takes. Made from what is known to have
//! changed, so that it costs as much as it shows, and cut where it grows long.

use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices};

use super::encoding::TextEncoding;
use super::needle::LineEndBytes;
use super::trace::Change;
use crate::{Cancel, Error};

/// The most bytes of a diff.
pub const LONGEST: usize = 64 << 10;
/// Lines of context around a change.
const CONTEXT: usize = 3;
/// The most lines of a changed region that are compared with each other; more are told as replaced.
const COMPARED: usize = 2_000;

/// A unified diff.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff {
    /// Its text.
    pub text: String,
    /// Whether it was cut.
    pub cut: bool,
}

/// Lines that were replaced: as bytes of both contents, and the number of lines before them in each.
#[derive(Clone, Debug)]
struct Block {
    old: Range<usize>,
    new: Range<usize>,
    old_line: usize,
    new_line: usize,
}

/// The diff from `old` to `new`, two texts in `encoding` that differ in `changes` alone; `path` is what its head names.
pub fn unified(
    path: &[u8],
    encoding: TextEncoding,
    (old, new): (&[u8], &[u8]),
    changes: &[Change],
    cancel: &Cancel,
) -> Result<Diff, Error> {
    let lines = Lines { encoding, ends: LineEndBytes::of(encoding) };
    let mut writer = Writer { lines: &lines, old, new, text: head(path), cut: false, first: true };
    let mut hunk: Vec<Block> = Vec::new();
    let mut walk = Walk::default();
    for region in regions(&lines, old, new, changes) {
        cancel.check()?;
        walk.step_to(&lines, old, new, &region);
        for block in blocks(&lines, old, new, &region, &walk) {
            let far = hunk.last().is_some_and(|last| {
                lines.split_up_to(&old[last.old.end..block.old.start], 2 * CONTEXT + 1) > 2 * CONTEXT
            });
            if far && !writer.hunk(&std::mem::take(&mut hunk)) {
                return Ok(Diff { text: writer.text, cut: true });
            }
            hunk.push(block);
        }
    }
    if !hunk.is_empty() {
        writer.hunk(&hunk);
    }
    Ok(Diff { text: writer.text, cut: writer.cut })
}

/// Changes widened to whole lines, those that share a line as one.
fn regions(lines: &Lines, old: &[u8], new: &[u8], changes: &[Change]) -> Vec<Change> {
    let whole = |bytes: &[u8], at: usize| at == 0 || bytes[..at].ends_with(&lines.ends.lf);
    // What follows a change is the same in both contents; a region ends where lines end in both.
    let ended = |region: &Change| whole(old, region.old.end) && whole(new, region.new.end);
    let widen = |region: &mut Change| {
        let behind = if ended(region) { 0 } else { lines.end(old, region.old.end) - region.old.end };
        region.old.end += behind;
        region.new.end += behind;
    };
    let mut regions: Vec<Change> = Vec::new();
    for change in changes {
        if let Some(last) = regions.last_mut() {
            let gap = &old[last.old.end..change.old.start];
            if !ended(last) && !lines.has_end(gap) {
                (last.old.end, last.new.end) = (change.old.end, change.new.end);
                continue;
            }
            widen(last);
        }
        let start = lines.start(old, change.old.start);
        let before = change.old.start - start;
        regions.push(Change { old: start..change.old.end, new: change.new.start - before..change.new.end });
    }
    regions.last_mut().into_iter().for_each(widen);
    regions
}

/// Counts lines from region to region.
#[derive(Default)]
struct Walk {
    old: usize,
    new: usize,
    old_line: usize,
    new_line: usize,
}

impl Walk {
    fn step_to(&mut self, lines: &Lines, old: &[u8], new: &[u8], region: &Change) {
        self.old_line += lines.count(&old[self.old..region.old.start]);
        self.new_line += lines.count(&new[self.new..region.new.start]);
        (self.old, self.new) = (region.old.start, region.new.start);
    }
}

/// The lines of a region that really differ.
fn blocks(lines: &Lines, old: &[u8], new: &[u8], region: &Change, walk: &Walk) -> Vec<Block> {
    let (old_bytes, new_bytes) = (&old[region.old.clone()], &new[region.new.clone()]);
    let few = |bytes: &[u8]| lines.split_up_to(bytes, COMPARED) < COMPARED;
    if !few(old_bytes) || !few(new_bytes) {
        return vec![Block {
            old: region.old.clone(),
            new: region.new.clone(),
            old_line: walk.old_line,
            new_line: walk.new_line,
        }];
    }
    let (old_lines, new_lines) = (lines.split(old_bytes), lines.split(new_bytes));
    let (old_at, new_at) = (offsets(&old_lines, region.old.start), offsets(&new_lines, region.new.start));
    let ops = capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines);
    let block = |op: &DiffOp| {
        let (old, new) = (op.old_range(), op.new_range());
        Block {
            old: old_at[old.start]..old_at[old.end],
            new: new_at[new.start]..new_at[new.end],
            old_line: walk.old_line + old.start,
            new_line: walk.new_line + new.start,
        }
    };
    ops.iter().filter(|op| op.tag() != DiffTag::Equal).map(block).collect()
}

fn offsets(lines: &[&[u8]], from: usize) -> Vec<usize> {
    let mut at = from;
    let ends = lines.iter().map(|line| {
        at += line.len();
        at
    });
    std::iter::once(from).chain(ends).collect()
}

/// Lines as `patch` counts them: by LF, and the rest.
struct Lines {
    encoding: TextEncoding,
    ends: LineEndBytes,
}

impl Lines {
    /// Where the line begins in which `at` lies.
    fn start(&self, bytes: &[u8], at: usize) -> usize {
        let mut end = at;
        while let Some(hit) = memchr::memmem::rfind(&bytes[..end], &self.ends.lf) {
            if hit.is_multiple_of(self.encoding.unit()) {
                return hit + self.ends.lf.len();
            }
            end = hit + self.ends.lf.len() - 1;
        }
        0
    }

    /// Where the line ends in which `at` lies, its line end included.
    fn end(&self, bytes: &[u8], at: usize) -> usize {
        let mut from = at;
        while let Some(hit) = memchr::memmem::find(&bytes[from..], &self.ends.lf) {
            if (from + hit).is_multiple_of(self.encoding.unit()) {
                return from + hit + self.ends.lf.len();
            }
            from += hit + 1;
        }
        bytes.len()
    }

    /// How many line ends are in `bytes`, which begin where a unit does.
    fn count(&self, bytes: &[u8]) -> usize {
        match self.encoding.unit() {
            1 => bytecount::count(bytes, b'\n'),
            unit => bytes.chunks_exact(unit).filter(|chunk| *chunk == self.ends.lf).count(),
        }
    }

    /// How many lines there are, the unended last one included, of which no more than `most` matter.
    fn split_up_to(&self, bytes: &[u8], most: usize) -> usize {
        let (mut at, mut count) = (0, 0);
        while count < most && at < bytes.len() {
            at = self.end(bytes, at);
            count += 1;
        }
        count
    }

    fn has_end(&self, bytes: &[u8]) -> bool {
        self.end(bytes, 0) < bytes.len() || bytes.ends_with(&self.ends.lf)
    }

    fn split<'a>(&self, bytes: &'a [u8]) -> Vec<&'a [u8]> {
        let (mut at, mut lines) = (0, Vec::new());
        while at < bytes.len() {
            let end = self.end(bytes, at);
            lines.push(&bytes[at..end]);
            at = end;
        }
        lines
    }
}

struct Writer<'a> {
    lines: &'a Lines,
    old: &'a [u8],
    new: &'a [u8],
    text: String,
    cut: bool,
    first: bool,
}

impl Writer<'_> {
    /// Adds a hunk; false when the diff is full.
    fn hunk(&mut self, blocks: &[Block]) -> bool {
        let (Some(first), Some(last)) = (blocks.first(), blocks.last()) else { return true };
        // Its line with the counts is about so long.
        let room = LONGEST.saturating_sub(self.text.len() + 64);
        let mut body = Body { lines: self.lines, text: String::new(), old: 0, new: 0, room };
        let context = self.context_before(first.old.start);
        let (old_line, new_line) = (first.old_line - context.1, first.new_line - context.1);
        let mut fits = body.add(' ', &self.old[context.0..first.old.start]);
        let mut at = first.old.start;
        for block in blocks {
            fits = fits
                && body.add(' ', &self.old[at..block.old.start])
                && body.add('-', &self.old[block.old.clone()])
                && body.add('+', &self.new[block.new.clone()]);
            at = block.old.end;
        }
        fits = fits && body.add(' ', self.context_after(last.old.end));
        self.cut = !fits;
        // A hunk that does not fit is left out, but the first, which is cut at a line.
        if (fits || self.first) && body.old + body.new > 0 {
            let old = counts(old_line, body.old);
            let new = counts(new_line, body.new);
            self.text.push_str(&format!("@@ -{old} +{new} @@\n{}", body.text));
        }
        self.first = false;
        fits
    }

    /// Where the context before a change begins, and how many lines it has.
    fn context_before(&self, at: usize) -> (usize, usize) {
        let (mut start, mut lines) = (at, 0);
        while start > 0 && lines < CONTEXT {
            start = self.lines.start(self.old, start - self.lines.encoding.unit());
            lines += 1;
        }
        (start, lines)
    }

    fn context_after(&self, at: usize) -> &[u8] {
        let mut end = at;
        for _ in 0..CONTEXT {
            end = self.lines.end(self.old, end);
        }
        &self.old[at..end]
    }
}

/// A line number and a count, as a hunk's head has them: nothing at all stands behind the line before.
fn counts(before: usize, count: usize) -> String {
    match count {
        0 => format!("{before},0"),
        1 => format!("{}", before + 1),
        _ => format!("{},{count}", before + 1),
    }
}

/// The lines of a hunk.
struct Body<'a> {
    lines: &'a Lines,
    text: String,
    old: usize,
    new: usize,
    room: usize,
}

impl Body<'_> {
    /// Adds lines with their mark; false when one does not fit.
    fn add(&mut self, mark: char, bytes: &[u8]) -> bool {
        let mut at = 0;
        while at < bytes.len() {
            let end = self.lines.end(bytes, at);
            let line = self.lines.encoding.decode(&bytes[at..end]).text;
            let unended = if line.ends_with('\n') { "" } else { "\n\\ No newline at end of file\n" };
            if self.text.len() + 1 + line.len() + unended.len() > self.room {
                return false;
            }
            self.text.push(mark);
            self.text.push_str(&line);
            self.text.push_str(unended);
            self.old += usize::from(mark != '+');
            self.new += usize::from(mark != '-');
            at = end;
        }
        true
    }
}

fn head(path: &[u8]) -> String {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    format!("--- {}\n+++ {}\n", name("a/", path), name("b/", path))
}

/// A name as git writes it: quoted where it would be misread.
fn name(side: &str, path: &[u8]) -> String {
    let plain = std::str::from_utf8(path)
        .ok()
        .filter(|path| !path.contains(|c: char| c.is_control() || c == '"' || c == '\\'));
    if let Some(path) = plain {
        // GNU patch ends a name at the first tab or, without one, at a blank before a date.
        let end = if path.contains(' ') { "\t" } else { "" };
        return format!("{side}{path}{end}");
    }
    let mut out = format!("\"{side}");
    for &byte in path {
        match byte {
            b'"' | b'\\' => out.extend(['\\', char::from(byte)]),
            b' '..=b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('"');
    out
}
