//! Exact edits of a text in memory: which occurrence is meant, what stands there afterwards, and why not. No fuzz: the
//! bytes have to be there, but for line ends where the request lets those differ. What is not named does not change.

use std::borrow::Cow;

use filectx_openapi::{AppliedEdit, Edit, LineBreaks, LineEndings};

use super::breaks::Breaks;
use super::candidates;
use super::excerpt::occurrences;
use super::kind::Text;
use super::needle::{LineEndBytes, Needle, Span};
use super::replacement::{Replacement, Style, style_at};
use super::trace::{Splices, Trace};
use crate::{Cancel, Error};

/// How often a loop over matches asks whether to go on.
const ASK: u64 = 1 << 12;

/// How edits are to be understood.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether line ends may differ.
    pub line_endings: LineEndings,
    /// What ends a line, for line numbers.
    pub line_breaks: LineBreaks,
    /// The most bytes of a result.
    pub limit: u64,
}

/// What edits made of a text.
#[derive(Debug)]
pub struct Applied {
    /// The new content, byte order mark included.
    pub content: Vec<u8>,
    /// What each edit replaced.
    pub edits: Vec<AppliedEdit>,
    /// Lines of the new content.
    pub line_count: u64,
    /// Which parts changed, in the contents without their mark.
    pub trace: Trace,
}

/// A body of text and all that is needed to search it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Body<'a> {
    /// The bytes, without the byte order mark.
    pub(crate) bytes: &'a [u8],
    /// How they are written down.
    pub(crate) text: Text,
    /// What ends a line.
    pub(crate) breaks: Breaks,
}

/// Applies `edits` in order to `content`, which is written down as `text` says; all of them, or none.
pub fn apply(
    content: &[u8],
    text: Text,
    edits: &[Edit],
    options: &Options,
    cancel: &Cancel,
) -> Result<Applied, Error> {
    let (mark, old) = content.split_at(text.bom.min(content.len()));
    let session = Session {
        text,
        options,
        old,
        breaks: Breaks::new(text.encoding, options.line_breaks),
        ends: LineEndBytes::of(text.encoding),
        cancel,
    };
    let mut body = Cow::Borrowed(old);
    let mut trace = Trace::default();
    let mut applied = Vec::with_capacity(edits.len());
    for (index, edit) in (0..).zip(edits) {
        cancel.check()?;
        let step = session.step(&body, &trace, edit, index)?;
        trace.apply(&step.splices);
        applied.push(step.edit);
        body = Cow::Owned(step.body);
    }
    if *body == *old {
        let edit_index = (edits.len() == 1).then_some(0);
        return Err(Error::NoChange { edit_index });
    }
    let line_count =
        session.breaks.count(&body) + u64::from(!body.is_empty() && !session.breaks.ends_with_break(&body));
    let content = if mark.is_empty() { body.into_owned() } else { [mark, &body].concat() };
    Ok(Applied { content, edits: applied, line_count, trace })
}

/// Why `edit` matches nothing in `content`: whether it is applied already, and the places most like it.
pub fn no_match(
    content: &[u8],
    text: Text,
    edit: &Edit,
    edit_index: u64,
    options: &Options,
    cancel: &Cancel,
) -> Error {
    let bytes = &content[text.bom.min(content.len())..];
    let breaks = Breaks::new(text.encoding, options.line_breaks);
    let body = Body { bytes, text, breaks };
    no_match_in(body, edit, edit_index, options.line_endings, cancel).unwrap_or_else(|error| error)
}

fn no_match_in(
    body: Body<'_>,
    edit: &Edit,
    edit_index: u64,
    line_endings: LineEndings,
    cancel: &Cancel,
) -> Result<Error, Error> {
    let already_applied =
        !edit.new_text.is_empty() && search(body.bytes, body.text, &edit.new_text, line_endings).is_some();
    let candidates = candidates::candidates(body, &edit.old_text, line_endings, cancel)?;
    Ok(Error::NoMatch { edit_index, already_applied, candidates })
}

/// The needle that finds `wanted`, and its first match: exact bytes first, then any line ends where that is allowed.
fn search(body: &[u8], text: Text, wanted: &str, line_endings: LineEndings) -> Option<(Needle, Span, bool)> {
    let first = |needle: Option<Needle>, loose| {
        let needle = needle?;
        let span = needle.find(body, 0)?;
        Some((needle, span, loose))
    };
    first(Needle::exact(text.encoding, wanted), false).or_else(|| match line_endings {
        LineEndings::Adapt => first(Needle::any_line_end(text.encoding, wanted), true),
        LineEndings::Exact => None,
    })
}

struct Session<'a> {
    text: Text,
    options: &'a Options,
    /// The body as the request found it.
    old: &'a [u8],
    breaks: Breaks,
    ends: LineEndBytes,
    cancel: &'a Cancel,
}

/// What one edit came to.
struct Step {
    body: Vec<u8>,
    edit: AppliedEdit,
    splices: Splices,
}

impl Session<'_> {
    fn step(&self, body: &[u8], trace: &Trace, edit: &Edit, index: u64) -> Result<Step, Error> {
        let found = search(body, self.text, &edit.old_text, self.options.line_endings);
        let Some((needle, first, loose)) = found else {
            let body = Body { bytes: body, text: self.text, breaks: self.breaks };
            return Err(no_match_in(body, edit, index, self.options.line_endings, self.cancel)?);
        };
        let chosen =
            if edit.replace_all { first } else { self.choose(body, trace, edit, index, &needle, first)? };
        if edit.old_text == edit.new_text {
            return Err(Error::NoChange { edit_index: Some(index) });
        }
        let replacement = Replacement::of(self.text, &edit.new_text).map_err(|character| {
            Error::UnencodableText { edit_index: Some(index), encoding: self.text.encoding.name(), character }
        })?;
        let mut out = Output::new(body, self.options.limit);
        let (mut next, mut replacements, mut adapted) = (Some(chosen), 0, loose);
        let mut lines = None;
        while let Some(span) = next {
            let (span, grown) = self.with_whole_line_end(body, &edit.old_text, span);
            let (bytes, changed) = replacement.bytes(self.style(body, span));
            lines = lines.or_else(|| Some(self.lines(body, span)));
            adapted |= grown || changed;
            out.replace(span, bytes)?;
            replacements += 1;
            if replacements % ASK == 0 {
                self.cancel.check()?;
            }
            next = if edit.replace_all { needle.find(body, span.end) } else { None };
        }
        let (line_start, line_end) = lines.unwrap_or_default();
        let edit = AppliedEdit { line_start, line_end, replacements, line_endings_adapted: adapted };
        let (body, splices) = out.finish()?;
        Ok(Step { body, edit, splices })
    }

    /// The occurrence that is meant: the only one, or the only one that the hint lies in.
    fn choose(
        &self,
        body: &[u8],
        trace: &Trace,
        edit: &Edit,
        index: u64,
        needle: &Needle,
        first: Span,
    ) -> Result<Span, Error> {
        let Some(second) = needle.find(body, needle.behind_start(first)) else { return Ok(first) };
        if let Some(hint) = edit.line_hint.and_then(|line| self.line_now(trace, line)) {
            let mut from = hint.start.saturating_sub(needle.most());
            from -= from % self.text.encoding.unit();
            let mut inside = None;
            while let Some(span) = needle.find(body, from).filter(|span| span.start < hint.end) {
                self.cancel.check()?;
                if span.end > hint.start && inside.replace(span).is_some() {
                    inside = None;
                    break;
                }
                from = needle.behind_start(span);
            }
            if let Some(span) = inside {
                return Ok(span);
            }
        }
        let body = Body { bytes: body, text: self.text, breaks: self.breaks };
        let next = |span: Span| needle.find(body.bytes, needle.behind_start(span));
        let (occurrences, more) = occurrences(body, [first, second], next, self.cancel)?;
        Err(Error::AmbiguousMatch { edit_index: index, occurrences, more })
    }

    /// The bytes that now stand for a line of the body as the request found it.
    fn line_now(&self, trace: &Trace, line: u64) -> Option<std::ops::Range<usize>> {
        let start = match line.checked_sub(1)? {
            0 => 0,
            before => self.breaks.nth(self.old, before).ok()?,
        };
        let rest = &self.old[start..];
        let end = start + self.breaks.nth(rest, 1).unwrap_or(rest.len());
        Some(trace.now(&(start..end)))
    }

    /// A match that begins with a line end takes the CR before it along: it is part of that line end.
    fn with_whole_line_end(&self, body: &[u8], old_text: &str, span: Span) -> (Span, bool) {
        let adapts = self.options.line_endings == LineEndings::Adapt;
        if adapts && old_text.starts_with('\n') && body[span.start..].starts_with(&self.ends.lf) {
            let line = &body[..span.start];
            if let Some(line) = line.strip_suffix(self.ends.cr.as_slice()) {
                return (Span { start: line.len(), ..span }, true);
            }
        }
        (span, false)
    }

    fn style(&self, body: &[u8], span: Span) -> Style {
        match self.options.line_endings {
            LineEndings::Exact => Style::Sent,
            LineEndings::Adapt => style_at(body, self.text.encoding, &self.ends, span),
        }
    }

    fn lines(&self, body: &[u8], span: Span) -> (u64, u64) {
        Body { bytes: body, text: self.text, breaks: self.breaks }.lines(span)
    }
}

impl Body<'_> {
    /// The first and the last line of `span`.
    pub(crate) fn lines(&self, span: Span) -> (u64, u64) {
        let first = 1 + self.ended_lines(span.start);
        (first, first + self.inner_breaks(span))
    }

    /// How many lines end before `at`. A CR at its end is none if its LF follows.
    pub(crate) fn ended_lines(&self, at: usize) -> u64 {
        let before = &self.bytes[..at];
        let count = self.breaks.count(before);
        let splits =
            self.breaks.mode() == LineBreaks::Unicode && self.breaks.splits_crlf(before, &self.bytes[at..]);
        count - u64::from(splits)
    }

    /// How many lines end inside `span`: one that ends where it ends does not count.
    pub(crate) fn inner_breaks(&self, span: Span) -> u64 {
        let region = &self.bytes[span.start..span.end];
        self.breaks.count(region) - u64::from(self.breaks.ends_with_break(region))
    }
}

/// A new body, growing from left to right.
struct Output<'a> {
    from: &'a [u8],
    body: Vec<u8>,
    copied: usize,
    splices: Splices,
    limit: u64,
}

impl<'a> Output<'a> {
    fn new(from: &'a [u8], limit: u64) -> Self {
        Self {
            from,
            body: Vec::with_capacity(from.len() + 64),
            copied: 0,
            splices: Splices::default(),
            limit,
        }
    }

    fn replace(&mut self, span: Span, bytes: &[u8]) -> Result<(), Error> {
        self.body.extend_from_slice(&self.from[self.copied..span.start]);
        self.body.extend_from_slice(bytes);
        self.splices.push(span.start..span.end, bytes.len());
        self.copied = span.end;
        self.check()
    }

    fn check(&self) -> Result<(), Error> {
        let size = (self.body.len() + self.from.len() - self.copied) as u64;
        if size > self.limit { Err(Error::TooLargeToWrite { size, limit: self.limit }) } else { Ok(()) }
    }

    fn finish(mut self) -> Result<(Vec<u8>, Splices), Error> {
        self.body.extend_from_slice(&self.from[self.copied..]);
        Ok((self.body, self.splices))
    }
}

#[cfg(test)]
mod tests;
