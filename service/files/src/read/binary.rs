//! Binary files, and images where their stored bytes are asked for: whole within the limit, a range of bytes, or
//! summed up.

use filectx_openapi::{Base64, FileContext, Truncation};

use super::file::Job;
use super::settle::{CutBy, Piece};
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
            let content = job.source.read_range(start, end, &job.plan.cancel)?;
            let end = start + content.len() as u64;
            let cut = Truncation { limit: job.plan.file.name, next_line: None, next_byte: Some(end) };
            let context = FileContext {
                revision: job.revision(block)?,
                binary_content: Some(Base64(content)),
                byte_range_start: Some(start),
                byte_range_end: Some(end),
                past_end: (range.offset >= size).then_some(true),
                truncation: (end < asked).then_some(cut),
                ..context
            };
            Ok(vec![piece(job, context, CutBy::Bytes)])
        }
    }
}

fn whole(job: &Job<'_>, context: FileContext, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let (size, limit) = (job.source.size(), job.plan.file.bytes);
    if size > limit || !job.source.is_complete() {
        return Err(Error::TooLarge { size, limit });
    }
    let content = if job.head as u64 == size {
        block[..job.head].to_vec()
    } else {
        job.source.read_range(0, size, &job.plan.cancel)?
    };
    let revision = if job.hashed() { hash_revision(&content) } else { job.source.identity().stat_revision() };
    let context = FileContext { revision, binary_content: Some(Base64(content)), ..context };
    Ok(vec![piece(job, context, CutBy::Whole)])
}

pub(super) fn piece(job: &Job<'_>, mut context: FileContext, cut: CutBy) -> Piece {
    context.changed_during_read = job.source.changed().then_some(true);
    Piece { context, cut }
}
