//! One file of a batch: opened, told apart, read within the file's own budget. The batch's budget comes later
//! (`settle.rs`).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use filectx_openapi::{As, BinaryMode, FailedFile, FileContext, FileRequest, lossy, lossy_base64};
use xxhash_rust::xxh3::Xxh3;

use super::plan::Plan;
use super::settle::{CutBy, Fetched, Piece};
use super::{binary, image, text};
use crate::bytes::kind::{self, Kind};
use crate::bytes::window::{Wanted, merge};
use crate::disk::identity::{HASHED_BYTES, format_hash, hash_revision};
use crate::disk::source::{BLOCK, Source};
use crate::{Error, Files, Located};

/// What one file's read works on.
pub(super) struct Job<'a> {
    pub(super) files: &'a Files,
    pub(super) plan: &'a Plan,
    pub(super) file: &'a FileRequest,
    pub(super) wanted: Vec<Wanted>,
    pub(super) source: Arc<Source>,
    /// The context's fields that every kind of file has; the revision comes when the content was read.
    pub(super) base: FileContext,
    /// The file's name, a hint for MIME types.
    pub(super) name: &'a [u8],
    /// How much of the block buffer is filled with the file's beginning.
    pub(super) head: usize,
}

/// Reads the file `index` of the plan. `block` is a buffer to work with, kept from file to file.
pub(super) fn fetch(files: &Files, plan: &Plan, index: usize, block: &mut Vec<u8>) -> Fetched {
    let file = &plan.request.files[index];
    // The plan has checked the fields that a pointer would tell.
    let located = files.fences().locate(
        file.path.as_deref(),
        file.path_base64.as_deref(),
        plan.request.cwd.as_deref(),
        "",
    );
    match located {
        Err(unlocated) => failed(index, &unlocated.shown, &unlocated.error),
        Ok(at) => match read(files, plan, index, &at, block) {
            Ok(pieces) => Fetched::Pieces(pieces),
            Err(error) => failed(index, at.joined(), &error),
        },
    }
}

/// The failure of the file `index`.
pub(super) fn failed(index: usize, path: &Path, error: &Error) -> Fetched {
    let bytes = path.as_os_str().as_bytes();
    Fetched::Failed(Box::new(FailedFile {
        request_index: index as u64,
        path: lossy(bytes),
        path_base64: lossy_base64(bytes),
        error: error.item(path),
    }))
}

/// The failure of the file `index` of which nothing but the request is known.
pub(super) fn failed_unread(files: &Files, plan: &Plan, index: usize, error: &Error) -> Fetched {
    let file = &plan.request.files[index];
    let located = files.fences().locate(
        file.path.as_deref(),
        file.path_base64.as_deref(),
        plan.request.cwd.as_deref(),
        "",
    );
    let shown = match &located {
        Ok(at) => at.joined(),
        Err(unlocated) => &unlocated.shown,
    };
    failed(index, shown, error)
}

fn read(
    files: &Files,
    plan: &Plan,
    index: usize,
    at: &Located,
    block: &mut Vec<u8>,
) -> Result<Vec<Piece>, Error> {
    let file = &plan.request.files[index];
    let wanted = merge(&file.line_ranges).map_err(|bad| Error::InvalidLineRange {
        range: file.line_ranges[bad],
        pointer: format!("/files/{index}/line_ranges/{bad}"),
    })?;
    plan.cancel.check()?;
    let opened = files.fences().open_file(at)?;
    let real = opened.real_path.as_deref().map(|real| real.as_os_str().as_bytes());
    let joined = at.joined().as_os_str().as_bytes();
    let base = FileContext {
        request_index: index as u64,
        file_name: lossy(joined),
        file_name_base64: lossy_base64(joined),
        last_modified_epoch_millis: opened.identity.modified_millis(),
        real_path: real.map(lossy),
        real_path_base64: real.and_then(lossy_base64),
        ..FileContext::default()
    };
    let name = at.joined().file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let source = Arc::new(Source::new(opened, plan.text.bytes.max(1 << 20), &plan.cancel)?);
    let size = source.size();
    let base = FileContext { file_size_bytes: size, ..base };
    let buffer = usize::try_from(size).unwrap_or(BLOCK).clamp(1, BLOCK);
    if block.len() < buffer {
        block.resize(buffer, 0);
    }
    let head = source.read_at(&mut block[..buffer], 0)?;
    let job = Job { files, plan, file, wanted, source, base, name, head };
    job.run(block)
}

impl Job<'_> {
    fn run(self, block: &mut [u8]) -> Result<Vec<Piece>, Error> {
        let whole = self.head as u64 == self.source.size();
        let kind = kind::classify(&block[..self.head], whole, self.name);
        if let Some(known) = &self.file.if_none_match {
            let revision = self.revision(block)?;
            if *known == revision {
                let mime = Some(mime(&kind, self.name));
                let context =
                    FileContext { revision, not_modified: Some(true), mime_type: mime, ..self.base };
                return Ok(vec![Piece { context, cut: CutBy::Whole, stored: None }]);
            }
        }
        match (self.file.as_, kind) {
            (As::Auto, Kind::Text(text)) => text::read(self, text, block),
            (As::Text, _) => {
                let text = kind::as_text(&block[..self.head]);
                text::read(self, text, block)
            }
            (As::Auto, Kind::Image(sniffed)) if self.file.byte_range.is_none() => {
                image::read(&self, sniffed, block)
            }
            (_, kind) => {
                let mime = mime(&kind, self.name);
                binary::read(&self, mime, block)
            }
        }
    }

    /// Whether binaries are only summed up.
    pub(super) fn summary(&self) -> bool {
        self.plan.request.binary == BinaryMode::Summary
    }

    /// Whether the revision is a hash of the content.
    pub(super) fn hashed(&self) -> bool {
        self.source.size() <= HASHED_BYTES && self.source.is_complete()
    }

    /// The revision; reads the file where that takes its content. `block` holds the file's head afterwards as before.
    pub(super) fn revision(&self, block: &mut [u8]) -> Result<String, Error> {
        if !self.hashed() {
            return Ok(self.source.identity().stat_revision());
        }
        if self.head as u64 == self.source.size() {
            return Ok(hash_revision(&block[..self.head]));
        }
        let mut hash = Xxh3::new();
        hash.update(&block[..self.head]);
        let mut offset = self.head as u64;
        let mut more = vec![0; BLOCK];
        loop {
            self.plan.cancel.check()?;
            match self.source.read_at(&mut more, offset)? {
                0 => return Ok(format_hash(hash.digest128())),
                n => {
                    hash.update(&more[..n]);
                    offset += n as u64;
                }
            }
        }
    }
}

fn mime(kind: &Kind, name: &[u8]) -> String {
    match kind {
        Kind::Text(_) => kind::text_mime(name),
        Kind::Image(image) => image.mime_type().to_owned(),
        Kind::Binary(mime) => mime.clone(),
    }
}
