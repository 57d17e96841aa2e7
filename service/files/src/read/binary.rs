//! Binary files, and images where their stored bytes are asked for: whole within the limit, a range of bytes, or
//! summed up.

use std::sync::Arc;

use filectx_openapi::{Base64, FileContext, Truncation};

use super::file::Job;
use super::plan::Delivery;
use super::settle::{CutBy, Piece};
use super::stored::{STORED_BYTES, Stored};
use crate::Error;
use crate::disk::identity::hash_revision;

/// Reads a binary file.
pub(super) fn read(job: &Job<'_>, mime: String, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    if !job.wanted.is_empty() {
        return Err(Error::NotText { mime_type: mime });
    }
    if job.summary() {
        let revision = job.revision(block)?;
        let context =
            FileContext { revision, mime_type: Some(mime), binary_omitted: Some(true), ..job.base.clone() };
        return Ok(vec![piece(job, context, CutBy::Whole)]);
    }
    let context = FileContext { mime_type: Some(mime), ..job.base.clone() };
    match job.file.byte_range {
        None => whole(job, context, block),
        Some(range) => {
            let size = job.source.size();
            let start = range.offset.min(size);
            let asked = range.length.map_or(size, |length| start.saturating_add(length).min(size));
            let end = asked.min(start.saturating_add(job.plan.file.bytes));
            let content = Content::of(job, start, end)?;
            let end = start + content.len();
            let cut = Truncation { limit: job.plan.file.name, next_line: None, next_byte: Some(end) };
            let context = FileContext {
                revision: job.revision(block)?,
                byte_range_start: Some(start),
                byte_range_end: Some(end),
                past_end: (range.offset >= size).then_some(true),
                truncation: (end < asked).then_some(cut),
                ..context
            };
            Ok(vec![content.piece(job, context, CutBy::Bytes)])
        }
    }
}

/// Bytes in memory, or left on the disk until they are sent.
enum Content {
    Read(Vec<u8>),
    Stored(Stored),
}

impl Content {
    fn of(job: &Job<'_>, start: u64, end: u64) -> Result<Self, Error> {
        if job.plan.delivery == Delivery::Multipart && end - start > STORED_BYTES {
            return Ok(Content::Stored(Stored::new(Arc::clone(&job.source), start, end)));
        }
        job.source.read_range(start, end, &job.plan.cancel).map(Content::Read)
    }

    fn len(&self) -> u64 {
        match self {
            Content::Read(bytes) => bytes.len() as u64,
            Content::Stored(stored) => stored.len(),
        }
    }

    fn piece(self, job: &Job<'_>, context: FileContext, cut: CutBy) -> Piece {
        match self {
            Content::Read(bytes) => {
                piece(job, FileContext { binary_content: Some(Base64(bytes)), ..context }, cut)
            }
            Content::Stored(stored) => Piece { stored: Some(stored), ..piece(job, context, cut) },
        }
    }
}

fn whole(job: &Job<'_>, context: FileContext, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let (size, limit) = (job.source.size(), job.plan.file.bytes);
    if size > limit || !job.source.is_complete() {
        return Err(Error::TooLarge { size, limit });
    }
    let content = if job.head as u64 == size {
        Content::Read(block[..job.head].to_vec())
    } else {
        Content::of(job, 0, size)?
    };
    let revision = match &content {
        Content::Read(bytes) if job.hashed() => hash_revision(bytes),
        _ => job.source.identity().stat_revision(),
    };
    Ok(vec![content.piece(job, FileContext { revision, ..context }, CutBy::Whole)])
}

pub(super) fn piece(job: &Job<'_>, mut context: FileContext, cut: CutBy) -> Piece {
    context.changed_during_read = job.source.changed().then_some(true);
    Piece { context, cut, stored: None }
}
