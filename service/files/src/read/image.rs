//! Images: made fit for a model, or summed up undecoded. Their stored bytes are `binary.rs`'s.

use filectx_openapi::{Base64, FileContext};

use super::binary::piece;
use super::file::Job;
use super::settle::{CutBy, Piece};
use crate::Error;
use crate::disk::identity::{HASHED_BYTES, hash_revision};
use crate::image::{Format, Sniffed, describe, fit, undescribed};

/// Reads an image.
pub(super) fn read(job: &Job<'_>, image: Sniffed, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    if !job.wanted.is_empty() {
        return Err(Error::NotText { mime_type: image.mime_type().to_owned() });
    }
    if job.summary() {
        return summary(job, image, block);
    }
    match image {
        Sniffed::Image(format) => fitted(job, format, block),
        Sniffed::Unsupported { format, .. } => Err(Error::ImageUnsupported { format: format.to_owned() }),
    }
}

fn fitted(job: &Job<'_>, format: Format, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let (size, cancel) = (job.source.size(), &job.plan.cancel);
    let limit = job.files.limits().max_image_source_bytes;
    if size > limit || !job.source.is_complete() {
        let known = describe(&block[..job.head], format, size);
        return Err(Error::ImageTooLarge {
            format: format.name().to_owned(),
            size: known.source_width.zip(known.source_height),
            limit,
            detail: format!("{size} bytes, of at most {limit} (max_image_source_bytes)"),
        });
    }
    let images = job.files.images();
    let _share = images.admit(size, cancel)?;
    let bytes = if job.head as u64 == size {
        block[..job.head].to_vec()
    } else {
        job.source.read_range(0, size, cancel)?
    };
    let revision = if job.hashed() { hash_revision(&bytes) } else { job.source.identity().stat_revision() };
    let fitted = fit(bytes, format, &job.plan.image, images, cancel)?;
    let context = FileContext {
        revision,
        mime_type: Some(fitted.format.mime_type().to_owned()),
        binary_content: Some(Base64(fitted.bytes)),
        image: Some(fitted.info),
        ..job.base.clone()
    };
    Ok(vec![piece(job, context, CutBy::Whole)])
}

fn summary(job: &Job<'_>, image: Sniffed, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
    let size = job.source.size();
    let info = match image {
        Sniffed::Image(format) => {
            // Up to here the revision takes all of it anyway; of a larger one the beginning has to do.
            if job.head as u64 == size {
                describe(&block[..job.head], format, size)
            } else {
                let most = if size <= HASHED_BYTES { size } else { 1 << 20 };
                describe(&job.source.read_range(0, most, &job.plan.cancel)?, format, size)
            }
        }
        Sniffed::Unsupported { .. } => undescribed(image.noun(), size),
    };
    let context = FileContext {
        revision: job.revision(block)?,
        mime_type: Some(image.mime_type().to_owned()),
        binary_omitted: Some(true),
        image: Some(info),
        ..job.base.clone()
    };
    Ok(vec![piece(job, context, CutBy::Whole)])
}
