//! Settling: what was read of a file meets what is left of the batch's bytes, in request order. The answer is the same
//! as if the files had been read one after the other, whatever order they were read in.

use filectx_openapi::{FailedFile, FileContext, Truncation};

use super::Outcome;
use super::plan::Budget;
use super::stored::{STORED_COST, Stored};
use crate::Error;
use crate::bytes::breaks::Breaks;
use crate::bytes::encoding::TextEncoding;
use crate::bytes::window::cut_text;

/// What was read of one file, within the file's own budget.
#[derive(Debug)]
pub(crate) enum Fetched {
    /// Contexts in the order of the file.
    Pieces(Vec<Piece>),
    /// Nothing.
    Failed(Box<FailedFile>),
}

/// A context, and how it can be cut further.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) context: FileContext,
    pub(crate) cut: CutBy,
    /// Its bytes, where they stay on the disk until they are sent.
    pub(crate) stored: Option<Stored>,
}

/// How a context can be cut further.
#[derive(Clone, Debug)]
pub(crate) enum CutBy {
    /// After whole lines.
    Lines(Breaks, u64),
    /// Not: it is part of a line that alone exceeds the file's budget, and begins at this line.
    PartOfLine(u64),
    /// Between characters; the undecoded bytes tell where.
    Characters(TextEncoding, Vec<u8>),
    /// Between bytes.
    Bytes,
    /// Not: it comes whole.
    Whole,
}

impl Fetched {
    /// How many bytes it holds in memory.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Fetched::Pieces(pieces) => {
                pieces.iter().map(|piece| held(&piece.context, piece.stored.as_ref())).sum()
            }
            Fetched::Failed(_) => 0,
        }
    }

    /// The outcomes within `rest`, which is lessened by what they take.
    pub(crate) fn settle(self, rest: &mut u64, batch: Budget) -> Vec<Outcome> {
        let pieces = match self {
            Fetched::Failed(failed) => return vec![Outcome::Failed(failed)],
            Fetched::Pieces(pieces) => pieces,
        };
        let mut begun = false;
        let mut outcomes = Vec::with_capacity(pieces.len());
        let mut left = *rest;
        for piece in pieces {
            let needed = cost(&piece.context, piece.stored.as_ref());
            let (context, stored) = if needed <= left {
                (piece.context, piece.stored)
            } else {
                match piece.within(left, batch) {
                    Ok(cut) => cut,
                    Err(uncut) if begun => (*uncut, None),
                    // Not even the first of it fits: a failure takes nothing.
                    Err(uncut) => return vec![Outcome::Failed(exhausted(*uncut, batch))],
                }
            };
            let taken = cost(&context, stored.as_ref());
            left -= taken;
            begun |= taken > 0;
            outcomes.push(match stored {
                Some(stored) => Outcome::Stored(Box::new(context), stored),
                None => Outcome::Context(Box::new(context)),
            });
        }
        *rest = left;
        outcomes
    }
}

impl Piece {
    /// The context cut to `left` bytes. The error is the empty context that says where to go on, for when the batch's
    /// rest does not hold the least that could be returned.
    fn within(self, left: u64, batch: Budget) -> Result<(FileContext, Option<Stored>), Box<FileContext>> {
        let mut context = self.context;
        let fits = usize::try_from(left).unwrap_or(usize::MAX);
        match self.cut {
            CutBy::Lines(breaks, start) => {
                let text = context.text_content.take().unwrap_or_default();
                let (end, _) = cut_text(&text, fits, u64::MAX, breaks);
                if end == 0 {
                    return Err(Box::new(emptied(context, start, batch)));
                }
                let lines = breaks.decoded().count(&text.as_bytes()[..end]);
                context.text_content = Some(text[..end].to_owned());
                context.line_range_end = Some(start + lines - 1);
                context.truncation =
                    Some(Truncation { limit: batch.name, next_line: Some(start + lines), next_byte: None });
                Ok((context, None))
            }
            CutBy::PartOfLine(line) => Err(Box::new(emptied(context, line, batch))),
            CutBy::Characters(encoding, raw) => {
                let mut text = context.text_content.take().unwrap_or_default();
                text.truncate(text.floor_char_boundary(fits));
                let used = encoding.raw_len(&raw, &text) as u64;
                Self::cut_bytes(context, text.is_empty(), used, batch, |context| {
                    context.text_content = Some(text);
                })
                .map(|cut| (cut, None))
            }
            CutBy::Bytes => {
                if let Some(mut stored) = self.stored {
                    stored.truncate(left);
                    return Self::cut_bytes(context, left == 0, left, batch, |_| ())
                        .map(|cut| (cut, Some(stored)));
                }
                let mut content = context.binary_content.take().unwrap_or_default();
                content.0.truncate(fits);
                let used = content.0.len() as u64;
                Self::cut_bytes(context, used == 0, used, batch, |context| {
                    context.binary_content = Some(content);
                })
                .map(|cut| (cut, None))
            }
            CutBy::Whole => Err(Box::new(context)),
        }
    }

    fn cut_bytes(
        mut context: FileContext,
        empty: bool,
        used: u64,
        batch: Budget,
        put: impl FnOnce(&mut FileContext),
    ) -> Result<FileContext, Box<FileContext>> {
        let next = context.byte_range_start.unwrap_or(0) + used;
        context.byte_range_end = Some(next);
        context.truncation = Some(Truncation { limit: batch.name, next_line: None, next_byte: Some(next) });
        put(&mut context);
        if empty { Err(Box::new(context)) } else { Ok(context) }
    }
}

/// A context of lines without any: what is left does not hold the first.
fn emptied(mut context: FileContext, next_line: u64, batch: Budget) -> FileContext {
    context.text_content = Some(String::new());
    (context.line_range_start, context.line_range_end) = (None, None);
    (context.byte_range_start, context.byte_range_end) = (None, None);
    context.lossy = None;
    context.truncation = Some(Truncation { limit: batch.name, next_line: Some(next_line), next_byte: None });
    context
}

fn exhausted(context: FileContext, batch: Budget) -> Box<FailedFile> {
    let error = Error::BatchBudgetExhausted { limit: batch.bytes, name: batch.name };
    Box::new(FailedFile {
        request_index: context.request_index,
        error: error.item(std::path::Path::new(&context.file_name)),
        path: context.file_name,
        path_base64: context.file_name_base64,
    })
}

/// How many bytes of the batch a context takes.
fn cost(context: &FileContext, stored: Option<&Stored>) -> u64 {
    in_memory(context) + stored.map_or(0, Stored::len)
}

/// How many bytes it holds in memory; an open file counts for some.
fn held(context: &FileContext, stored: Option<&Stored>) -> u64 {
    in_memory(context) + stored.map_or(0, |_| STORED_COST)
}

fn in_memory(context: &FileContext) -> u64 {
    let text = context.text_content.as_ref().map_or(0, String::len);
    let binary = context.binary_content.as_ref().map_or(0, |bytes| bytes.0.len());
    (text + binary) as u64
}

impl Outcome {
    /// How many bytes it holds in memory.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Outcome::Context(context) => held(context, None),
            Outcome::Stored(context, stored) => held(context, Some(stored)),
            Outcome::Failed(_) => 0,
        }
    }
}
